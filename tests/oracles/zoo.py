"""What every mechanism of the library costs: `python -m tests.oracles.zoo` writes zoo.json.

Interrupted, it resumes; rows that are named as arguments are computed again. A row is named after
a mechanism and its parameters, which mean the decimals written here. For 1, 3 and 100 runs it has

    epsilon    the least epsilon >= 0 at delta = 10^-6, the worse direction taken,
    at, delta  a smaller epsilon, exact in binary, and the delta there,
    digits     how many decimal digits of both are right.

Sources, none of which shares anything with the library: `zoo_outputs` (probabilities of outputs
from the definition of each mechanism, and exact products), `zoo_line` (inversion on a line,
twice), `zoo_laplace` (closed form; quadrature over outputs), and `zoo_gaussian`.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from mpmath import mp

from tests.oracles import zoo_outputs as outputs
from tests.oracles.zoo_gaussian import (
    Gaussian,
    Mixture,
    SinhNormal,
    encoder_mu,
    square_root,
    tree_mu,
)
from tests.oracles.zoo_laplace import FewSampled, Laplace
from tests.oracles.zoo_laplace import nodes as laplace_nodes
from tests.oracles.zoo_line import Inverted, MomentBound, saddle
from tests.oracles.zoo_outputs import Curve, Listed, Pair, Real

FILE: Final = Path(__file__).parent / "zoo.json"
RUNS: Final = (1, 3, 100)
DELTA: Final = "1e-6"
DPS: Final = 50
STEP: Final = 64  # epsilons asked for are multiples of 1/64
# Decimal digits of what is exact, and of what is inverted.
EXACT: Final = 25
INVERTED: Final = 14


@dataclass(frozen=True)
class Truth:
    """The curve of the direction that costs more; of the other one an upper bound will do."""

    curve: Curve
    other: Curve | None = None
    digits: int = EXACT

    def row(self) -> dict[str, str]:
        """epsilon at DELTA, and delta at a smaller epsilon."""
        epsilon = self.curve.epsilon(mp.mpf(DELTA))
        at = mp.floor(epsilon * STEP * mp.mpf("0.75")) / STEP
        delta = self.curve.delta(at)
        other = self.other
        if other and (other.epsilon(mp.mpf(DELTA)) > epsilon or other.delta(at) > delta):
            raise ArithmeticError("the other direction may cost more")
        shown = self.digits
        return {
            "epsilon": mp.nstr(epsilon, shown),
            "at": mp.nstr(at, 20),
            "delta": mp.nstr(delta, shown),
            "digits": str(shown),
        }


@dataclass(frozen=True)
class Inversion:
    """`Inverted` at the saddle point of each question: both lines must share the digits."""

    pair: Pair
    runs: int
    top: float
    digits: float

    def delta(self, epsilon: Real) -> Real:
        return self._on(saddle(self.pair, self.runs, epsilon=epsilon)).delta(epsilon)

    def epsilon(self, delta: Real) -> Real:
        return self._on(saddle(self.pair, self.runs, delta=delta)).epsilon(delta)

    def _on(self, theta: Real) -> Inverted:
        return Inverted.of(self.pair, self.runs, theta=theta, top=self.top, digits=self.digits)


def exactly(pair: Pair, runs: int) -> Listed | None:
    """The profile of the listed outcomes of all runs, where there are few enough of them."""
    if runs > 3 and outputs.equally_spaced(pair):
        return Listed.of(outputs.on_a_lattice(pair, runs))
    return Listed.of(outputs.multisets(pair, runs)) if outputs.listed(pair, runs) else None


def symmetric(make: Callable[[], Pair], runs: int, *, top: float = 1e3) -> Truth:
    """A pair that costs the same in both directions."""
    pair = make()
    found = exactly(pair, runs)
    if found is not None:
        return Truth(found)
    return Truth(Inversion(pair, runs, top, INVERTED), digits=INVERTED)


def sampled(
    make: Callable[[], Pair], rate: str, runs: int, *, top: float = 1e3, digits: int = INVERTED
) -> Truth:
    """A symmetric pair on a Poisson sample: removing costs more."""
    pair = make().sampled(mp.mpf(rate))
    removing, adding = exactly(pair, runs), exactly(pair.reversed, runs)
    if removing is not None and adding is not None:
        return Truth(removing, adding)
    return Truth(Inversion(pair, runs, top, digits), MomentBound(pair.reversed, runs), digits)


def sampled_laplace(scale: str, rate: str, runs: int) -> Truth:
    b, q = mp.mpf(scale), mp.mpf(rate)
    if runs <= 3:
        few = [FewSampled(b, q, runs, adding, 36) for adding in (False, True)]
        return Truth(few[0], few[1], 16)
    pair = laplace_nodes(b, q, 160)
    return Truth(Inversion(pair, runs, 1e3, INVERTED), MomentBound(pair.reversed, runs), INVERTED)


def mixture(noise: str, centres: Sequence[str], weights: Sequence[str], runs: int) -> Truth:
    """Thresholds for one run, inversion for more."""
    s, c, w = mp.mpf(noise), [mp.mpf(x) for x in centres], [mp.mpf(x) for x in weights]
    removing, adding = (Mixture(s, c, w, way) for way in (False, True))
    if runs == 1:
        return Truth(removing, adding)
    pair = outputs.gaussian_mixture(s, c, w, 3000)
    other = MomentBound(pair.reversed, runs)
    top, figures = (2e3, 11) if runs == 3 else (500.0, INVERTED)
    return Truth(Inversion(pair, runs, top, figures), other, figures)


def sinh_normal(sigma: str, bend: str, runs: int) -> Truth:
    """Thresholds for one run, inversion for more; both directions cost the same."""
    one = SinhNormal(mp.mpf(sigma), mp.mpf(bend))
    if runs == 1:
        return Truth(one)
    pair = outputs.Pair(
        *outputs.continuous_nodes(
            (lambda x: one.density(x - 1), one.density), -one.reach, one.reach + 1, 2000
        )
    )
    return Truth(Inversion(pair, runs, 100.0, INVERTED), digits=INVERTED)


def sampled_gaussian(rate: str, noise: str, steps: int, runs: int) -> Truth:
    """A mixture of two centres.

    The file has more digits of many runs, and so have the files of plans: by Levy's inversion of
    the characteristic function in mpmath, made twice.
    """
    q = mp.mpf(rate)
    return mixture(noise, ("0", "1"), (str(1 - q), str(q)), steps * runs)


def gaussian(mu: Callable[[], Real], runs: int) -> Truth:
    """Gaussian noise: the squares of mu add up."""
    return Truth(Gaussian(mu() * mp.sqrt(runs)))


def product(makes: Iterable[Callable[[], Pair]]) -> Pair:
    found = Pair((mp.mpf(1),), (mp.mpf(1),))
    for make in makes:
        other = make()
        found = outputs.pair(
            [a * b for a in found.p for b in other.p], [a * b for a in found.q for b in other.q]
        )
    return found


def response(epsilon: str, categories: int = 2) -> Pair:
    return outputs.randomized_response(mp.mpf(epsilon), categories)


def revealed(epsilon: str, rate: str) -> Pair:
    """Randomized response that the record takes part in with a probability, and all see it."""
    part, wrong = mp.mpf(rate), 1 / (1 + mp.exp(mp.mpf(epsilon)))
    p = (part * wrong, 1 - part, part * (1 - wrong))
    return Pair(p, p[::-1])


@dataclass(frozen=True)
class Failing:
    """A curve beside a chance to show the record, which shows under P and Q alike if it happens."""

    curve: Curve
    chance: Real

    def delta(self, epsilon: Real) -> Real:
        return self.chance + (1 - self.chance) * self.curve.delta(epsilon)

    def epsilon(self, delta: Real) -> Real:
        return self.curve.epsilon((delta - self.chance) / (1 - self.chance))


def approximate(epsilon: str, delta: str, runs: int) -> Truth:
    """The worst (epsilon, delta)-DP mechanism: randomized response that at times fails."""
    curve = Listed.of(outputs.multisets(response(epsilon), runs))
    return Truth(Failing(curve, 1 - (1 - mp.mpf(delta)) ** runs))


BASES: Final[dict[str, Callable[[], Pair]]] = {
    "discrete Laplace 2": lambda: outputs.discrete_laplace(mp.mpf(2)),
    "discrete Laplace 2, sensitivity 3": lambda: outputs.discrete_laplace(mp.mpf(2), 3),
    "discrete Gaussian 2": lambda: outputs.discrete_gaussian(mp.mpf(2)),
    "discrete Gaussian 6, sensitivity 3": lambda: outputs.discrete_gaussian(mp.mpf(6), 3),
    "Skellam 10": lambda: outputs.skellam(mp.mpf(10)),
    "Skellam 20, sensitivity 2": lambda: outputs.skellam(mp.mpf(20), 2),
    "randomized response 1 of 10": lambda: response("1", 10),
    "randomized response 1 of 3": lambda: response("1", 3),
    "symmetric bits 1": lambda: outputs.symmetric_bits(mp.mpf(1)),
    "optimised bits 1": lambda: outputs.optimised_bits(mp.mpf(1)),
    "RAPPOR 0.75, 2 hashes": lambda: outputs.rappor(mp.mpf("0.75"), 2),
    "exponential 1, opposite scores": lambda: response("0.5"),
    "permute and flip 1, exchanged": lambda: outputs.exchanged(mp.mpf(1)),
    "pure 1": lambda: response("1"),
    "revealed response 1 at 0.5": lambda: revealed("1", "0.5"),
    "pure 0.9": lambda: response("0.9"),
    "composed discrete Laplace 2 and response 1": lambda: product(
        (lambda: outputs.discrete_laplace(mp.mpf(2)), lambda: response("1"))
    ),
    "repeated response 1 of 3, twice": lambda: product([partial(response, "1", 3)] * 2),
    "above threshold 2, 4, one query": lambda: outputs.one_comparison(mp.mpf(2), mp.mpf(4)),
}
BANDS: Final = tuple(
    tuple({0: 1.0, 1: 0.5}.get(row - column, 0.0) for column in range(6)) for row in range(6)
)
MIXED: Final = (("0", "1", "2"), ("0.9", "0.07", "0.03"))
HALF_MIXED: Final = (("0", "1", "2"), ("0.95", "0.035", "0.015"))
ROWS: Final[dict[str, Callable[[int], Truth]]] = {
    **{name: partial(symmetric, make) for name, make in BASES.items()},
    "Gaussian 5": partial(gaussian, lambda: 1 / mp.mpf(5)),
    "Gaussian 0.5 mu": partial(gaussian, lambda: mp.mpf("0.5")),
    "tree of 1000 leaves, noise 10": partial(gaussian, lambda: tree_mu(mp.mpf(10), 1000)),
    "square root of 1000 rounds, noise 4": partial(
        gaussian, lambda: encoder_mu(mp.mpf(4), square_root(1000), 1, 1)
    ),
    "two bands of 6 rounds, 2 participations, noise 4": partial(
        gaussian, lambda: encoder_mu(mp.mpf(4), BANDS, 2, 3)
    ),
    "approximate 0.8, 1e-13": partial(approximate, "0.8", "1e-13"),
    "Laplace 2": lambda runs: Truth(Laplace(mp.mpf(2), runs)),
    "mixture 2": partial(mixture, "2", *MIXED),
    "sinh-normal 2, bend 20": partial(sinh_normal, "2", "20"),
    "sampled Laplace 1 at 0.1": partial(sampled_laplace, "1", "0.1"),
    "sampled Gaussian 2 at 0.1": partial(sampled_gaussian, "0.1", "2", 1),
    "sampled Gaussian 2 at 0.03, 20 steps": partial(sampled_gaussian, "0.03", "2", 20),
    "sampled response 1 of 3 at 0.2": partial(sampled, BASES["randomized response 1 of 3"], "0.2"),
    "sampled discrete Laplace 2 at 0.1": partial(sampled, BASES["discrete Laplace 2"], "0.1"),
    "sampled discrete Gaussian 2 at 0.1": partial(
        sampled, BASES["discrete Gaussian 2"], "0.1", top=2e5, digits=12
    ),
    "sampled Skellam 10 at 0.1": partial(sampled, BASES["Skellam 10"], "0.1", top=1e5, digits=12),
    "sampled bits 1 at 0.1": partial(sampled, BASES["symmetric bits 1"], "0.1"),
    "sampled mixture 2 at 0.5": partial(mixture, "2", *HALF_MIXED),
}


def row_of(name: str) -> dict[str, dict[str, str]]:
    with mp.workdps(DPS):
        return {str(runs): ROWS[name](runs).row() for runs in RUNS}


def _write(rows: dict[str, dict[str, dict[str, str]]]) -> None:
    partial_file = FILE.with_suffix(".partial")
    ordered = {name: rows[name] for name in ROWS if name in rows}
    partial_file.write_text(json.dumps(ordered, indent=1) + "\n", encoding="utf-8")
    partial_file.replace(FILE)


def main() -> None:
    rows = json.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else {}
    for name in ROWS:
        if name in rows and name not in sys.argv[1:]:
            continue
        start = time.perf_counter()
        rows[name] = row_of(name)
        _write(rows)
        sys.stderr.write(f"{name}: {time.perf_counter() - start:.1f} s\n")


if __name__ == "__main__":
    main()
