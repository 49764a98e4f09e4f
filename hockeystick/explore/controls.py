"""What moves a plan on the page: its sliders, with the round numbers they stop at, and choices."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, final

from hockeystick.adjacency import Adjacency
from hockeystick.explore.state import State
from hockeystick.mechanisms import DPSGD, Sampling
from hockeystick.numerics.numerals import plain

# Round numbers of one decade: each is within a few per cent of the next.
_FINE: Final = (
    *(100 + 2 * k for k in range(50)),
    *(200 + 5 * k for k in range(60)),
    *(500 + 10 * k for k in range(50)),
)
_COARSE: Final = (100, 120, 150, 200, 250, 300, 400, 500, 600, 800)
_DELTAS: Final = (100, 200, 500)
_MOST_BATCH: Final = 65_536
_NOISES: Final = (0.3, 30.0)
_RATES: Final = (1e-5, 1.0)
_EPOCHS: Final = (1.0, 1000.0)
_STEPS: Final = (1.0, 1e6)
_PROBABILITIES: Final = (1e-12, 0.01)


@final
@dataclass(frozen=True, slots=True)
class Slider:
    """A number of the plan, and the values that a slider stops at.

    Args:
        name: What ``moved`` calls it.
        label: What people call it.
        values: Where the slider stops, in increasing order; the present value is one of them.
        value: The present value.
        help: What it is, in a few words.
    """

    name: str
    label: str
    values: tuple[float, ...]
    value: float
    help: str

    @property
    def texts(self) -> tuple[str, ...]:
        """The values as people write them."""
        return tuple(map(plain, self.values))


@final
@dataclass(frozen=True, slots=True)
class Choice:
    """A word of the plan, one of a few."""

    name: str
    label: str
    options: tuple[str, ...]
    value: str


def sliders_of(state: State) -> tuple[Slider, ...]:
    """Return the sliders of a plan: delta, and the numbers of its training run if it has one.

    Example:
        >>> from hockeystick.explore.controls import sliders_of
        >>> from hockeystick.explore.state import USUAL, State
        >>> [slider.name for slider in sliders_of(State(USUAL))]
        ['noise_multiplier', 'batch_size', 'epochs', 'delta']
    """
    own = () if state.training is None else _of_training(state.training)
    delta = _slider("delta", "Delta", state.delta, _PROBABILITIES, _DELTAS, "probability")
    return (*own, delta)


def choices_of(state: State) -> tuple[Choice, ...]:
    """Return what can be chosen of a training run: how batches are drawn, and the neighbours."""
    training = state.training
    if training is None:
        return ()
    return (
        Choice("sampling", "Sampling", tuple(map(str, Sampling)), str(training.sampling)),
        Choice("adjacency", "Adjacency", tuple(map(str, Adjacency)), str(training.adjacency)),
    )


def _of_training(training: DPSGD) -> tuple[Slider, ...]:
    """Return the sliders of a training run: noise, batches and length, as the plan gives them."""
    noise = _slider(
        "noise_multiplier",
        "Noise multiplier",
        training.noise_multiplier,
        _NOISES,
        _FINE,
        "standard deviation over the clipping norm",
    )
    return (noise, _batches(training), _length(training))


def _batches(training: DPSGD) -> Slider:
    """Return the slider of the batch size, or of the rate where the plan has that."""
    if training.batch_size is None or training.examples is None:
        rate = training.sampling_rate
        return _slider("rate", "Sampling rate", rate, _RATES, _COARSE, "of an example, per step")
    most = min(training.examples, _MOST_BATCH)
    powers = {2.0**k for k in range(4, 17) if 2**k <= most}
    own = {float(training.batch_size)}
    values = sorted({*_grid((1.0, float(most)), _COARSE, whole=True), *powers, *own})
    value = float(training.batch_size)
    return Slider("batch_size", "Batch size", tuple(values), value, "expected, in examples")


def _length(training: DPSGD) -> Slider:
    """Return the slider of the epochs, or of the steps where the plan has these."""
    if training.epochs is None:
        steps = float(training.total_steps)
        return _slider("steps", "Steps", steps, _STEPS, _COARSE, "of the whole run", whole=True)
    about = "passes over the data"
    return _slider("epochs", "Epochs", training.epochs, _EPOCHS, _COARSE, about, whole=True)


def _slider(
    name: str,
    label: str,
    value: float,
    ends: tuple[float, float],
    mantissas: Iterable[int],
    about: str,
    *,
    whole: bool = False,
) -> Slider:
    """Return a slider over round numbers and the present value."""
    own = {value} if value < math.inf else set()
    values = sorted({*_grid(ends, mantissas, whole=whole), *own})
    return Slider(name, label, tuple(values), value, about)


def _grid(ends: tuple[float, float], mantissas: Iterable[int], *, whole: bool) -> set[float]:
    """Return the round numbers between two ends, each the float that its decimal means."""
    low, high = ends
    decades = range(math.floor(math.log10(low)) - 1, math.ceil(math.log10(high)) + 1)
    numbers = {float(f"{m}e{k - 2}") for k in decades for m in mantissas}
    return {one for one in numbers if low <= one <= high and (not whole or one.is_integer())}
