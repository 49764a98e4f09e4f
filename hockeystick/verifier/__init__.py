"""Checks an answer by a second program, so small that one person can read it.

It imports nothing else of the package, only the standard library and the ball arithmetic of Arb by
python-flint (extra ``verify``). A copy of this folder runs alone: ``python -m verifier FILE``.

`answers` says what an answer claims, `plans` what the runs of its plan lose, read by `fields`,
`integrals` how delta follows from the `moments` of each run, and `balls` by how much a quadrature
rule misses an integral.

The argument, each step with the function that takes it:

1.  ``epsilon <= u`` says ``delta(u) <= delta``, and ``epsilon >= l`` says ``delta(l) >= delta``
    (`answers.claims`); the delta of a plan is the larger one of two directions, in each of which
    the runs compose (`answers.judged`).
2.  For a pair (P, Q) with the loss ``L = ln dP/dQ`` let ``M(z) = E_P e^{zL}``. Independent runs
    multiply M (`product`). Since ``(1 - e^-t)_+ = 1/(2 pi i) int e^{tz} / (z (z+1)) dz`` over any
    line ``Re z = c > 0``, Fubini gives (`Kernel`)

        delta(epsilon) = failure + 1/(2 pi i) int M(z) e^{-epsilon z} / (z (z+1)) dz

    and, for losses on a lattice of span d, the same over ``|Im z| <= pi/d`` (`LatticeKernel`).
3.  The integrand is analytic but at 0 and -1 and conjugate below the real axis, so the line may be
    bent into segments above the axis and a vertical half-line from ``c + iY`` on (`integral`).
4.  n points of Gauss and Legendre miss the integral over a segment by at most
    ``64/15 T rho^(2-2n) / (1 - rho^-2)`` half lengths, T being the largest size of the integrand on
    the ellipse with the segment's ends as foci and half axes that add up to rho half lengths
    (Trefethen 2013, theorem 19.3; `gauss_error`).
5.  M is an integral over x as well, along any path to which Cauchy's theorem lets it be moved. On a
    path with ``Im L >= 0``, ``|M(c + iy)| <= B(c, y) = int |p e^{zL}| |dx|``, which falls with y
    and is log-convex in c: two corners bound it on a box of z (`log_bound`), and the half-line adds
    at most ``B(c, Y) e^{-epsilon c} / Y`` (`Kernel.beyond`).
6.  M and B are found as in 4, panel by panel (`Quadrature`). There T comes from one ball that holds
    the ellipse, finite only if the integrand is analytic on it; being the exponential of a linear
    function of z, it is bounded on a box by the corners; ``|f|`` is continued to complex t by
    ``sqrt(f(t) conj f(conj t))``, at most the larger of ``|f|`` at both. Beyond both ends of the
    path normal tails bound it (`SampledGaussian.rest`).

A few runs of Laplace noise have an integrand that decays slowly, and a finite sum instead of it
(`laplace_sum`).

Paths, segments, numbers of points and precision are found by trial in floating point: a bad choice
makes a ball wide or the search long, but no choice makes a ball wrong.
"""

from .answers import Check, Verdict, answer_in, verify
from .fields import AnswerError

__all__ = ["AnswerError", "Check", "Verdict", "answer_in", "verify"]
