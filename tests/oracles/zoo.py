"""What every mechanism of the library costs: `python -m tests.oracles.zoo` writes rows of zoo.json.

Those that are named as arguments, or missing. A row is named after a mechanism and its parameters,
which mean the decimals written here. For 1, 3 and 100 runs it has

    epsilon    the least epsilon >= 0 at delta = 10^-6, the worse direction taken,
    at, delta  a smaller epsilon, exact in binary, and the delta there,
    digits     how many decimal digits of both are right.

Here are the exact products of listed outputs. The other rows of the file are stored alone, made in
mpmath by code that shared nothing with the library: Gaussian and Laplace noise in closed form,
mixtures of one run by their threshold, two and three sampled Laplace outputs by quadrature, and all
else by Laplace's inversion of the moment generating function on two lines that had to agree.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Final

from mpmath import mp

from tests.oracles import zoo_outputs as outputs
from tests.oracles.zoo_outputs import Listed, Pair

FILE: Final = Path(__file__).parent / "zoo.json"
RUNS: Final = (1, 3, 100)
DELTA: Final = "1e-6"
DPS: Final = 50
DIGITS: Final = 25
STEP: Final = 64  # epsilons asked for are multiples of 1/64


def exactly(pair: Pair, runs: int) -> Listed:
    """The profile of the listed outcomes of all runs."""
    if runs > 3 and outputs.equally_spaced(pair):
        return Listed.of(outputs.on_a_lattice(pair, runs))
    return Listed.of(outputs.multisets(pair, runs))


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


# Of what is sampled, removing the record costs more.
ROWS: Final[dict[str, Callable[[], Pair]]] = {
    "discrete Laplace 2": lambda: outputs.discrete_laplace(mp.mpf(2)),
    "discrete Laplace 2, sensitivity 3": lambda: outputs.discrete_laplace(mp.mpf(2), 3),
    "discrete Gaussian 2": lambda: outputs.discrete_gaussian(mp.mpf(2)),
    "discrete Gaussian 6, sensitivity 3": lambda: outputs.discrete_gaussian(mp.mpf(6), 3),
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
    "sampled response 1 of 3 at 0.2": lambda: response("1", 3).sampled(mp.mpf("0.2")),
    "sampled discrete Laplace 2 at 0.1": lambda: outputs.discrete_laplace(mp.mpf(2)).sampled(
        mp.mpf("0.1")
    ),
    "sampled bits 1 at 0.1": lambda: outputs.symmetric_bits(mp.mpf(1)).sampled(mp.mpf("0.1")),
}


def row_of(name: str) -> dict[str, dict[str, str]]:
    """For each number of runs, epsilon at DELTA, and delta at a smaller epsilon."""
    found = {}
    with mp.workdps(DPS):
        pair = ROWS[name]()
        for runs in RUNS:
            curve, other = exactly(pair, runs), exactly(pair.reversed, runs)
            epsilon = curve.epsilon(mp.mpf(DELTA))
            at = mp.floor(epsilon * STEP * mp.mpf("0.75")) / STEP
            delta, close = curve.delta(at), 1 + mp.mpf(10) ** -DIGITS
            if other.epsilon(mp.mpf(DELTA)) > epsilon * close or other.delta(at) > delta * close:
                raise ArithmeticError("the other direction costs more")
            found[str(runs)] = {
                "epsilon": mp.nstr(epsilon, DIGITS),
                "at": mp.nstr(at, 20),
                "delta": mp.nstr(delta, DIGITS),
                "digits": str(DIGITS),
            }
    return found


def main() -> None:
    rows = json.loads(FILE.read_text(encoding="utf-8"))
    rows |= {name: row_of(name) for name in ROWS if name not in rows or name in sys.argv[1:]}
    FILE.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
