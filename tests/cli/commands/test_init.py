from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hockeystick.answers import suggested_delta, units_of
from hockeystick.io import load_plan, parse_plan
from hockeystick.io.plan_file import plan_in
from hockeystick.io.templates import template_of
from hockeystick.io.vocabulary import RELEASES

Run = Callable[..., Any]


def test_a_template_is_a_plan_of_which_every_key_has_a_comment(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    status, out, err = run("init", str(path))
    assert (status, err) == (0, "")
    assert out == f"{path} is written; hockeystick check {path} says what it means\n"
    plan = load_plan(path).plan
    assert (plan.noise_multiplier, plan.epochs) == (1.1, 60)  # type: ignore[attr-defined]
    table = path.read_text(encoding="utf-8").partition("[dpsgd]\n")[2].partition("\n\n")[0]
    assert all("  # " in line for line in table.splitlines())


@pytest.mark.parametrize("name", RELEASES)
def test_every_mechanism_and_notion_has_a_template(name: str) -> None:
    text = template_of(name)
    assert plan_in(text.encode(), name).delta == 1e-5
    plain = {"DPSGD": "[dpsgd]", "Composed": "[[release]]", "Repeated": "repeat = 30"}
    assert plain.get(name, f'mechanism = "{name}"') in text


PLANS = (
    "Laplace(2)**5",
    "DPSGD(examples=250000, batch_size=1000, epochs=20, noise_multiplier=0.9) @ Gaussian(4)**2",
    "PoissonSubsampled(Gaussian(3), 0.01)**5 @ MatrixFactorization(4, Encoder.tree(9))",
    "FedSDP(total_clients=10000, clients_per_round=100, rounds=9, noise_multiplier=1, "
    "sampling='poisson')",
)


@pytest.mark.parametrize("plan", PLANS)
def test_a_plan_that_is_written_out_becomes_a_file_with_title_delta_and_comments(
    run: Run, tmp_path: Path, plan: str
) -> None:
    path = tmp_path / "a.toml"
    assert run("init", str(path), plan).status == 0
    file = load_plan(str(path))
    assert file.plan == parse_plan(plan)
    assert file.title in ("My Laplace", "My plan", "My FedSDP")
    units = units_of(file.plan)
    assert file.delta == (1e-5 if units is None else suggested_delta(units))
    lines = path.read_text(encoding="utf-8").split("\n")
    top = [index for index, one in enumerate(lines) if one.startswith(("[[release]]", "[dpsgd]"))]
    keys = [
        index
        for index, one in enumerate(lines[: _nested(lines)])
        if index > top[0] and " = " in one and one[0] != "#" and not one.startswith("mechanism")
    ]
    assert keys
    assert all(lines[index - 1].startswith("# ") for index in keys)


def _nested(lines: list[str]) -> int | None:
    """Return where the first table within a release begins: its keys have no comments."""
    return next((at for at, one in enumerate(lines) if one.startswith("[release.")), None)
