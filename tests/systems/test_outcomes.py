"""Medians over seeds are medians, costs are rounded up, and what is not as accounted is named."""

import pytest

from tests.systems.programs import program

pytestmark = pytest.mark.extras


def test_medians_are_shown_with_their_spread_and_what_went_wrong() -> None:
    outcome = program("outcomes")
    runs = [
        outcome.Outcome("name", {"accuracy": share}, "plan", 2.0, 1e-4, {"rounds": share != 0.75})
        for share in (0.5, 1.0, 0.75)
    ]
    text = outcome.line(runs)
    assert "accuracy 0.750 [0.500, 1.000]" in text
    assert "(2.000, 0.0001)" in text
    assert "NOT AS ACCOUNTED: rounds" in text
    assert "as accounted" in outcome.line(runs[:2])
    assert "no privacy" in outcome.line([outcome.Outcome("name", {}, "", float("inf"), 0.0)])


@pytest.mark.parametrize(
    ("values", "shown"),
    [
        ((0.25,), "0.250"),
        ((3.0, 1.0, 8.0), "3 [1, 8]"),
        ((0.0, 1.0), "0.500 [0.000, 1.000]"),
        ((2.0, 1.5), "1.750 [1.500, 2.000]"),
        ((2.0, 5.0), "3.5 [2, 5]"),
    ],
)
def test_a_figure_is_shown_by_its_median_and_ends(values: tuple[float, ...], shown: str) -> None:
    assert str(program("outcomes").Spread(values)) == shown


@pytest.mark.parametrize(
    ("epsilons", "shown"), [((1.0, 0.5), "(1.000, 1e-05)"), ((0.1221, 0.1), "(0.123, 1e-05)")]
)
def test_the_cost_is_the_largest_of_the_runs_rounded_up(
    epsilons: tuple[float, ...], shown: str
) -> None:
    outcome = program("outcomes")
    assert outcome.cost([outcome.Outcome("", {}, "", one, 1e-5) for one in epsilons]) == shown
