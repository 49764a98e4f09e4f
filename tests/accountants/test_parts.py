"""Plans of which only a part has contour lines."""

import pytest

import hockeystick as hs

TRAINING = hs.PoissonSubsampled(hs.Gaussian(1.0), 0.01) ** 1000


@pytest.mark.parametrize(
    "guarantee",
    [hs.PureDP(0.01), hs.ApproxDP(0.1, 1e-7) ** 3, hs.ZCDP(1e-6), hs.RenyiDP({8: 1e-4})],
    ids=str,
)
def test_a_small_guarantee_changes_a_sharp_answer_little(guarantee: hs.Mechanism) -> None:
    alone = hs.epsilon(TRAINING, 1e-5)
    both = hs.epsilon(TRAINING @ guarantee, 1e-5)
    assert both.accountant in ("parts", "contour")
    assert alone.lower <= both.lower
    assert both.upper <= alone.upper + 0.35
    delta = hs.delta(TRAINING @ guarantee, 1.0)
    assert hs.delta(TRAINING, 1.0).lower <= delta.lower <= delta.upper
    assert delta.upper <= hs.delta(TRAINING, 0.65).upper


def test_the_bound_is_at_least_what_a_member_of_the_class_costs() -> None:
    for rho in (1e-3, 0.02, 0.5):
        worst = TRAINING @ hs.GDP((2.0 * rho) ** 0.5)
        bound = TRAINING @ hs.ZCDP(rho)
        for delta in (1e-3, 1e-5, 1e-9):
            assert hs.epsilon(bound, delta).upper >= hs.epsilon(worst, delta).lower
        for epsilon in (0.5, 2.0):
            assert hs.delta(bound, epsilon).upper >= hs.delta(worst, epsilon).lower


@pytest.mark.parametrize("plan", [TRAINING, hs.PureDP(1.0), hs.ZCDP(0.1) ** 3], ids=str)
def test_a_plan_of_one_kind_is_refused(plan: hs.Mechanism) -> None:
    with pytest.raises(
        hs.errors.UnsupportedError, match="parts known exactly and parts known by a bound only"
    ):
        hs.epsilon(plan, 1e-5, accountant="parts")
