"""An entry of the registry has its keys and words, what is proven, and blanks for the rest."""

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any

import pytest

import hockeystick as hs
from hockeystick.answers.registration import BLANK

TRAINING = hs.DPSGD(examples=60_000, batch_size=256, epochs=15, noise_multiplier=1.1)
SHUFFLED = hs.mechanisms.ShuffledReports(hs.PureDP(epsilon=1), users=1000)
REPORT = hs.RandomizedResponse(epsilon=1, categories=4)
KEYS = {
    "basic": "name data_curators intended_use data_product_type data_product_region description "
    "publication_date data_product_sector",
    "dp_variant": "variant_name data_domain unprotected_quantities",
    "privacy_loss": "privacy_unit privacy_unit_details privacy_parameters "
    "privacy_parameters_details",
    "deployment_model": "model_name model_name_details actors release_type release_type_details "
    "data_source_type data_source_type_details access_type access_type_details",
    "accounting": "post_processing composition",
    "implementation": "preprocessing_and_hyperparameter_tuning mechanisms justification",
    "administrative": "sources notes registry_authors",
}
WORDS = {
    "variant_name": {"Pure DP", "Approximate DP", "Zero-concentrated DP", "Renyi DP", "Custom"},
    "model_name": {"Local", "Central", "Shuffle", "Federated", "Varies"},
}


def read(text: str) -> Any:
    return import_module("yaml").safe_load(text)


def entry_of(plan: hs.Mechanism, delta: float, **about: str) -> tuple[dict[str, Any], hs.Certified]:
    answer = hs.epsilon(plan, delta=delta)
    return read(hs.answers.registration(answer, plan, delta=delta, **about)), answer


def leaves(table: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for key, value in table.items():
        if isinstance(value, Mapping):
            yield from leaves(value)
        else:
            yield key, value[0] if isinstance(value, list) else value


@pytest.mark.parametrize(
    ("plan", "delta", "model"),
    [(TRAINING, 1e-5, None), (SHUFFLED, 1e-8, "Shuffle"), (REPORT @ REPORT**2, 0, "Local")],
)
def test_the_keys_are_those_of_the_registry_and_nothing_unknown_is_claimed(
    plan: hs.Mechanism, delta: float, model: str | None
) -> None:
    entry, answer = entry_of(plan, delta)
    assert set(entry) == {"url_slug", "status", "tier", "deployment"}
    told = entry["deployment"]
    assert {key: set(inside) for key, inside in told.items()} == {
        key: set(names.split()) for key, names in KEYS.items()
    }
    for key, value in leaves({**told, "privacy_loss": {}}):
        known = {"mechanisms", "composition", "variant_name", *({"model_name"} if model else {})}
        assert (key in known) == (not str(value).startswith(BLANK))
        assert value in WORDS.get(key, {value}) or value.startswith(BLANK)
    assert told["deployment_model"]["model_name"] == model or model is None
    found = told["privacy_loss"]["privacy_parameters"]
    assert answer.upper <= found["epsilon"] <= answer.upper * 1.00001
    assert found.get("delta", 0) == delta
    assert ("delta" in found) == (told["dp_variant"]["variant_name"] == "Approximate DP")


def test_what_the_plan_knows_is_filled_in() -> None:
    about = {"title": "Yes", "source": "https://a.example/x", "notes": "# no\n\n'x'"}
    entry, answer = entry_of(TRAINING, 1e-3, **about)
    told = entry["deployment"]
    assert told["basic"]["name"] == "Yes"
    assert told["administrative"]["sources"] == about["source"]
    assert told["administrative"]["notes"].startswith(about["notes"])
    assert all(one in told["implementation"]["mechanisms"] for one in TRAINING.assumptions)
    assert f'"{answer.accountant}" of hockeystick {hs.__version__}' in str(told["accounting"])
    details = told["privacy_loss"]["privacy_parameters_details"]
    cautions = hs.answers.cautions(answer, TRAINING, delta=1e-3)
    assert cautions
    assert all(one.text in details for one in cautions)
