"""A plan's entry for the public registry of deployments of differential privacy.

What the plan and its answer prove stands in the entry. What only people know is a blank that says
so, "to be filled in", and nothing is guessed: an entry with blanks where the registry asks for one
of its own words does not pass the registry's checks.

The keys and their words are those of ``schemas/deployments-schema.yaml`` in OpenDP's repository
deployments-registry-data, as of July 2026.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, final

from hockeystick import _validate
from hockeystick._version import __version__
from hockeystick.answers.cautions import cautions
from hockeystick.answers.wording import in_words, protected, steps_rules
from hockeystick.mechanisms import RandomizedResponse, ShuffledReports, assumptions_of, federated
from hockeystick.mechanisms.base import Composed, Mechanism, Repeated
from hockeystick.mechanisms.local.reports import RAPPOR, UnaryEncoding
from hockeystick.numerics.numerals import at_most, interval, plain
from hockeystick.results import Certified

BLANK: Final = "to be filled in: "
_HEAD: Final = """\
An entry for the registry of differential privacy deployments:
https://github.com/opendp/deployments-registry-data, folder deployments.
What the plan proves is filled in; what only people know is marked "to be filled in".
"""
# By the topics of NIST SP 800-226 (2025) that the registry has no field for.
_BESIDES: Final = (
    "how the data are collected, and to whom they are exposed before anything is protected",
    "how useful the output is, for whom, and whether the noise biases it against small groups",
)
_LOCAL: Final = (RandomizedResponse, UnaryEncoding, RAPPOR)
_FEDERATED: Final = tuple(
    one for one in vars(federated).values() if isinstance(one, type) and issubclass(one, Mechanism)
)


@final
@dataclass(frozen=True, slots=True)
class _Number:
    """A number in YAML, by its decimal digits: with a point, without which 1e-05 is a text."""

    digits: str

    def __str__(self) -> str:
        mantissa, mark, exponent = self.digits.partition("e")
        point = "" if "." in mantissa or not mark else ".0"
        return f"{mantissa}{point}{mark}{exponent}"


def registration(
    answer: Certified,
    plan: Mechanism,
    *,
    delta: float,
    title: str | None = None,
    source: str | None = None,
    notes: str | None = None,
) -> str:
    """Return an entry of the registry of deployments, with blanks for what only people know.

    Guarantees:
        The text is YAML with all keys of the registry's schema and no other ones, for a release of
        tier 3, a draft. Epsilon is the proven upper end, rounded up. What the plan does not say is
        a text that begins with "to be filled in".

    Edge cases:
        Where epsilon has no proven upper end, it is a blank. At delta 0 the entry is one of pure
        differential privacy.

    Args:
        answer: Epsilon at that delta, as ``epsilon`` returned it.
        plan: The mechanism or plan that it is of.
        delta: Where it was asked for.
        title: What the data product is called.
        source: Where the plan's numbers come from.
        notes: What a reader should know.

    Returns:
        The text of a file, to be kept as ``deployments/NAME.yaml`` in the registry's repository.

    References:
        NIST SP 800-226, "Guidelines for Evaluating Differential Privacy Guarantees", 2025, for the
        questions that any such claim raises.

    Example:
        >>> import hockeystick as hs
        >>> plan = hs.DPSGD(examples=60_000, batch_size=256, epochs=15, noise_multiplier=1.1)
        >>> answer = hs.epsilon(plan, delta=1e-5)
        >>> text = hs.answers.registration(answer, plan, delta=1e-5, title="My classifier")
        >>> print(text[text.index("    privacy_parameters:") :][:67])
            privacy_parameters:
              epsilon: 1.13388
              delta: 1.0e-05
    """
    at = _validate.real("delta", delta)
    entry = {
        "url_slug": f"{BLANK}a short name for its address",
        "status": "Draft",
        "tier": _Number("3"),
        "deployment": {
            "basic": _basic(title),
            "dp_variant": {
                "variant_name": "Pure DP" if at == 0.0 else "Approximate DP",
                "data_domain": f"{BLANK}which data sets there could have been",
                "unprotected_quantities": f"{BLANK}what is published without protection, or none",
            },
            "privacy_loss": _privacy_loss(answer, plan, at),
            "deployment_model": _model(plan),
            "accounting": _accounting(answer, plan),
            "implementation": _implementation(plan),
            "administrative": {
                "sources": source or f"{BLANK}where the deployment is described",
                "notes": _lines(notes, *(BLANK + one for one in _BESIDES)),
                "registry_authors": [f"{BLANK}who wrote this entry"],
            },
        },
    }
    comment = [f"# {line}" for line in _HEAD.splitlines()]
    return "\n".join([*comment, *_table(entry, "")]) + "\n"


def _basic(title: str | None) -> Mapping[str, Any]:
    """Return what the data product is."""
    return {
        "name": title or f"{BLANK}what the data product is called",
        "data_curators": [f"{BLANK}who publishes it"],
        "intended_use": f"{BLANK}what it is for",
        "data_product_type": f"{BLANK}one of Summary statistics, Machine learning model, Dataset, "
        "Synthetic data, Interactive API, SQL queries",
        "data_product_region": f"{BLANK}the region that the data are about",
        "description": f"{BLANK}what it is, in a sentence or two",
        "publication_date": f"{BLANK}the day it was published, as YYYY-MM-DD",
        "data_product_sector": f"{BLANK}one of Technology, Healthcare, Education, Government, "
        "Energy, Finance",
    }


def _privacy_loss(answer: Certified, plan: Mechanism, delta: float) -> Mapping[str, Any]:
    """Return what is protected, and how well that is proven to be."""
    lower, upper = interval(answer.lower, answer.upper)
    epsilon = (
        _Number(at_most(answer.upper))
        if answer.upper < math.inf
        else f"{BLANK}nothing is proven of epsilon"
    )
    proven = f"Epsilon is proven to lie in [{lower}, {upper}] at delta = {plain(delta)}."
    texts = (one.text for one in cautions(answer, plan, delta=delta))
    return {
        "privacy_unit": _unit(plan),
        "privacy_unit_details": _lines(
            protected(plan), f"{BLANK}the same in terms of the columns and rows of the data"
        ),
        "privacy_parameters": {
            "epsilon": epsilon,
            **({} if delta == 0.0 else {"delta": _Number(plain(delta))}),
        },
        "privacy_parameters_details": _lines(proven, *(f"Caution: {one}" for one in texts)),
    }


def _unit(plan: Mechanism) -> str:
    """Return whose data is protected, as far as the plan says it."""
    asked = "what that is, such as a person, a household or a visit, and how many one person has"
    together = getattr(plan, "together", None)
    if together is not None:
        return f"{together.capitalize()}; {BLANK}{asked}"
    several = getattr(plan, "examples_per_user", 1)
    if several > 1:
        return f"All of one user's examples, of which there are at most {several}"
    unit = getattr(plan, "unit", "example")
    what = "One person's report" if _model_name(plan) in ("Local", "Shuffle") else f"One {unit}"
    return f"{what}; {BLANK}{asked}"


def _model(plan: Mechanism) -> Mapping[str, Any]:
    """Return whom the people have to trust, which the plan says for reports of their own only."""
    return {
        "model_name": _model_name(plan)
        or f"{BLANK}one of Local, Central, Shuffle, Federated, Varies",
        "model_name_details": f"{BLANK}where the noise is added, and by whom",
        "actors": f"{BLANK}who sees the data and the output, and whom one has to trust with what",
        "release_type": f"{BLANK}One release, or Many releases",
        "release_type_details": f"{BLANK}whether the same data is used again, and what renews the "
        "budget",
        "data_source_type": f"{BLANK}Static or Dynamic",
        "data_source_type_details": f"{BLANK}whether data are added over time",
        "access_type": f"{BLANK}Interactive or Non-interactive",
        "access_type_details": f"{BLANK}who may ask what, and whether they may work together",
    }


def _model_name(plan: Mechanism) -> str | None:
    """Return the deployment model that the description itself is of, None where it says none."""
    if isinstance(plan, Composed):
        named = {_model_name(part) for part in plan.parts}
        return named.pop() if len(named) == 1 else None
    if isinstance(plan, Repeated):
        return _model_name(plan.inner)
    models = {"Local": _LOCAL, "Shuffle": (ShuffledReports,), "Federated": _FEDERATED}
    return next((name for name, kinds in models.items() if isinstance(plan, kinds)), None)


def _accounting(answer: Certified, plan: Mechanism) -> Mapping[str, Any]:
    """Return how the cost of all releases was added up."""
    how = f'Composed by the accountant "{answer.accountant}" of hockeystick {__version__}.'
    return {
        "post_processing": f"{BLANK}what is done to the output after it is protected",
        "composition": _lines(*in_words(plan), *steps_rules(plan), how),
    }


def _implementation(plan: Mechanism) -> Mapping[str, Any]:
    """Return which mechanisms run, and what must hold of what runs them."""
    return {
        "preprocessing_and_hyperparameter_tuning": f"{BLANK}what else looked at the data, such as "
        "cleaning, exploring or tuning, and whether the plan counts it",
        "mechanisms": _lines(
            *in_words(plan),
            *(f"Must hold: {one}" for one in assumptions_of(plan)),
            f"{BLANK}the library and its version; what is done against floating-point errors and "
            "timing; who may see the data; where the code is",
        ),
        "justification": f"{BLANK}why these choices were made, and who checked them",
    }


def _lines(*texts: str | None) -> str:
    """Return texts as one, each on a line of its own."""
    return "\n".join(text for text in texts if text)


def _table(table: Mapping[str, Any], indent: str) -> Iterator[str]:
    """Yield the lines of a table in YAML, where every text is quoted or a block of lines."""
    for key, value in table.items():
        if isinstance(value, Mapping):
            yield f"{indent}{key}:"
            yield from _table(value, indent + "  ")
        elif isinstance(value, list):
            yield f"{indent}{key}:"
            yield from (f"{indent}  - {_quoted(item)}" for item in value)
        elif isinstance(value, str) and _is_block(value):
            yield f"{indent}{key}: |-"
            yield from (f"{indent}  {line}" for line in value.split("\n"))
        else:
            yield f"{indent}{key}: {value if isinstance(value, _Number) else _quoted(value)}"


def _is_block(text: str) -> bool:
    """Return whether a text can be written line by line, as it is."""
    lines = text.split("\n")
    return len(lines) > 1 and all(
        line and line.isprintable() and line == line.strip() for line in lines
    )


def _quoted(text: str) -> str:
    """Return a text in quotes; what is no visible letter is escaped."""
    return "".join(
        letter if letter.isprintable() else _escaped(letter)
        for letter in json.dumps(text, ensure_ascii=False)
    )


def _escaped(letter: str) -> str:
    """Return the escape of a letter, of which JSON leaves some as they are."""
    return f"\\U{ord(letter):08x}" if ord(letter) > 0xFFFF else f"\\u{ord(letter):04x}"
