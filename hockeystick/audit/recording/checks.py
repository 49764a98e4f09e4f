"""What replays are checked for: what one record moves, the noise, and the batches.

Both replays use the same random numbers and go on with the same releases, so that their difference
is what the record itself changes. A second key for the noise tells the sum from the noise: the
difference of sums is the same under both keys, and whatever differs is noise that depends on data.

Where N and N' are independent normal vectors of deviation z, so is ``(N - N')/sqrt(2)``, and by
Cramer's theorem only then. The sum of gradients, which both runs have in common, falls out.

Each probability of a tail is at least the one named, for each argument: scipy's regularised beta
and gamma functions are right to some 1e-12 in the tails that matter here, and are raised by a part
in 10^6.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy import special

from hockeystick.audit.recording.replay import Kind, Neighbour, Places, Replay, Run, Vector
from hockeystick.audit.recording.violations import Notes, Rule
from hockeystick.audit.region import at_least
from hockeystick.mechanisms import DPSGD, Sampling
from hockeystick.mechanisms.sampling.poisson import Clipping

_WIDER: Final = 1 + 1e-6
# Below this scipy's digits are not known to be right, so that nothing smaller is returned.
_LEAST: Final = 1e-290
KEYS: Final = (1, 2)
# What single gradients may differ by beside others, as libraries round them otherwise there.
_BESIDE: Final = 1e-3
_RATIO: Final = 1e-4
_ROUNDINGS: Final = 8
Matrix = NDArray[np.float64]
# Steps are taken until there are so many noisy numbers, and batches until so many coins.
_NUMBERS, _COINS = 20_000, 2_000_000
_FEWEST_RUNS, _MOST_RUNS = 6, 400
# The most times that a program is run, which may have few steps.
_RUNS: Final = 20
_COORDINATES: Final = 4096
# Where two numbers agree to so many deviations, they are the same but for rounding.
_SAME: Final = 1e-6
Counts = NDArray[np.int64]
_FEWEST_DRAWS, _MOST_DRAWS = 20, 2000


def _widened(probability: float) -> float:
    return min(max(probability, _LEAST) * _WIDER, 1.0)


def binomial_at_least(count: int, trials: int, rate: float) -> float:
    """Return P[Binomial(trials, rate) >= count]."""
    return _widened(float(at_least(np.array(float(count)), trials, rate)))


def binomial_largest(trials: int, rate: float) -> float:
    """Return the largest probability of a single value of Binomial(trials, rate)."""
    if rate in (0, 1):
        return 1.0
    mode = min(math.floor((trials + 1) * rate), trials)
    nearby = np.arange(max(mode - 1, 0), min(mode + 1, trials) + 1)
    rest = trials - nearby
    logs = special.xlogy(nearby, rate) + special.xlog1py(rest, -rate)
    logs = logs - special.betaln(nearby + 1, rest + 1) - math.log(trials + 1)
    return _widened(math.exp(float(logs.max())))


def hypergeometric_sum(count: int, draws: int, rate: float) -> float:
    """Return a bound on both tails of a sum of independent hypergeometric numbers.

    Hoeffding (1963, theorem 4): a sample without replacement has no larger exponential moments than
    one with replacement, so that Chernoff's bound ``exp(-draws KL(count/draws || rate))`` holds.
    """
    share = count / draws
    divergence = special.rel_entr(share, rate) + special.rel_entr(1 - share, 1 - rate)
    return _widened(2 * math.exp(-draws * float(divergence)))


def squares_at_most(total: float, number: int) -> float:
    """Return P[chi-square of so many degrees of freedom <= total]."""
    return _widened(float(special.gammainc(number / 2, total / 2)))


def correlation_beyond(correlation: float, number: int) -> float:
    """Return P[|r| >= |correlation|] of independent normal vectors of a length of at least 2.

    ``(1 + r)/2`` is beta distributed with both parameters ``(number - 1)/2``.
    """
    half = (number - 1) / 2
    tail = special.betainc(half, half, (1 - min(abs(correlation), 1.0)) / 2)
    return _widened(2 * float(tail))


def distance_beyond(distance: float, number: int) -> float:
    """Return a bound on P[sup |F_n - F| >= distance], by Dvoretzky, Kiefer, Wolfowitz, Massart."""
    return _widened(2 * math.exp(-2 * number * distance * distance))


Side = tuple[Neighbour | None, Sequence[Places]]
"""Data, None for the loop's own, and batches of them."""


def sides_of(neighbour: Neighbour, others: Sequence[Places]) -> tuple[Side, Side]:
    """Return a record's batches, each beside other records; and those where it is not, or other."""
    place, kind = neighbour.place, neighbour.kind
    beside = [one[one != place] for one in others]
    more = [np.sort(np.append(one, place)) for one in beside]
    if kind is Kind.REPLACED:
        return (None, more), (neighbour, more)
    if kind is Kind.WITHOUT:
        return (None, more), (neighbour, [np.where(one > place, one - 1, one) for one in beside])
    return (neighbour if kind is Kind.ADDED else None, more), (None, beside)


def compare(replay: Replay, neighbour: Neighbour, others: Sequence[Places], notes: Notes) -> None:
    """Note what is wrong between the loop's data and a neighbour, in a few steps."""
    whole = [*others, np.array([], dtype=np.int64)]
    pairs: list[tuple[Run, Run]] = []
    try:
        pairs = _replayed(replay, neighbour, whole)
    except Exception as error:
        # Whatever fails on a batch that has one record or none is told by its failing.
        notes.certain(Rule.FAILS, 1, 0, where=f"{neighbour.name}: {type(error).__name__}: {error}")
        pairs = _replayed_beside(replay, neighbour, others)
    if not pairs:
        return
    for more, less in pairs:
        for run in (more, less):
            check_counts(run, notes)
        if len(more.steps) != len(less.steps):
            found = abs(len(more.steps) - len(less.steps))
            notes.certain(Rule.STEPS_DEPEND, found, 0, where=neighbour.name)
    same_noise = _compare_steps(replay, neighbour, pairs, notes)
    _compare_states(neighbour, pairs[0], notes)
    if same_noise and replay.plan.clipping is Clipping.INDIVIDUAL:
        _compare_contributions(replay, neighbour, others, notes)


def _replayed_beside(
    replay: Replay, neighbour: Neighbour, others: Sequence[Places]
) -> list[tuple[Run, Run]]:
    """Return runs on batches of several records alone, or none where a neighbour fails on these."""
    # What fails on the loop's own data is an error of the loop, and raised.
    replay.run(None, others, key=KEYS[0])
    try:
        return _replayed(replay, neighbour, others)
    except Exception:  # that has been noted
        return []


def _replayed(
    replay: Replay, neighbour: Neighbour, others: Sequence[Places]
) -> list[tuple[Run, Run]]:
    """Return both sides' runs under both keys, all of which go on with the same releases."""
    more, less = sides_of(neighbour, others)
    frozen = [one.released for one in replay.run(*more, key=KEYS[0]).steps]
    return [
        (replay.run(*more, key=key, frozen=frozen), replay.run(*less, key=key, frozen=frozen))
        for key in KEYS
    ]


def allowed(replay: Replay, neighbour: Neighbour) -> int:
    """Return how many clipping norms a neighbour may move a sum by."""
    by_batch = replay.plan.clipping is Clipping.BATCH
    return 2 if by_batch or neighbour.kind is Kind.REPLACED else 1


def rounding(replay: Replay, *vectors: Vector) -> float:
    """Return how far the differences of released numbers may be rounded."""
    lengths = sum(float(np.linalg.norm(one)) for one in vectors)
    return replay.slack + _ROUNDINGS * replay.precision * lengths


def _compare_steps(
    replay: Replay, neighbour: Neighbour, pairs: list[tuple[Run, Run]], notes: Notes
) -> bool:
    same_noise = True
    columns = zip(*(run.steps for pair in pairs for run in pair), strict=False)
    for place, (more, less, again, again_less) in enumerate(columns):
        found = [one.released for one in (more, less, again, again_less)]
        if not all(bool(np.isfinite(one).all()) for one in found):
            notes.certain(Rule.NOT_FINITE, np.inf, 0, step=place, where=neighbour.name)
            continue
        if _noise_depends(replay, neighbour, place, found, notes):
            same_noise = False
            continue
        moved = min(
            float(np.linalg.norm(found[0] - found[1])), float(np.linalg.norm(found[2] - found[3]))
        )
        notes.measure("sensitivity", moved)
        limit = allowed(replay, neighbour)
        if moved > limit + rounding(replay, *found[:2]):
            notes.certain(Rule.SENSITIVITY, moved, limit, step=place, where=neighbour.name)
    return same_noise


def _noise_depends(
    replay: Replay, neighbour: Neighbour, place: int, found: list[Vector], notes: Notes
) -> bool:
    """Return whether the noise of two keys differs otherwise on one side than on the other."""
    own, other = found[0] - found[2], found[1] - found[3]
    apart = float(np.linalg.norm(own - other))
    if apart <= 2 * rounding(replay, *found):
        return False
    length = float(own @ own)
    ratio = float(own @ other) / length if length else np.inf
    rest = float(np.linalg.norm(other - ratio * own)) if length else np.inf
    if len(own) > 1 and rest <= _RATIO * apart + 2 * rounding(replay, *found):
        notes.certain(Rule.SCALE, ratio, 1, step=place, where=neighbour.name)
    else:
        notes.certain(Rule.NOISE_DEPENDS, apart, 0, step=place, where=neighbour.name)
    return True


def _compare_states(neighbour: Neighbour, pair: tuple[Run, Run], notes: Notes) -> None:
    more, less = ([*(step.before for step in run.steps), run.after] for run in pair)
    for place, (one, other) in enumerate(zip(more, less, strict=False)):
        if one != other:
            notes.certain(Rule.STATE, 1, 0, step=place, where=neighbour.name)
            return


def _compare_contributions(
    replay: Replay, neighbour: Neighbour, others: Sequence[Places], notes: Notes
) -> None:
    """Compare what a record adds in the first step beside some records, and beside others."""
    found: list[Vector] = []
    room = 0.0
    for beside in others:
        more, less = (replay.run(*one, key=KEYS[0]) for one in sides_of(neighbour, [beside]))
        if not more.steps or not less.steps:
            return
        own, other = more.steps[0].released, less.steps[0].released
        found.append(own - other)
        room = max(room, rounding(replay, own, other))
    if not all(bool(np.isfinite(one).all()) for one in found):
        return
    apart = max(float(np.linalg.norm(one - found[0])) for one in found)
    notes.measure("dependence on others", apart)
    if apart > _BESIDE + 2 * room:
        notes.certain(Rule.MIXED, apart, 0, step=0, where=neighbour.name)


def check_noise(replay: Replay, batch: Places, trials: int | None, notes: Notes) -> None:
    """Note what is wrong with the noise of a loop's own random numbers."""
    probe = replay.run(None, [batch], key=None)
    if not probe.steps or probe.steps[0].noise_multiplier == 0:
        return
    width = len(probe.steps[0].released)
    some = min(max(-(-_NUMBERS // max(width, 1)), _FEWEST_RUNS), _MOST_RUNS)
    count = some if trials is None else trials
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
    ends = np.cumsum([size for _, size in blocks])
    if not blocks or ends[-1] != width:
        return [("", slice(0, width))]
    return [
        (name, slice(int(end) - size, int(end)))
        for (name, size), end in zip(blocks, ends, strict=True)
    ]


def _check_law(noise: Matrix, blocks: tuple[tuple[str, int], ...], notes: Notes) -> None:
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
    left, right = one.ravel(), other.ravel()
    lengths = float(np.linalg.norm(left) * np.linalg.norm(right))
    if len(left) < 2:
        return
    found = float(left @ right) / lengths if lengths else 0.0
    notes.test(Rule.CORRELATED, correlation_beyond(found, len(left)), found, 0.0, where=name)


def check_batches(replay: Replay, draws: int | None, notes: Notes) -> None:
    """Note what is wrong with batches that the loop draws by its own random numbers."""
    examples, plan = replay.examples, replay.plan
    some = min(max(_COINS // max(examples, 1), _FEWEST_DRAWS), _MOST_DRAWS)
    batches = replay.draws(some if draws is None else draws)
    if not batches or examples == 0:
        return
    for one in batches if plan.sampling is not Sampling.WITH_REPLACEMENT else ():
        most = int(np.unique(one, return_counts=True)[1].max(initial=0))
        if most > 1:
            notes.certain(Rule.TWICE, most, 1)
    counts = np.stack([np.bincount(one, minlength=examples)[:examples] for one in batches])
    notes.measure("share of records in a batch", float(counts.mean()))
    _CHECKS[plan.sampling](counts, plan, notes)


def _test_rate(counts: Counts, trials: int, rate: float, notes: Notes) -> None:
    """Test whether the record that is drawn most often is drawn too often."""
    most = int(counts.sum(axis=0).max())
    p_value = min(counts.shape[1] * binomial_at_least(most, trials, rate), 1.0)
    notes.test(Rule.RATE, p_value, most / trials, rate, where="one record")


def _poisson(counts: Counts, plan: DPSGD, notes: Notes) -> None:
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
        p_value = binomial_at_least(steps - empty, steps, 1 - (1 - rate) ** examples)
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
    spread = float(np.ptp(sizes))
    p_value = 1.0 if spread else min(binomial_largest(records, rate) ** (len(sizes) - 1), 1.0)
    notes.test(Rule.FIXED, max(p_value, _LEAST), spread, 1.0)


def _sized(counts: Counts, size: int, notes: Notes) -> None:
    sizes = counts.sum(axis=1)
    wrong = sizes[sizes != size]
    if len(wrong):
        notes.certain(Rule.SIZE, int(wrong[0]), size)


def _fixed_size(counts: Counts, plan: DPSGD, notes: Notes) -> None:
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
    size = int(plan.batch_size or 0)
    _sized(counts, size, notes)
    _test_rate(counts, len(counts) * size, 1 / counts.shape[1], notes)


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
        Sampling.FULL_BATCH: lambda counts, _, notes: _sized(counts, counts.shape[1], notes),
        Sampling.SHUFFLE: _shuffle,
        Sampling.RANDOM_ALLOCATION: _allocation,
    }
)
