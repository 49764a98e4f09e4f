"""What a budget buys: the noise that it needs against the length of a training and its batches."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any, Final, final

from hockeystick.calibration.solve.targets import Target
from hockeystick.calibration.sweeps.questions import Solve, with_fields
from hockeystick.calibration.sweeps.sweep import sweep
from hockeystick.errors import ParameterError
from hockeystick.mechanisms import DPSGD
from hockeystick.results import Rows

_TOLERANCE: Final = 1e-7


@final
@dataclass(frozen=True, slots=True)
class FrontierPoint:
    """The least noise for one length and one batch size.

    ``plan`` has that noise and meets the target; ``achieved`` is proven of it, an upper end. Both
    are None, and ``reason`` says why, where there is no such plan.
    """

    epochs: float
    batch_size: int
    plan: DPSGD | None
    achieved: float | None
    reason: str

    @property
    def noise_multiplier(self) -> float | None:
        """The standard deviation of the noise on a batch's sum, over the clipping norm."""
        return None if self.plan is None else self.plan.noise_multiplier

    @property
    def noise_on_mean(self) -> float | None:
        """The standard deviation of the noise on a batch's mean, over the clipping norm."""
        return None if self.plan is None else self.plan.noise_multiplier / self.batch_size

    @property
    def steps(self) -> int | None:
        """The number of steps."""
        return None if self.plan is None else self.plan.total_steps

    def as_dict(self) -> dict[str, Any]:
        """Return the point as columns."""
        names = "batch_size epochs steps noise_multiplier noise_on_mean achieved reason"
        return {name: getattr(self, name) for name in names.split()}


def frontier(
    plan: DPSGD,
    target: Target,
    *,
    epochs: Iterable[float],
    batch_sizes: Iterable[int],
    executor: Executor | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Rows[FrontierPoint]:
    """Return, for each batch size and length, the least noise with which a plan meets a target.

    Guarantees:
        Each point's ``plan`` meets the target, provably; its noise is least up to one part in ten
        million wherever the interval of its answer is narrower than that.

    Edge cases:
        A combination that is no plan (a batch of more than all examples, an epoch that is no whole
        number of shuffled batches), or that no noise makes meet the target, has the reason.

    Args:
        plan: The rest of the plan; its length, batch size and noise do not matter.
        target: What to meet, as for ``hs.calibrate``.
        epochs: Lengths in passes over the data, each >= 0.
        batch_sizes: Batch sizes, each an integer >= 1.
        executor: As for ``hs.sweep``, as is ``progress``.
        progress: See there.

    Example:
        >>> import hockeystick as hs
        >>> plan = hs.DPSGD(noise_multiplier=1, examples=60_000, batch_size=256, epochs=1)
        >>> target = hs.ApproxDP(epsilon=2, delta=1e-5)
        >>> for one in hs.calibration.frontier(
        ...     plan, target, epochs=[1, 10], batch_sizes=[256, 1024]
        ... ):
        ...     print(one.batch_size, one.epochs, f"{one.noise_multiplier:.4f}", one.steps)
        256 1 0.6564 235
        256 10 0.7861 2344
        1024 1 0.8030 59
        1024 10 1.1248 586
    """
    if not isinstance(plan, DPSGD):
        raise ParameterError("plan", plan, "a DPSGD")
    ask = Solve(plan, "noise_multiplier", target, tolerance=_TOLERANCE)
    grid = {"batch_size": tuple(batch_sizes), "epochs": tuple(epochs)}
    return Rows(_point(plan, row) for row in sweep(grid, ask, executor, progress=progress))


def _point(plan: DPSGD, row: dict[str, Any]) -> FrontierPoint:
    place = {name: row[name] for name in ("epochs", "batch_size")}
    if row["error"] is not None:
        return FrontierPoint(**place, plan=None, achieved=None, reason=row["error"])
    solved: Any = with_fields(plan, {**place, "noise_multiplier": row["value"]})
    return FrontierPoint(**place, plan=solved, achieved=row["achieved_upper"], reason="")
