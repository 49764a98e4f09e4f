"""Plans in words, as people read them."""

from __future__ import annotations

from hockeystick.mechanisms import DPSGD, Composed, Mechanism, Sampling, assumptions_of
from hockeystick.numerics.numerals import plain


def in_words(plan: Mechanism) -> tuple[str, ...]:
    """Return a plan in words, one line for each part.

    Example:
        >>> import hockeystick as hs
        >>> plan = hs.DPSGD(examples=50_000, batch_size=500, epochs=3, noise_multiplier=1)
        >>> for line in hs.answers.in_words(plan @ hs.Laplace(2)):
        ...     print(line)
        DP-SGD on 50,000 examples: noise multiplier 1, 3 epochs, Poisson batches of 500 on ...
        Laplace (scale 2)
    """
    return tuple(_words(part) for part in _parts(plan))


def titled(plan: Mechanism) -> str:
    """Return what to call a plan that has no title: its first part in words.

    Example:
        >>> import hockeystick as hs
        >>> hs.answers.titled(hs.Gaussian(3) @ hs.Laplace(2))
        'Gaussian (noise multiplier 3), and 1 more'
    """
    first, *others = in_words(plan)
    return f"{first}, and {len(others)} more" if others else first


def steps_rules(plan: Mechanism) -> tuple[str, ...]:
    """Return, for each training run in a plan, its number of steps and where it comes from.

    Example:
        >>> import hockeystick as hs
        >>> hs.answers.steps_rules(hs.DPSGD(rate=0.01, steps=9, noise_multiplier=1))
        ('steps = 9, as planned',)
    """
    return tuple(part.steps_rule for part in _parts(plan) if isinstance(part, DPSGD))


def protected(plan: Mechanism) -> str:
    """Return whose data a plan protects, as its assumptions or its adjacency say it.

    Example:
        >>> import hockeystick as hs
        >>> hs.answers.protected(hs.DPSGD(rate=0.01, steps=9, noise_multiplier=1))
        'Neighbouring data sets differ by one example added or removed.'
    """
    neighbours = ("What is protected", "Neighbouring data sets")
    said = (text for text in assumptions_of(plan) if text.startswith(neighbours))
    adjacency = plan.adjacency
    if adjacency is not None:
        return next(said, adjacency.meaning)
    return next(said, "The plan is described for any two data sets between which its numbers hold.")


def _parts(plan: Mechanism) -> tuple[Mechanism, ...]:
    return plan.parts if isinstance(plan, Composed) else (plan,)


def _words(plan: Mechanism) -> str:
    if not isinstance(plan, DPSGD):
        return str(plan)
    on = "" if plan.examples is None else f" on {_counted(plan.examples, 'example')}"
    if plan.examples_per_user > 1:
        on += f", up to {plan.examples_per_user:,} of one user"
    mean = " on average" if plan.sampling is Sampling.POISSON else ""
    size = "" if plan.batch_size is None else f" of {plan.batch_size:,}{mean}"
    batches = f"{plan.sampling.capitalize()} batches{size} (rate {plan.sampling_rate:.6g})"
    if plan.drop_last:
        batches += ", the rest dropped"
    extra = "" if plan.extra is None else f"; besides, {plan.extra}"
    for name, schedule in (("noise", plan.schedule), ("batch", plan.batch_schedule)):
        if schedule is not None:
            batches += f", {type(schedule).__name__.lower()} {name} schedule"
    noise = f"noise multiplier {plain(plan.noise_multiplier)}"
    length = _counted(plan.steps, "step") if plan.epochs is None else _counted(plan.epochs, "epoch")
    return f"DP-SGD{on}: {noise}, {length}, {batches}{extra}"


def _counted(count: float | None, name: str) -> str:
    number = f"{count:,}" if isinstance(count, int) else plain(count or 0.0)
    return f"{number} {name}{'' if count == 1 else 's'}"
