"""What the systems share: digits and a linear model, random words, outcomes, and their commands.

The 1,797 images of scikit-learn's digits come with it; nothing is downloaded. Every fifth image is
held out to test on, which is part of the demonstration and not covered by any guarantee.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import ROUND_CEILING, Decimal
from functools import partial
from typing import Any

import numpy as np
from click import echo

import hockeystick as hs
from hockeystick.adapters.loop import Account, Sampler, noisy_sum
from hockeystick.release.samplers import Bits, secret_bits

CLASSES = 10
# Of what is trained on all images: a budget, and the thesis's grid of granularity 5 (Galli 2024,
# chapter 3), even steps of logarithms.
EPSILON, DELTA, BATCH_SIZE, STEPS = 3.0, 1e-4, 256, 60
RATES = tuple(10.0**power for power in (-2.5, -1.5, -0.5, 0.5, 1.5))

Update = Callable[[Any, float, Bits], Any]
"""From a batch's gradients, its expected size and random words to the change of the weights."""


@dataclass(frozen=True)
class Outcome:
    """What one run of a system came to.

    Args:
        system: The system's name and setting.
        result: The figures on data, by name.
        plan: What ran, in the accountant's words.
        epsilon: The certified upper end, inf without privacy.
        delta: The delta it holds at.
        checks: What was compared between the run and its account, by name: True where they agree.
    """

    system: str
    result: dict[str, float]
    plan: str
    epsilon: float
    delta: float
    checks: dict[str, bool] = field(default_factory=dict)


@dataclass(frozen=True)
class Setting:
    """A setting that a system is shown in.

    Args:
        run: From a seed to an outcome.
        beside: The setting of the same system without privacy that it is compared with.
        figures: Those of the result that a table shows; all where none are named.
        plain: The figure of its own result that is without privacy, where there is one.
    """

    run: Callable[[int], Outcome]
    beside: str | None = None
    figures: tuple[str, ...] = ()
    plain: str | None = None


def spread(values: Sequence[float]) -> str:
    """Return the median, and where there are several values the least and the largest."""
    whole = all(value == int(value) for value in values) and max(values) > 1
    middle, *ends = (
        f"{value:g}" if whole else f"{value:.3f}"
        for value in (statistics.median(values), min(values), max(values))
    )
    return f"{middle} [{', '.join(ends)}]" if len(values) > 1 else middle


def spreads(outcomes: Sequence[Outcome]) -> dict[str, str]:
    """Return each figure of a result over several runs."""
    return {name: spread([one.result[name] for one in outcomes]) for name in outcomes[0].result}


def wrong(outcomes: Sequence[Outcome]) -> list[str]:
    """Return the names of the checks that some run did not pass."""
    return sorted({name for one in outcomes for name, right in one.checks.items() if not right})


def cost(outcomes: Sequence[Outcome]) -> str:
    """Return the largest epsilon of several runs, rounded up, and its delta."""
    dearest = max(outcomes, key=lambda one: one.epsilon)
    if dearest.epsilon == float("inf"):
        return "no privacy"
    epsilon = Decimal(dearest.epsilon).quantize(Decimal("0.001"), ROUND_CEILING)
    return f"({epsilon}, {dearest.delta:g})"


def repeated(run: Callable[[int], Outcome], first: int, count: int) -> list[Outcome]:
    """Return the outcomes of several seeds."""
    return [run(first + seed) for seed in range(count)]


def show_lines(settings: Mapping[str, Setting], first: int, count: int) -> None:
    """Print the medians over some seeds of each setting, its cost and its checks."""
    for setting in settings.values():
        outcomes = repeated(setting.run, first, count)
        shown = ", ".join(f"{name} {told}" for name, told in spreads(outcomes).items())
        named = wrong(outcomes)
        checked = f"NOT AS ACCOUNTED: {', '.join(named)}" if named else "as accounted"
        told = checked if outcomes[0].checks else ""
        echo(f"{outcomes[0].system:<34} {shown:<44} {cost(outcomes):<18} {told}".rstrip())


def show(outcome: Outcome) -> None:
    """Print an outcome."""
    echo(outcome.system)
    echo(f"  {outcome.plan}")
    echo(f"  epsilon <= {outcome.epsilon:.4f} at delta {outcome.delta:g}")
    for name, value in outcome.result.items():
        echo(f"  {name}: {value:.4g}")
    for name, agrees in outcome.checks.items():
        echo(f"  {'agrees' if agrees else 'DIFFERS'}: {name}")


def arguments(
    text: str | None,
    *splits: str,
    engines: Sequence[str] = (),
    budget: tuple[float, float] | None = None,
) -> argparse.ArgumentParser:
    """Return a parser of the arguments that systems share."""
    parser = argparse.ArgumentParser(description=(text or "").splitlines()[0])
    parser.add_argument("--seed", type=int, default=0, help="of data and noise")
    parser.add_argument("--seeds", type=int, default=1, help="how many runs; medians are shown")
    if splits:
        parser.add_argument("--split", choices=splits, default=splits[0], help="of the digits")
    if engines:
        parser.add_argument("--engine", choices=engines, default=engines[0], help="of messages")
    if budget is not None:
        epsilon, delta = budget
        parser.add_argument("--epsilon", type=float, default=epsilon, help=f"at delta {delta:g}")
    return parser


def source(seed: int | None, *whose: int) -> Bits:
    """Return random words: the operating system's, or for a demonstration those of a seed.

    Whoever knows the seed knows the noise: a run with one can be repeated, and protects nobody.

    Args:
        seed: That of the run, or None.
        *whose: A client and its round, which have words of their own; none for the server.
    """
    if seed is None:
        return secret_bits
    # Words of a seed that are 0 at its end change nothing, so that numbers begin with 1.
    return np.random.PCG64([seed, *(1 + one for one in whose)]).random_raw


@dataclass(frozen=True)
class Digits:
    """Features with a last column of ones, and labels: to train on, and to test on."""

    rows: Any
    labels: Any
    test_rows: Any
    test_labels: Any

    def accuracy(self, weights: Any) -> float:
        """Return the share of test images that a linear model reads rightly."""
        return accuracy(weights, self.test_rows, self.test_labels)


def digits() -> Digits:
    """Return four fifths of the images to train on, and every fifth to test on."""
    from sklearn.datasets import load_digits

    images, labels = load_digits(return_X_y=True)
    rows = np.hstack([images / 16.0, np.ones((len(images), 1))])
    tested = np.arange(len(rows)) % 5 == 4
    return Digits(rows[~tested], labels[~tested], rows[tested], labels[tested])


@dataclass(frozen=True)
class Shards:
    """The features and labels of each client, and of test records that no client holds."""

    clients: tuple[tuple[Any, Any], ...]
    features: Any
    labels: Any

    @property
    def records(self) -> int:
        """How many records there are in training."""
        return sum(len(labels) for _, labels in self.clients)


def shards(clients: int, split: str, seed: int = 0, each: int | None = None) -> Shards:
    """Return the digits split among clients, all with the same number of records.

    Args:
        clients: How many.
        split: "writer": consecutive images, which in this file are mostly of one writer; "label":
            each client has two blocks of the images sorted by label; "even": at random.
        seed: Of which blocks a client gets.
        each: How many records a client keeps; as many as there are for all where not given.
    """
    data, rng = digits(), np.random.default_rng(seed)
    order = np.arange(len(data.labels))
    if split == "even":
        order = rng.permutation(len(order))
    elif split == "label":
        half = len(order) // (2 * clients)
        sorted_by_label = np.argsort(data.labels, kind="stable")[: 2 * half * clients]
        blocks = sorted_by_label.reshape(2 * clients, half)
        order = blocks[rng.permutation(2 * clients)].ravel()
    elif split != "writer":
        raise SystemExit(f"--split must be writer, label or even; got {split!r}")
    held = len(order) // clients
    parts = order[: held * clients].reshape(clients, held)[:, :each]
    own = tuple((data.rows[part], data.labels[part]) for part in parts)
    return Shards(own, data.test_rows, data.test_labels)


def gradients(weights: Any, rows: Any, labels: Any) -> Any:
    """Return each record's gradient of the cross-entropy of a linear model, a row for each."""
    errors = probabilities(weights, rows)
    errors[np.arange(len(labels)), labels] -= 1.0
    return (errors[:, :, None] * rows[:, None, :]).reshape(len(labels), len(weights))


def probabilities(weights: Any, rows: Any) -> Any:
    """Return the model's probabilities of the classes."""
    scores = rows @ weights.reshape(CLASSES, -1).T
    shares = np.exp(scores - scores.max(axis=1, keepdims=True))
    return shares / shares.sum(axis=1, keepdims=True)


def accuracy(weights: Any, rows: Any, labels: Any) -> float:
    """Return the share of records that a model reads rightly."""
    return float((probabilities(weights, rows).argmax(axis=1) == labels).mean())


@dataclass(frozen=True)
class Parity:
    """Rows of norm 1 times their label, 1 or -1: to train on, and to test on."""

    train: Any
    test: Any

    def accuracy(self, model: Any) -> float:
        """Return the share of test records on the right side of a linear model."""
        return float(np.mean(self.test @ model > 0))


def parity(seed: int) -> Parity:
    """Return the digits, even against odd, in a random order.

    Each image is averaged over squares of four pixels, its own mean is taken off, and it is scaled
    to length 1: a function of that image alone, so that one record's gradient has norm at most 1.
    """
    from sklearn.datasets import load_digits

    images, labels = load_digits(return_X_y=True)
    rows = images.reshape(-1, 4, 2, 4, 2).mean(axis=(2, 4)).reshape(-1, 16)
    rows = rows - rows.mean(axis=1, keepdims=True)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True) * (1 + 2.0**-40)
    signed = rows * np.where(labels % 2 == 0, 1.0, -1.0)[:, None]
    order = np.random.default_rng(seed).permutation(len(signed))
    cut = 4 * len(signed) // 5
    return Parity(signed[order[:cut]], signed[order[cut:]])


def logistic_gradient(model: Any, rows: Any) -> Any:
    """Return the gradient of the mean of ``ln(1 + exp(-row w))``: convex and 1/4-smooth."""
    return -(rows / (1.0 + np.exp(rows @ model))[:, None]).mean(axis=0)


def calibrated(epsilon: float, **plan: Any) -> hs.DPSGD:
    """Return a plan's with the least noise that meets a budget."""
    known = {"batch_size": BATCH_SIZE, "steps": STEPS, "noise_multiplier": 1.0} | plan
    target = hs.ApproxDP(epsilon, DELTA)
    found = hs.calibrate(hs.DPSGD(**known), "noise_multiplier", target).plan
    assert isinstance(found, hs.DPSGD)
    return found


def fixed_threshold(noise: float, rate: float, norm: float) -> Update:
    """DP-SGD (Abadi et al. 2016)."""

    def update(rows: Any, size: float, bits: Bits) -> Any:
        return -rate * noisy_sum(rows, norm=norm, noise_multiplier=noise, bits=bits) / size

    return update


class Training:
    """The steps of a plan on digits: how many were counted, and how many images were drawn."""

    def __init__(self, plan: hs.DPSGD, data: Digits, seed: int | None, bits: Bits) -> None:
        self.data, self.bits, self.drawn = data, bits, 0
        self.account, self._sampler = Account(plan), Sampler(plan, len(data.rows), seed)

    def steps(self, update: Update, count: int) -> Any:
        """Return the weights after so many steps from 0, each counted before its noise is drawn."""
        weights = np.zeros(CLASSES * self.data.rows.shape[1])
        for _ in range(count):
            step = self.account.counted
            batch = self._sampler.draw(step)
            self.drawn += len(batch)
            rows = gradients(weights, self.data.rows[batch], self.data.labels[batch])
            self.account.count()
            weights = weights + update(rows, self._sampler.expected(step), self.bits)
        return weights

    def outcome(
        self, system: str, accuracy: float, epsilon: float, checks: dict[str, bool]
    ) -> Outcome:
        """Return what came of all steps, with its cost, and checks beside those of the steps."""
        steps, plan = self.account.plan.total_steps, str(self.account.released)
        own = {
            "steps": self.account.counted == steps,
            "budget": self.spent <= epsilon,
            "batches": abs(self.drawn - steps * BATCH_SIZE) < 5 * (steps * BATCH_SIZE) ** 0.5,
        }
        return Outcome(system, {"accuracy": accuracy}, plan, self.spent, DELTA, own | checks)

    @property
    def spent(self) -> float:
        """The certified epsilon of the steps counted so far."""
        return float(hs.epsilon(self.account.released, DELTA).upper)


def openly(seed: int | None = 0, *, steps: int = STEPS) -> Outcome:
    """Return the best of the same steps on all images without clipping and noise, for any seed."""
    data, found = digits(), []
    for rate in RATES:
        weights = np.zeros(CLASSES * 65)
        for _ in range(steps):
            weights = weights - rate * gradients(weights, data.rows, data.labels).mean(axis=0)
        found.append(data.accuracy(weights))
    return Outcome("without privacy", {"accuracy": max(found)}, "", float("inf"), 0.0)


def settings_of(
    run: Callable[..., Outcome], methods: Iterable[str], epsilon: float
) -> dict[str, Setting]:
    """Return a run's methods at a budget, each beside the same model without privacy."""
    private = {
        method: Setting(partial(run, method=method, epsilon=epsilon), beside="without privacy")
        for method in methods
    }
    return private | {"without privacy": Setting(openly)}


def at_one_budget(
    text: str | None, settings: Callable[[float], Mapping[str, Setting]], *budget: float
) -> argparse.Namespace:
    """Run the command of a system whose settings are compared at one budget."""
    epsilon, delta = budget or (EPSILON, DELTA)
    asked = arguments(text, budget=(epsilon, delta)).parse_args()
    show_lines(settings(asked.epsilon), asked.seed, asked.seeds)
    return asked
