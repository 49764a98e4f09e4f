"""How DP-SGD draws its batches: what each way comes down to, and every mismatch that is refused."""

from fractions import Fraction
from typing import Any, cast

import pytest

import hockeystick as hs
from hockeystick import mechanisms as m
from hockeystick.mechanisms import schedules

SIZES = {"examples": 1000, "batch_size": 50, "epochs": 4, "noise_multiplier": 1.5}


def plan(**changes: Any) -> hs.DPSGD:
    return hs.DPSGD(**{**SIZES, **changes})


FULL, HALF, RATE = hs.Gaussian(1.5), hs.Gaussian(0.75), Fraction(1, 20)
CAPPED = m.TruncatedPoissonSubsampled(FULL, RATE, 90, 1000)
ALLOCATED = m.RandomAllocation(FULL, 20)
ZEROED = hs.PoissonSubsampled(FULL, RATE, "zero-out")
SHUFFLED = {"sampling": "shuffle", "adjacency": "zero-out"}
FIXED = {"sampling": "fixed-size"}
BY_RATE = {"rate": 0.05, "batch_size": None}
BATCH = {"clipping": "batch"}


@pytest.mark.parametrize(
    ("changes", "mechanism"),
    [
        ({}, hs.PoissonSubsampled(FULL, RATE) ** 80),
        ({"adjacency": "replace-one"}, hs.PoissonSubsampled(FULL, RATE, "replace-one") ** 80),
        (BATCH, hs.PoissonSubsampled(HALF, RATE) ** 80),
        ({"batch_cap": 90}, CAPPED**80),
        ({"batch_cap": 90, **BY_RATE}, CAPPED**80),
        # Of all examples, which are drawn for sure, a random set is kept.
        (
            {"batch_cap": 999, "batch_size": 1000},
            hs.FixedSizeSubsampled(HALF, 999, 1000, "add-remove") ** 4,
        ),
        ({"batch_cap": 1000, "batch_size": 1000}, FULL**4),
        ({**FIXED, "adjacency": "replace-one"}, hs.FixedSizeSubsampled(HALF, 50, 1000) ** 80),
        (FIXED, hs.FixedSizeSubsampled(HALF, 50, 1000, "add-remove") ** 80),
        (
            {**FIXED, "adjacency": "zero-out"},
            hs.FixedSizeSubsampled(HALF, 50, 1000, "zero-out", clipped=True) ** 80,
        ),
        (
            {**FIXED, **BATCH, "adjacency": "zero-out"},
            hs.FixedSizeSubsampled(HALF, 50, 1000, "zero-out") ** 80,
        ),
        (
            {"sampling": "with-replacement", "adjacency": "replace-one"},
            m.WithReplacementSubsampled(HALF, 50, 1000) ** 80,
        ),
        (SHUFFLED, hs.Shuffled(FULL, 20, "zero-out") ** 4),
        ({**SHUFFLED, "adjacency": "replace-one"}, hs.Shuffled(FULL, 20, "replace-one") ** 4),
        ({**SHUFFLED, **BATCH}, hs.Shuffled(FULL, 20, "zero-out", "batch") ** 4),
        (
            {**SHUFFLED, **BATCH, "adjacency": "replace-one"},
            hs.Shuffled(FULL, 20, "replace-one", "batch") ** 4,
        ),
        ({**SHUFFLED, "examples": 1010}, hs.Shuffled(FULL, 21, last_batch="smaller") ** 4),
        (
            {**SHUFFLED, "examples": 1010, "drop_last": True},
            hs.Shuffled(FULL, 20, last_batch="dropped") ** 4,
        ),
        # Nothing is left to drop, and a batch of one example has nothing beside it.
        ({**SHUFFLED, "drop_last": True}, hs.Shuffled(FULL, 20, "zero-out") ** 4),
        (
            {**SHUFFLED, **BATCH, "batch_size": 1, "examples": 20},
            hs.Shuffled(FULL, 20, "zero-out") ** 4,
        ),
        ({"sampling": "random-allocation"}, ALLOCATED**4),
        ({**BATCH, "sampling": "random-allocation"}, m.BatchClipped(ALLOCATED, 1000) ** 4),
        # Where the number of examples is public, the chance of company is that of so many.
        ({**BATCH, "adjacency": "zero-out"}, m.BatchClipped(ZEROED, 1000) ** 80),
        (
            {**BATCH, **BY_RATE, "adjacency": "zero-out", "examples": None},
            hs.PoissonSubsampled(HALF, RATE, "zero-out") ** 80,
        ),
        ({**FIXED, "batch_size": 1000}, FULL**4),
        ({"sampling": "full-batch", "batch_size": None}, FULL**4),
        ({"sampling": "full-batch", "batch_size": 1000, "adjacency": "replace-one"}, HALF**4),
        ({**BATCH, "sampling": "full-batch", "batch_size": None}, HALF**4),
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
            {**SHUFFLED, **BATCH, "examples": 1001},
            "the last of 1,001 examples in batches of 50 would be alone",
        ),
        ({"drop_last": True}, "sampling 'poisson' has no last batch"),
        ({"sampling": "random-allocation", "epochs": 2.5}, "use 40 or 60"),
        ({**SHUFFLED, "epochs": None, "steps": 81}, "use 80 or 100"),
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
    ],
    ids=str,
)
def test_a_mismatch_is_refused_with_the_reason_and_the_way_out(
    changes: dict[str, Any], reason: str
) -> None:
    with pytest.raises(hs.errors.IncompatibleError, match=reason):
        plan(**changes)


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda: schedules.Linear(0.0), "end must be a finite number > 0"),
        (lambda: schedules.Exponential(float("nan")), "end must be a finite number > 0"),
        (lambda: schedules.Cyclic(floor=0.0, cycles=1), "floor"),
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
