"""The noise that a loop really adds: that of two runs of its own, on the same batches and weights.

Where N and N' are independent normal vectors of deviation z, so is ``(N - N')/sqrt(2)``, and by
Cramer's theorem only then. The sum of gradients, which both runs have in common, falls out.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy import special

from hockeystick.audit.recording.replay import Places, Replay, Run, Vector
from hockeystick.audit.recording.tails import correlation_beyond, distance_beyond, squares_at_most
from hockeystick.audit.recording.verdicts import Notes
from hockeystick.audit.recording.violations import Rule

Matrix = NDArray[np.float64]
_NUMBERS: Final = 20_000
_FEWEST, _MOST = 6, 400
# The most times that a program is run, which may have few steps.
_RUNS: Final = 20
_COORDINATES: Final = 4096
# Where two numbers agree to so many deviations, they are the same but for rounding.
_SAME: Final = 1e-6


def trials_for(coordinates: int) -> int:
    """Return how many steps give some 20,000 noisy numbers, from 6 to 400."""
    return min(max(-(-_NUMBERS // max(coordinates, 1)), _FEWEST), _MOST)


def check_noise(replay: Replay, batch: Places, trials: int | None, notes: Notes) -> None:
    """Note what is wrong with the noise of a loop's own random numbers."""
    probe = replay.run(None, [batch], key=None)
    if not probe.steps or probe.steps[0].noise_multiplier == 0:
        return
    width = len(probe.steps[0].released)
    count = trials_for(width) if trials is None else trials
    first, second = (_gathered(replay, batch, count, width, notes) for _ in range(2))
    count = min(len(first), len(second))
    first, second = first[:count], second[:count]
    noise = (first - second) / math.sqrt(2)
    notes.measure("noise multiplier over the plan's", float(np.sqrt(np.mean(np.square(noise)))))
    if not bool((np.abs(noise) > _SAME).any()):
        notes.certain(Rule.REPEATS if _is_noisy(replay, batch) else Rule.NO_NOISE, 0, 1)
        return
    _check_repetitions(noise, replay.blocks, notes)
    _check_law(noise, replay.blocks, notes)


def _is_noisy(replay: Replay, batch: Places) -> bool:
    """Return whether another key gives another release."""
    found = [run.steps[0] for key in (1, 2) if (run := replay.run(None, [batch], key=key)).steps]
    apart = np.abs(found[0].released - found[-1].released)
    return bool((apart > _SAME * found[0].noise_multiplier).any())


def _gathered(replay: Replay, batch: Places, count: int, width: int, notes: Notes) -> Matrix:
    """Return steps as rows in deviations of their noise, of as many runs as it takes."""
    rows: list[Vector] = []
    for _ in range(_RUNS):
        wanted = count - len(rows)
        if wanted <= 0:
            break
        zeros = [np.zeros(width)] * wanted
        run = replay.run(None, [batch] * wanted, key=None, frozen=zeros)
        check_counts(run, notes)
        rows += [one.released / one.noise_multiplier for one in run.steps]
    return np.stack(rows)


def check_counts(run: Run, notes: Notes) -> None:
    """Compare steps that were counted, batches that were given, and releases."""
    taken = len(run.steps)
    if run.counted is not None and run.counted < taken:
        notes.certain(Rule.COUNT, taken, run.counted)
    if run.given is not None and run.given > taken:
        notes.certain(Rule.LEFT_OUT, run.given, taken)


def _spread(noise: Matrix) -> Matrix:
    """Return no more coordinates than are compared with each other, from all over."""
    width = noise.shape[1]
    return noise if width <= _COORDINATES else noise[:, :: -(-width // _COORDINATES)]


def _check_repetitions(noise: Matrix, blocks: tuple[tuple[str, int], ...], notes: Notes) -> None:
    """Note coordinates without noise or with the same, and steps with the same."""
    silent = np.all(np.abs(noise) <= _SAME, axis=0)
    for name, part in _parts(blocks, noise.shape[1]):
        if bool(silent[part].any()):
            notes.certain(Rule.NO_NOISE, int(silent[part].sum()), 0, where=name)
    noise = _spread(noise[:, ~silent])
    if _twins(noise.T):
        notes.certain(Rule.SHARED, 1, 0)
    if _twins(noise):
        notes.certain(Rule.REUSED, 1, 0)


def _twins(rows: Matrix) -> bool:
    """Return whether two rows are the same, which long rows of noise are never by chance."""
    if len(rows) < 2 or rows.shape[1] < 4:
        return False
    ordered = rows[np.argsort(rows[:, 0])]
    return bool((np.abs(np.diff(ordered, axis=0)) <= _SAME).all(axis=1).any())


def _parts(blocks: tuple[tuple[str, int], ...], width: int) -> list[tuple[str, slice]]:
    """Return each parameter's name and coordinates."""
    ends = np.cumsum([size for _, size in blocks])
    if not blocks or ends[-1] != width:
        return [("", slice(0, width))]
    return [
        (name, slice(int(end) - size, int(end)))
        for (name, size), end in zip(blocks, ends, strict=True)
    ]


def _check_law(noise: Matrix, blocks: tuple[tuple[str, int], ...], notes: Notes) -> None:
    """Test variance, distribution and independence."""
    parts = _parts(blocks, noise.shape[1])
    for name, part in [*parts, ("all", slice(None))] if len(parts) > 1 else parts:
        _test_variance(noise[:, part], name, notes)
    _test_distribution(_spread(noise), notes)
    rows, columns = len(noise) // 2, noise.shape[1] // 2
    if rows:
        _test_correlation(noise[: 2 * rows : 2], noise[1 : 2 * rows : 2], "next steps", notes)
        _test_correlation(noise[:rows], noise[rows : 2 * rows], "steps far apart", notes)
    if columns:
        even, odd = noise[:, : 2 * columns : 2], noise[:, 1 : 2 * columns : 2]
        _test_correlation(even, odd, "next coordinates", notes)


def _test_variance(noise: Matrix, name: str, notes: Notes) -> None:
    """Test whether squares sum to too little: more noise than claimed is no violation."""
    total = float(np.square(noise).sum())
    p_value = squares_at_most(total, noise.size)
    notes.test(Rule.TOO_SMALL, p_value, math.sqrt(total / noise.size), 1.0, where=name)


def _test_distribution(noise: Matrix, notes: Notes) -> None:
    """Test whether sizes are below those of the normal law; larger ones are no violation."""
    sizes = np.sort(np.abs(noise), axis=None)
    above = np.arange(1, len(sizes) + 1) / len(sizes) - special.erf(sizes / math.sqrt(2))
    distance = max(float(above.max()) - _SAME, 0.0)
    notes.test(Rule.NOT_GAUSSIAN, distance_beyond(distance, len(sizes)), distance, 0.0)


def _test_correlation(one: Matrix, other: Matrix, name: str, notes: Notes) -> None:
    """Test whether two parts of the noise are uncorrelated."""
    left, right = one.ravel(), other.ravel()
    lengths = float(np.linalg.norm(left) * np.linalg.norm(right))
    if len(left) < 2:
        return
    found = float(left @ right) / lengths if lengths else 0.0
    notes.test(Rule.CORRELATED, correlation_beyond(found, len(left)), found, 0.0, where=name)
