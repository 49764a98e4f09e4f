"""The self-test of a training loop: replays, comparisons and tests, and what they come to."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from hockeystick import _validate
from hockeystick._validate import whole_numbers
from hockeystick.audit.recording.checks import check_batches, check_noise, compare
from hockeystick.audit.recording.replay import Places, Replay
from hockeystick.audit.recording.violations import Notes, Rule, SelfTest
from hockeystick.audit.scores import CONFIDENCE, SEED
from hockeystick.errors import ParameterError

_RECORDS: Final = whole_numbers("k", 1, (1, 16))
_TRIALS: Final = whole_numbers("m", 2, (10, 1000))
# The most records beside the one that is looked at.
_BESIDE: Final = 6
_SEES: Final = (
    "Replays look at a few records, batches and steps: no violation is no proof of privacy.",
    "Certain violations are beyond rounding; the others share 1 - confidence by Bonferroni.",
)


def record(
    loop: Any,
    *arguments: Any,
    confidence: float = 0.999,
    records: int = 3,
    trials: int | None = None,
    draws: int | None = None,
    seed: int = 0,
    **options: Any,
) -> SelfTest:
    """Replay a training loop on neighbouring data, and return which rules it was seen to break.

    Steps are done again with the same random numbers, the same weights and the same releases to go
    on with, on data in which one record is missing, added or another one. Their difference is what
    the record itself moves,

        found = |released(D) - released(D')| / unit,    allowed = 1 clipping norm (2 if replaced).

    Then the loop runs by its own random numbers: the difference of two runs' noise, over sqrt(2),
    must be normal with the plan's noise multiplier, and the batches those of the plan's sampling.

    Guarantees:
        A loop that keeps all rules has no violation with a probability of at least ``confidence``.
        A violation whose ``certain`` is true is beyond rounding, and no chance explains it. No
        violation is no proof of privacy: few records, batches and steps were looked at.

    More noise or rarer draws of a record than claimed, and constant divisors, are no violations.

    Args:
        loop: A ``Replay``, as ``PlainLoop`` is; or what has a method ``as_replay`` that returns
            one, as the loops of ``hockeystick.adapters.torch.make_private``. It is not changed.
        *arguments: What ``as_replay`` is given, as the loss function of a loop of torch.
        confidence: In (0, 1).
        records: At how many records to look, at least 1.
        trials: From how many steps to take noise, at least 2; None for 20,000 numbers.
        draws: How many batches to draw, at least 2; None for some two million coins.
        seed: What decides which records and batches are looked at.
        **options: What ``as_replay`` is given by name.

    References:
        Cebere, Erb, Desfontaines, Bellet and Fitzsimons, "Privacy in Theory, Bugs in Practice: A
        Grey-Box Auditing Framework of Differential Privacy Libraries", arXiv 2602.17454, for
        replays that go on with recorded releases; Massart, "The tight constant in the
        Dvoretzky-Kiefer-Wolfowitz inequality", Annals of Probability 1990; Hoeffding, "Probability
        inequalities for sums of bounded random variables", JASA 1963, theorem 4.

    Example:
        >>> import numpy as np
        >>> import hockeystick as hs
        >>> from hockeystick.audit import PlainLoop, record
        >>> plan = hs.DPSGD(examples=50, batch_size=10, steps=100, noise_multiplier=1)
        >>> def unclipped(data, places, seed):
        ...     noise = np.random.default_rng(seed).standard_normal(3)
        ...     return data[places].sum(axis=0) + noise
        >>> found = record(PlainLoop(plan, np.eye(50, 3), unclipped, norm=1.0))
        >>> print(found.violations[0])
        sensitivity: one record moves the sum by more clipping norms than allowed \
(with one record more, a record times 1000, step 0): found 1000, allowed 1
    """
    level = _validate.real("confidence", confidence, CONFIDENCE)
    looked_at = _validate.count("records", records, _RECORDS)
    numbers = None if trials is None else _validate.count("trials", trials, _TRIALS)
    drawn = None if draws is None else _validate.count("draws", draws, _TRIALS)
    chosen = np.random.default_rng(_validate.count("seed", seed, SEED))
    replay = _replay(loop, arguments, options)
    notes = Notes()
    copies = replay.copies()
    if copies > 1:
        notes.certain(Rule.COPIES, copies, 1)
    others = _others(replay.examples, chosen)
    places = chosen.permutation(replay.examples)[:looked_at]
    for neighbour in replay.neighbours([int(one) for one in np.sort(places)]):
        compare(replay, neighbour, others, notes)
    check_noise(replay, others[0], numbers, notes)
    check_batches(replay, drawn, notes)
    return SelfTest(
        plan=replay.plan,
        violations=notes.violations(level),
        confidence=level,
        tests=len(notes.tests),
        measured=tuple(notes.measured.items()),
        assumptions=(*_SEES, *replay.assumptions),
    )


def _replay(loop: Any, arguments: tuple[Any, ...], options: dict[str, Any]) -> Replay:
    if isinstance(loop, Replay) and not arguments and not options:
        found = loop
    elif hasattr(loop, "as_replay"):
        found = loop.as_replay(*arguments, **options)
    else:
        allowed = "a Replay alone, or what has as_replay"
        raise ParameterError("loop", type(loop).__name__, allowed)
    if found.examples < 2:
        raise ParameterError("loop", f"one of {found.examples} records", "one of at least 2")
    return found


def _others(examples: int, chosen: np.random.Generator) -> list[Places]:
    size = max(min(_BESIDE, examples // 2), 1)
    order = chosen.permutation(examples).astype(np.int64)
    return [np.sort(order[:size]), np.sort(order[size : size + max(size // 2, 1)])]
