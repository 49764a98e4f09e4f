"""Plan files: what they say is read and saved as it was; what is wrong is said by a key's path."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

import hockeystick as hs
from hockeystick.io import PlanFile, load_plan

Write = Callable[[str | bytes], str]

DPSGD = "[dpsgd]\nrate = 0.01\nsteps = 100\nnoise_multiplier = 1\n"


def test_a_file_can_say_everything(write: Write) -> None:
    path = write("""
        title = "A run"
        source = "Somewhere"
        notes = "Mind the gap"
        delta = 1e-5
        epsilon = 2
        [dpsgd]
        examples = 1_000
        batch_size = 10
        epochs = 2.5
        noise_multiplier = 1.5
        adjacency = "zero-out"
        [[release]]
        mechanism = "PoissonSubsampled"
        rate = 0.25
        adjacency = "zero-out"
        inner = {mechanism = "Gaussian", noise_multiplier = 3}
        repeat = 4
        [[release]]
        mechanism = "Composed"
        parts = [
            {mechanism = "Gaussian", noise_multiplier = 5},
            {mechanism = "Repeated", count = 2, inner = {mechanism = "Composed", parts = [
                {mechanism = "Gaussian", noise_multiplier = 6},
            ]}},
        ]
    """)
    training = hs.DPSGD(
        examples=1000, batch_size=10, epochs=2.5, noise_multiplier=1.5, adjacency="zero-out"
    )
    sampled = hs.PoissonSubsampled(hs.Gaussian(3), 0.25, "zero-out") ** 4
    plan = training @ sampled @ (hs.Gaussian(5) @ hs.Composed((hs.Gaussian(6),)) ** 2)
    assert load_plan(path) == PlanFile(
        plan=plan, title="A run", source="Somewhere", notes="Mind the gap", delta=1e-5, epsilon=2
    )


def test_repeat_0_releases_nothing(write: Write) -> None:
    text = "[[release]]\nmechanism = 'Gaussian'\nnoise_multiplier = 2\nrepeat = 0"
    assert load_plan(write(text)).plan == hs.Gaussian(2) ** 0


FACTORIZATION = "[[release]]\nmechanism = 'MatrixFactorization'\nnoise_multiplier = 1\n"
ENCODER = FACTORIZATION + "[release.encoder]\n"

FILES = [
    (b" ", "needs a table [dpsgd], or [[release]]"),
    (
        "# first\ndelta = 0.001%",
        "valid TOML or JSON: Expected newline or end of document after a statement (at line 2",
    ),
    ("delta = 1e-5\n[dpsgd\nrate = 1", "(at line 2, column 7)"),
    (b"title = '\xff'", "codec can't decode byte"),
    (b"#" * 2_000_000, "at most 1 MB long"),
    ("x = " + "[" * 50_000, "nested too deeply"),
    ("delta = " + "9" * 10_000, "has 10000 digits"),
    (
        f"zebra = 1e-5\n{DPSGD}",
        "unknown key zebra; allowed are title, source, notes, delta, epsilon, dpsgd, release",
    ),
    (DPSGD + "delta = 1e-5", "unknown key dpsgd.delta; allowed are noise_multiplier, examples"),
    (DPSGD.replace("steps = 100\n", ""), ": dpsgd: epochs or steps must be given"),
    (f"{DPSGD}[[release]]\nscale = 1", ": unknown release[0].mechanism None; hockeystick init"),
    (
        DPSGD.replace("100", "[1.5, true]"),
        "dpsgd.steps must be an integer from 0 to 10^15; got (1.5, True)",
    ),
    (f"title = 3\n{DPSGD}", "title must be a text in quotes; got 3"),
    (f"delta = 'x'\n{DPSGD}", "delta must be a number from 0 to 1; got 'x'"),
    ("dpsgd = 3", "dpsgd must be a table"),
    ("[dpsgd]\nrate = 0.1\nsteps = 9", "dpsgd needs noise_multiplier, a number >= 0 or inf"),
    (DPSGD + "batch_size = 3", "dpsgd: give batch_size or rate, not both; got batch"),
    (DPSGD.replace("0.01", "1e-400"), "from 0 to 1, within the range of a float; got 1E-400"),
    (
        "[[release]]\nmechanism = 'Gaussian'\nnoise_multiplier = 1\nrepeat = 0.5",
        "release[0].repeat must be an integer from 0 to 10^15; got 0.5",
    ),
    (
        "[[release]]\nmechanism = 'PoissonSubsampled'\nrate = 0.1\ninner = 'Gaussian'",
        "release[0].inner must be a mechanism; got 'Gaussian'",
    ),
    (
        DPSGD + "[[release]]\nmechanism = 'PoissonSubsampled'\nrate = 0.1\n"
        "adjacency = 'zero-out'\ninner = {mechanism = 'Gaussian', noise_multiplier = 1}",
        "must be described under one adjacency",
    ),
    (
        "[[release]]\n"
        + "mechanism = 'Repeated'\ncount = 1\ninner = {" * 1
        + "mechanism = 'Repeated', count = 1, inner = {" * 20
        + "mechanism = 'Gaussian', noise_multiplier = 1"
        + "}" * 21,
        "nested at most 16 deep",
    ),
    (
        "[[release]]\nmechanism = 'Gauss'",
        "unknown release[0].mechanism 'Gauss' (did you mean 'Gaus",
    ),
    ("[[release]]\nmechanism = 'Skellam'", "release[0] needs variance"),
    (FACTORIZATION + "encoder = 'x'", "release[0].encoder must be an Encoder"),
    (ENCODER, "unknown release[0].encoder.kind None; must be one of tree, "),
    (
        ENCODER + "kind = 'square_root'\nrounds = -1",
        "release[0].encoder.rounds must be an integer from 1 to 1000000; got -1",
    ),
]


@pytest.mark.parametrize(("content", "told"), FILES, ids=[told for _, told in FILES])
def test_what_is_wrong_is_said_by_the_path_of_a_key(
    write: Write, content: str | bytes, told: str
) -> None:
    path = write(content)
    with pytest.raises(hs.errors.PlanFileError) as refusal:
        load_plan(path)
    assert str(refusal.value).startswith(f"{path}: ")
    assert told in str(refusal.value)


def test_an_override_takes_the_place_of_a_value_of_the_file(write: Write) -> None:
    plan = load_plan(write(DPSGD), {"rate": 0.02}).plan
    assert plan == hs.DPSGD(rate=0.02, steps=100, noise_multiplier=1)


@pytest.mark.parametrize("delta", ["x", [1], 10**400], ids=["text", "list", "large"])
def test_what_an_answer_asked_at_is_refused_in_one_line(write: Write, delta: Any) -> None:
    whole = {"description": {"type": "Gaussian", "noise_multiplier": 1}, "at": {"delta": delta}}
    with pytest.raises(hs.errors.PlanFileError, match="delta must be a number from 0 to 1"):
        load_plan(write(json.dumps(whole)))
