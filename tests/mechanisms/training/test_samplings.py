"""How DP-SGD draws its batches: what each way comes down to, and every mismatch that is refused."""

from fractions import Fraction
from typing import Any, cast

import pytest

import hockeystick as hs
from hockeystick.mechanisms import schedules

SIZES = {"examples": 1000, "batch_size": 50, "epochs": 4, "noise_multiplier": 1.5}


def plan(**changes: Any) -> hs.DPSGD:
    return hs.DPSGD(**{**SIZES, **changes})


@pytest.mark.parametrize(
    ("changes", "mechanism"),
    [
        ({}, hs.PoissonSubsampled(hs.Gaussian(1.5), Fraction(1, 20)) ** 80),
        (
            {"adjacency": "replace-one"},
            hs.PoissonSubsampled(hs.Gaussian(1.5), Fraction(1, 20), "replace-one") ** 80,
        ),
        ({"clipping": "batch"}, hs.PoissonSubsampled(hs.Gaussian(0.75), Fraction(1, 20)) ** 80),
        (
            {"batch_cap": 90},
            hs.mechanisms.TruncatedPoissonSubsampled(hs.Gaussian(1.5), Fraction(1, 20), 90, 1000)
            ** 80,
        ),
        (
            {"batch_cap": 90, "rate": 0.05, "batch_size": None},
            hs.mechanisms.TruncatedPoissonSubsampled(hs.Gaussian(1.5), Fraction(1, 20), 90, 1000)
            ** 80,
        ),
        # Of all examples, which are drawn for sure, a random set is kept.
        (
            {"batch_cap": 999, "batch_size": 1000},
            hs.FixedSizeSubsampled(hs.Gaussian(0.75), 999, 1000, "add-remove") ** 4,
        ),
        ({"batch_cap": 1000, "batch_size": 1000}, hs.Gaussian(1.5) ** 4),
        (
            {"sampling": "fixed-size", "adjacency": "replace-one"},
            hs.FixedSizeSubsampled(hs.Gaussian(0.75), 50, 1000) ** 80,
        ),
        (
            {"sampling": "fixed-size"},
            hs.FixedSizeSubsampled(hs.Gaussian(0.75), 50, 1000, "add-remove") ** 80,
        ),
        (
            {"sampling": "fixed-size", "adjacency": "zero-out"},
            hs.FixedSizeSubsampled(hs.Gaussian(0.75), 50, 1000, "zero-out", clipped=True) ** 80,
        ),
        (
            {"sampling": "fixed-size", "adjacency": "zero-out", "clipping": "batch"},
            hs.FixedSizeSubsampled(hs.Gaussian(0.75), 50, 1000, "zero-out") ** 80,
        ),
        (
            {"sampling": "with-replacement", "adjacency": "replace-one"},
            hs.mechanisms.WithReplacementSubsampled(hs.Gaussian(0.75), 50, 1000) ** 80,
        ),
        (
            {"sampling": "shuffle", "adjacency": "zero-out"},
            hs.Shuffled(hs.Gaussian(1.5), 20, "zero-out") ** 4,
        ),
        (
            {"sampling": "shuffle", "adjacency": "replace-one"},
            hs.Shuffled(hs.Gaussian(1.5), 20, "replace-one") ** 4,
        ),
        (
            {"sampling": "shuffle", "adjacency": "zero-out", "clipping": "batch"},
            hs.Shuffled(hs.Gaussian(1.5), 20, "zero-out", "batch") ** 4,
        ),
        (
            {"sampling": "shuffle", "adjacency": "replace-one", "clipping": "batch"},
            hs.Shuffled(hs.Gaussian(1.5), 20, "replace-one", "batch") ** 4,
        ),
        (
            {"sampling": "shuffle", "adjacency": "zero-out", "examples": 1010},
            hs.Shuffled(hs.Gaussian(1.5), 21, last_batch="smaller") ** 4,
        ),
        (
            {"sampling": "shuffle", "adjacency": "zero-out", "examples": 1010, "drop_last": True},
            hs.Shuffled(hs.Gaussian(1.5), 20, last_batch="dropped") ** 4,
        ),
        (
            # Nothing is left to drop.
            {"sampling": "shuffle", "adjacency": "zero-out", "drop_last": True},
            hs.Shuffled(hs.Gaussian(1.5), 20, "zero-out") ** 4,
        ),
        (
            # A batch of one example has nothing beside it.
            {
                "sampling": "shuffle",
                "adjacency": "zero-out",
                "clipping": "batch",
                "batch_size": 1,
                "examples": 20,
            },
            hs.Shuffled(hs.Gaussian(1.5), 20, "zero-out") ** 4,
        ),
        (
            {"sampling": "random-allocation"},
            hs.mechanisms.RandomAllocation(hs.Gaussian(1.5), 20) ** 4,
        ),
        (
            {"sampling": "random-allocation", "clipping": "batch"},
            hs.mechanisms.BatchClipped(hs.mechanisms.RandomAllocation(hs.Gaussian(1.5), 20), 1000)
            ** 4,
        ),
        (
            # Where the number of examples is public, the chance of company is that of so many.
            {"clipping": "batch", "adjacency": "zero-out"},
            hs.mechanisms.BatchClipped(
                hs.PoissonSubsampled(hs.Gaussian(1.5), Fraction(1, 20), "zero-out"), 1000
            )
            ** 80,
        ),
        (
            {
                "clipping": "batch",
                "adjacency": "zero-out",
                "rate": 0.05,
                "examples": None,
                "batch_size": None,
            },
            hs.PoissonSubsampled(hs.Gaussian(0.75), Fraction(1, 20), "zero-out") ** 80,
        ),
        ({"sampling": "fixed-size", "batch_size": 1000}, hs.Gaussian(1.5) ** 4),
        ({"sampling": "full-batch", "batch_size": None}, hs.Gaussian(1.5) ** 4),
        (
            {"sampling": "full-batch", "batch_size": 1000, "adjacency": "replace-one"},
            hs.Gaussian(0.75) ** 4,
        ),
        (
            {"sampling": "full-batch", "batch_size": None, "clipping": "batch"},
            hs.Gaussian(0.75) ** 4,
        ),
    ],
    ids=str,
)
def test_a_plan_is_the_mechanism_of_its_sampling(
    changes: dict[str, Any], mechanism: hs.Mechanism
) -> None:
    assert plan(**changes).mechanism == mechanism


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        # A shuffled loader is not Poisson sampling, nor neighbours of another size.
        ({"sampling": "shuffle"}, "no analysis under add-remove; use adjacency zero-out or"),
        ({"sampling": "random-allocation", "adjacency": "replace-one"}, "no analysis under rep"),
        ({"sampling": "with-replacement"}, "no analysis under add-remove; use adjacency replace"),
        # What is clipped decides how far one example moves a sum.
        ({"clipping": "batch", "adjacency": "replace-one"}, "use add-remove"),
        (
            {"sampling": "with-replacement", "adjacency": "replace-one", "clipping": "batch"},
            "use individual clipping",
        ),
        ({"batch_cap": 60, "clipping": "batch"}, "use individual clipping"),
        ({"batch_cap": 60, "sampling": "fixed-size"}, "batch_cap cuts Poisson batches"),
        # Ragged last batches, and parts of epochs.
        ({"sampling": "random-allocation", "examples": 1010}, r"drop these \(examples = 1000\)"),
        (
            {"sampling": "shuffle", "adjacency": "zero-out", "examples": 1001, "clipping": "batch"},
            "the last of 1,001 examples in batches of 50 would be alone",
        ),
        ({"drop_last": True}, "sampling 'poisson' has no last batch"),
        ({"sampling": "random-allocation", "epochs": 2.5}, "use 40 or 60"),
        (
            {"sampling": "shuffle", "adjacency": "zero-out", "epochs": None, "steps": 81},
            "use 80 or 100",
        ),
        # Batches smaller than the data are drawn somehow.
        ({"sampling": "full-batch"}, "name how smaller batches are drawn"),
        # A rate says how Poisson batches are drawn, not how large others are.
        *(
            (
                {"sampling": one, "batch_size": None, "rate": 0.05, "adjacency": "replace-one"},
                "only Poisson sampling knows a rate without sizes",
            )
            for one in ("fixed-size", "with-replacement")
        ),
        # A schedule that changes what is analysed as one.
        (
            {"sampling": "random-allocation", "schedule": schedules.Linear(0.5)},
            "keep the noise for whole epochs of 20 steps",
        ),
        ({"batch_schedule": schedules.Linear(2.0)}, "sampling 'poisson' and the number of steps"),
        (
            {
                "batch_schedule": schedules.Linear(2.0),
                "sampling": "fixed-size",
                "epochs": None,
                "steps": 10,
            },
            "sampling 'poisson' and the number of steps",
        ),
    ],
    ids=str,
)
def test_a_mismatch_is_refused_with_the_reason_and_the_way_out(
    changes: dict[str, Any], reason: str
) -> None:
    with pytest.raises(hs.errors.IncompatibleError, match=reason):
        plan(**changes)


@pytest.mark.parametrize(
    "schedule",
    [
        schedules.Constant(),
        schedules.Linear(0.5),
        schedules.Exponential(0.25),
        schedules.Staircase(0.5, 4),
        schedules.Cyclic(0.3, 5),
        schedules.Piecewise([(60, 1.0), (20, 0.5)]),
        schedules.Values([1.0] * 79 + [0.5]),
    ],
    ids=str,
)
def test_a_schedule_is_the_composition_of_its_steps(schedule: schedules.Schedule) -> None:
    scheduled = plan(schedule=schedule)
    noise = scheduled.noise_multipliers
    assert noise.size == 80
    assert noise[0] == 1.5
    composed = hs.Composed(
        tuple(hs.PoissonSubsampled(hs.Gaussian(one), Fraction(1, 20)) for one in noise.tolist())
    )
    assert hs.epsilon(scheduled, 1e-5).upper == pytest.approx(
        hs.epsilon(composed, 1e-5).upper, rel=1e-9
    )
    assert "80 steps" in str(scheduled)


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda: schedules.Linear(0.0), "end must be a finite number > 0"),
        (lambda: schedules.Exponential(float("nan")), "end must be a finite number > 0"),
        (lambda: schedules.Staircase(0.5, 0), "stairs must be an integer"),
        (lambda: schedules.Piecewise([(0, 1.0)]), "segments: steps must be an integer"),
        (lambda: schedules.Piecewise(cast(Any, [1.0])), "pairs of a number of steps and a factor"),
        (lambda: schedules.Values([1.0, -1.0]), "values must be a finite number > 0"),
        (lambda: schedules.Values(cast(Any, 3)), "a list of positive numbers"),
        (lambda: plan(schedule=schedules.Values([1.0])).mechanism, "a value for each of 80 steps"),
        (lambda: plan(schedule=schedules.Piecewise([(9, 1.0)])).mechanism, "of 80 steps in all"),
    ],
)
def test_a_wrong_schedule_is_refused(make: Any, reason: str) -> None:
    with pytest.raises(hs.errors.ParameterError, match=reason):
        make()
