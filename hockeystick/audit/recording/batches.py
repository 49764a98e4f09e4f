"""The batches that a loop really draws, against the sampling of its plan."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hockeystick.audit.recording.replay import Places, Replay
from hockeystick.audit.recording.tails import (
    binomial_at_least,
    binomial_at_most,
    binomial_largest,
    hypergeometric_sum,
)
from hockeystick.audit.recording.verdicts import Notes
from hockeystick.audit.recording.violations import Rule
from hockeystick.mechanisms import DPSGD, Sampling

Counts = NDArray[np.int64]
_COINS: Final = 2_000_000
_FEWEST, _MOST = 20, 2000


def draws_for(examples: int) -> int:
    """Return how many batches take some two million coins, from 20 to 2000."""
    return min(max(_COINS // max(examples, 1), _FEWEST), _MOST)


def check_batches(replay: Replay, draws: int | None, notes: Notes) -> None:
    """Note what is wrong with batches that the loop draws by its own random numbers."""
    examples, plan = replay.examples, replay.plan
    batches = replay.draws(draws_for(examples) if draws is None else draws)
    if not batches or examples == 0:
        return
    _check_distinct(batches, plan, notes)
    counts = np.stack([np.bincount(one, minlength=examples)[:examples] for one in batches])
    notes.measure("share of records in a batch", float(counts.mean()))
    _CHECKS[plan.sampling](counts, plan, notes)


def _check_distinct(batches: Sequence[Places], plan: DPSGD, notes: Notes) -> None:
    """Note a record that is in a batch twice, but with replacement."""
    if plan.sampling is Sampling.WITH_REPLACEMENT:
        return
    for one in batches:
        times = np.unique(one, return_counts=True)[1]
        if bool((times > 1).any()):
            notes.certain(Rule.TWICE, int(times.max()), 1)


def _test_rate(counts: Counts, trials: int, rate: float, notes: Notes) -> None:
    """Test whether the record that is drawn most often is drawn too often, and all together."""
    each = counts.sum(axis=0)
    most = int(each.max())
    p_value = min(len(each) * binomial_at_least(most, trials, rate), 1.0)
    notes.test(Rule.RATE, p_value, most / trials, rate, where="one record")


def _poisson(counts: Counts, plan: DPSGD, notes: Notes) -> None:
    """Test the rate; without a cap sizes, empty batches and what batches have in common too."""
    steps, examples = counts.shape
    rates = _rates(plan, steps)
    rate, constant = float(rates.max()), bool((rates == rates[0]).all())
    _test_rate(counts, steps, rate, notes)
    sizes = counts.sum(axis=1)
    if plan.batch_cap is not None:
        if int(sizes.max()) > plan.batch_cap:
            notes.certain(Rule.SIZE, int(sizes.max()), plan.batch_cap)
        return
    total = int(sizes.sum())
    p_value = binomial_at_least(total, steps * examples, rate)
    notes.test(Rule.RATE, p_value, total / (steps * examples), rate, where="all records")
    if constant:
        _test_sizes(sizes, examples, rate, notes)
        empty = int((sizes == 0).sum())
        p_value = binomial_at_most(empty, steps, (1 - rate) ** examples)
        notes.test(Rule.NO_EMPTY, p_value, empty, steps * (1 - rate) ** examples)
    _test_overlap(counts[0::2], counts[1::2], notes)


def _rates(plan: DPSGD, steps: int) -> NDArray[np.float64]:
    """Return the rate of each step, which starts again where the plan ends."""
    if plan.batch_schedule is None:
        return np.full(steps, plan.sampling_rate)
    factors = np.asarray(plan.batch_schedule.factors(plan.total_steps), dtype=np.float64)
    return np.minimum(np.resize(factors, steps) * plan.sampling_rate, 1.0)


def _test_sizes(sizes: Counts, records: int, rate: float, notes: Notes) -> None:
    """Test whether all batches have one size, where each record is drawn by itself."""
    one_size = bool((sizes == sizes[0]).all())
    largest = binomial_largest(records, rate)
    p_value = min(largest ** (len(sizes) - 1), 1.0) if one_size else 1.0
    notes.test(Rule.FIXED, max(p_value, 1e-290), float(np.ptp(sizes)), 1.0)


def _sized(counts: Counts, size: int, notes: Notes) -> None:
    """Note batches of another size."""
    sizes = counts.sum(axis=1)
    wrong = sizes[sizes != size]
    if len(wrong):
        notes.certain(Rule.SIZE, int(wrong[0]), size)


def _fixed_size(counts: Counts, plan: DPSGD, notes: Notes) -> None:
    """Check sizes, and test the rate and what batches have in common."""
    steps, examples = counts.shape
    size = int(plan.batch_size or 0)
    _sized(counts, size, notes)
    _test_rate(counts, steps, size / examples, notes)
    _test_overlap(counts[0::2], counts[1::2], notes)


def _test_overlap(one: Counts, other: Counts, notes: Notes) -> None:
    """Test what pairs of independent batches have in common, given how large they are.

    Of sets of b and c among n records that is a hypergeometric number of mean ``b c/n``, whatever
    the rate at which records are drawn.
    """
    pairs = min(len(one), len(other))
    left, right = one[:pairs] > 0, other[:pairs] > 0
    common = int((left & right).sum())
    draws = int(left.sum())
    expected = float((left.sum(axis=1) * right.mean(axis=1)).sum())
    p_value = hypergeometric_sum(common, draws, min(expected / draws, 1.0)) if draws else 1.0
    rule = Rule.SHUFFLED if common < expected else Rule.BATCHES_REPEAT
    notes.test(rule, p_value, common, expected)


def _with_replacement(counts: Counts, plan: DPSGD, notes: Notes) -> None:
    """Check sizes, and test how often a record takes a place."""
    size = int(plan.batch_size or 0)
    _sized(counts, size, notes)
    _test_rate(counts, len(counts) * size, 1 / counts.shape[1], notes)


def _full_batch(counts: Counts, plan: DPSGD, notes: Notes) -> None:
    """Check that each batch has every record."""
    _sized(counts, counts.shape[1], notes)


def _epochs(counts: Counts, plan: DPSGD, notes: Notes, left_out: int = 0) -> Counts:
    """Return whole epochs, each of which uses each record once; note where one does not.

    So many records may be left out of each.
    """
    length = int(plan.steps_per_epoch or 1)
    whole = len(counts) // length
    epochs = counts[: whole * length].reshape(whole, length, -1)
    for used in epochs.sum(axis=1):
        wrong = used[used > 1] if int((used == 0).sum()) == left_out else used[used != 1]
        if len(wrong):
            notes.certain(Rule.EPOCH, int(wrong[0]), 1)
    return epochs


def _shuffle(counts: Counts, plan: DPSGD, notes: Notes) -> None:
    """Check that epochs use each record once in batches of one size, and test their order."""
    length, size = int(plan.steps_per_epoch or 1), int(plan.batch_size or 1)
    rest = counts.shape[1] % size
    epochs = _epochs(counts, plan, notes, left_out=rest if plan.drop_last else 0)
    smaller = rest > 0 and not plan.drop_last
    whole = epochs[:, : length - smaller]
    _sized(whole.reshape(-1, counts.shape[1]), size, notes)
    if smaller:
        _sized(epochs[:, -1], rest, notes)
    _test_overlap(epochs[0::2, 0], epochs[1::2, 0], notes)


def _allocation(counts: Counts, plan: DPSGD, notes: Notes) -> None:
    """Check that epochs use each record once, and test the sizes and the order of batches."""
    epochs = _epochs(counts, plan, notes)
    length, records = epochs.shape[1:]
    first = epochs[:, 0]
    if len(first) == 0:
        return
    _test_sizes(first.sum(axis=1), records, 1 / length, notes)
    _test_overlap(first[0::2], first[1::2], notes)


_CHECKS: Final[Mapping[Sampling, Callable[[Counts, DPSGD, Notes], None]]] = MappingProxyType(
    {
        Sampling.POISSON: _poisson,
        Sampling.FIXED_SIZE: _fixed_size,
        Sampling.WITH_REPLACEMENT: _with_replacement,
        Sampling.FULL_BATCH: _full_batch,
        Sampling.SHUFFLE: _shuffle,
        Sampling.RANDOM_ALLOCATION: _allocation,
    }
)
