from collections.abc import Callable

import pytest

import hockeystick as hs
from hockeystick.io import PlanFile, load_plan

Write = Callable[[str | bytes], str]


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


def test_a_byte_order_mark_and_windows_line_ends_are_read(write: Write) -> None:
    text = "[dpsgd]\nrate = 0.01\nsteps = 9\nnoise_multiplier = 1\n"
    windows = b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode()
    assert load_plan(write(windows)) == load_plan(write(text))


@pytest.mark.parametrize(
    ("table", "encoder"),
    [
        ("{kind = 'square_root', rounds = 20}", hs.mechanisms.Encoder.square_root(20)),
        (
            "{kind = 'square_root', rounds = 20, bands = 3, participations = 2, separation = 5}",
            hs.mechanisms.Encoder.square_root(20, bands=3, participations=2, separation=5),
        ),
        (
            "{kind = 'toeplitz', coefficients = [1, 0.5], rounds = 9, participations = 3}",
            hs.mechanisms.Encoder.toeplitz([1, 0.5], 9, participations=3),
        ),
        (
            "{kind = 'banded_inverse', coefficients = [1, -0.5], rounds = 9, separation = 3}",
            hs.mechanisms.Encoder.banded_inverse([1, -0.5], 9, separation=3),
        ),
        (
            "{kind = 'buffered_toeplitz', scales = [0.5], decays = [0.25], rounds = 9}",
            hs.mechanisms.Encoder.buffered_toeplitz([0.5], [0.25], 9),
        ),
        (
            "{kind = 'tree', rounds = 100, participations = 3, separation = 30}",
            hs.mechanisms.Encoder.tree(100, participations=3, separation=30),
        ),
        (
            "{kind = 'matrix', matrix = [[1, 0], [-1, 2.5]], participations = 2}",
            hs.mechanisms.Encoder.of_matrix([[1, 0], [-1, 2.5]], participations=2),
        ),
    ],
)
def test_an_encoder_is_a_table_of_its_kind(
    write: Write, table: str, encoder: hs.mechanisms.Encoder
) -> None:
    release = "[[release]]\nmechanism = 'MatrixFactorization'\nnoise_multiplier = 4\n"
    plan = hs.mechanisms.MatrixFactorization(4, encoder)
    assert load_plan(write(f"{release}encoder = {table}")).plan == plan
    sampled = f"{{mechanism = 'MatrixFactorization', noise_multiplier = 4, encoder = {table}}}"
    nested = f"[[release]]\nmechanism = 'PoissonSubsampled'\nrate = 0.5\ninner = {sampled}"
    assert load_plan(write(nested)).plan == hs.PoissonSubsampled(plan, 0.5)


TRAINING = "[dpsgd]\nrate = 0.01\nsteps = 100\nnoise_multiplier = 1\n"


@pytest.mark.parametrize(
    "text", [f"zebra = 1\n{TRAINING}", f"{TRAINING}zebra = 1\n"], ids=["top", "table"]
)
def test_a_key_that_no_table_has_is_refused(write: Write, text: str) -> None:
    with pytest.raises(hs.errors.PlanFileError, match="unknown key 'zebra'"):
        load_plan(write(text))


def test_an_override_takes_the_place_of_a_value_of_the_file(write: Write) -> None:
    plan = load_plan(write(TRAINING), {"rate": 0.02}).plan
    assert plan == hs.DPSGD(rate=0.02, steps=100, noise_multiplier=1)
