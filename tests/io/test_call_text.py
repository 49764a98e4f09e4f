"""Plans and numbers that are written out as in Python: what is read, and that nothing is run."""

import ast
from decimal import Decimal

import pytest

import hockeystick as hs
from hockeystick.errors import PlanFileError
from hockeystick.io import parse_plan
from hockeystick.io.call_text import is_call_text, parse
from hockeystick.io.codec import RELEASES
from tests.examples import documented, made


def test_every_call_of_the_documentation_that_stands_alone_is_read_as_python_reads_it() -> None:
    read = 0
    for name in RELEASES:
        try:
            text = documented(name)
        except LookupError:
            continue
        if not _stands_alone(text):
            continue
        assert parse_plan(text) == made(text)
        read += 1
    assert read > 30


def _stands_alone(text: str) -> bool:
    """Whether a call names nothing but what the package has."""
    nodes = list(ast.walk(ast.parse(text)))
    names = {node.id for node in nodes if isinstance(node, ast.Name)}
    unpacks = any(isinstance(node, ast.keyword) and node.arg is None for node in nodes)
    return names <= {"hs", "inf"} and not unpacks


@pytest.mark.parametrize(
    ("text", "plan"),
    [
        ("Laplace(2)**3 @ Gaussian(4)", hs.Laplace(2) ** 3 @ hs.Gaussian(4)),
        ("(Laplace(2) @ Gaussian(4)) ** 3", (hs.Laplace(2) @ hs.Gaussian(4)) ** 3),
        ("Gaussian(1) @ Gaussian(2) @ Laplace(3)", hs.Gaussian(1) @ hs.Gaussian(2) @ hs.Laplace(3)),
        (
            "Gaussian(1) @ (Gaussian(2) @ Laplace(3))",
            hs.Gaussian(1) @ hs.Gaussian(2) @ hs.Laplace(3),
        ),
        (
            "PoissonSubsampled(Gaussian(1.1), rate=256 / 60_000) ** 9",
            hs.PoissonSubsampled(hs.Gaussian(1.1), rate=256 / 60_000) ** 9,
        ),
        (
            "DPSGD(noise_multiplier=1, rate=.1, steps=9, schedule=Exponential(end=.5))",
            hs.DPSGD(
                noise_multiplier=1, rate=0.1, steps=9, schedule=hs.schedules.Exponential(end=0.5)
            ),
        ),
        (" Gaussian(inf)\n", hs.Gaussian(float("inf"))),
        ("@".join(["Gaussian(1)"] * 800), hs.Composed([hs.Gaussian(1)] * 800)),
    ],
)
def test_a_text_means_what_it_means_in_python(text: str, plan: hs.Mechanism) -> None:
    assert is_call_text(text)
    assert parse_plan(text) == plan


UNKNOWN = "unknown mechanism or notion "


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("__import__('os').system('true')", UNKNOWN),
        ("Laplace(__import__('os'))", "unknown scale '__import__'"),
        ("Laplace((1).real)", "'(1).real' may not stand here"),
        ("Laplace([x for x in (1,)])", "may not stand here"),
        ("Laplace(10**10**10)", "'10**10' may not stand here"),
        ("Gaussian(inf / 2)", "'inf / 2' cannot be computed"),
        ("Laplace(1 / 0)", "'1 / 0' cannot be computed"),
        ("Gaussian(2 * 1e-400)", "'2 * 1e-400' may not stand here"),
        ("Gaussian(1e-400)", "within the range of a float; got 1E-400"),
        ("Gaussian(4)^10", "write for example 'Laplace(2)**3 @ Gaussian(4)'"),
        ("DiscreteGaussian(3, 1.5)", "a record in k cells, each changed by 1"),
        ("Laplace(2) ** .5", "count must be an integer from 0 to 10^15; got 0.5"),
        ("Laplace(2) @ Gaussian(-4)", "parts[1].noise_multiplier must be a number >= 0 or inf"),
        ("Laplace()", "Laplace needs scale, a number >= 0 or inf"),
        ("Laplace(scael=1)", "unknown key Laplace.scael (did you mean 'scale'?)"),
        ("Laplace(1, scale=2)", "Laplace takes scale: each once"),
        ("Laplace(**1)", "Laplace takes scale: each once"),
        ("PoissonSubsampled(2, 0.1)", "PoissonSubsampled.inner must be a mechanism; got 2"),
        ('FedSDP(100, 10000, 1000, 1, "poisson")', "each once, 0 at most without a name"),
        ("zCDP(1)", f"{UNKNOWN}'zCDP' (did you mean 'ZCDP'?)"),
        ("np.mechanisms.Gaussian(1)", f"{UNKNOWN}'np.mechanisms.Gaussian'"),
        ("FDP(1)", f"{UNKNOWN}'FDP'; hockeystick init --list has all"),
        ("2 / 3", "this is no mechanism"),
        ("Laplace(sqrt(2))", "unknown scale 'sqrt'"),
        ("Laplace(" + "[" * 30 + "]" * 30 + ")", "Laplace.scale must be a number >= 0 or inf"),
        ("(" * 30 + "Laplace(1)" + ")**2" * 30, "nested at most 16 deep"),
        ("Laplace(1" + "/1" * 900 + ")", "this is no plan"),
        ("Laplace(-None)", "'-None' may not stand here"),
        ("Laplace(" + "1" * 11_000 + ")", "at most 10000 characters"),
        ("Laplace(" + "1" * 5_000 + ")", "this is no plan"),
    ],
)
def test_nothing_else_is_read_and_the_error_says_what_is_wrong(text: str, reason: str) -> None:
    with pytest.raises(PlanFileError) as refusal:
        parse_plan(text)
    assert reason in str(refusal.value)


def test_a_number_may_be_a_quotient() -> None:
    assert parse_plan("Gaussian(-3 / -7)") == hs.Gaussian(3 / 7)
    assert parse_plan("Laplace(2) ** (9 / 3)") == hs.Laplace(2) ** 3


def test_an_override_replaces_its_alternative_and_is_blamed_itself() -> None:
    text = "DPSGD(noise_multiplier=1, examples=1000, batch_size=10, epochs=3)"
    plan = hs.DPSGD(noise_multiplier=1, examples=1000, rate=0.02, epochs=3)
    assert parse_plan(text, {"rate": 0.02}) == plan
    with pytest.raises(hs.errors.ParameterError, match="rate must be a number from 0 to 1; got 2"):
        parse_plan(text, {"rate": 2})
    with pytest.raises(PlanFileError, match="no DPSGD alone in which to override steps"):
        parse_plan("Gaussian(1)", {"steps": 2})


def test_what_floats_cannot_hold_stays_exact() -> None:
    assert (parse("1e-400"), parse("1e400")) == (Decimal("1e-400"), Decimal("1e400"))
