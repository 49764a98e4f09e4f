"""The questions, and what this package answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Final, TypeAlias, final

import hockeystick as hs
from hockeystick.results import Certified

# An interval that holds the truth, or a number.
Found: TypeAlias = "tuple[float, float] | float"


@final
@dataclass(frozen=True, slots=True)
class Row:
    """One question: what this package says, the peer that is asked too, and what was published."""

    subject: str
    question: str
    ours: Callable[[], Found]
    peer: str = ""
    published: str = ""


def _ends(answer: Certified) -> tuple[float, float]:
    return answer.lower, answer.upper


def _mnist(noise_multiplier: float = 1.1, examples_per_user: int = 1) -> hs.DPSGD:
    return hs.DPSGD(
        examples=60_000,
        batch_size=256,
        epochs=60,
        noise_multiplier=noise_multiplier,
        examples_per_user=examples_per_user,
    )


def _epsilon(plan: hs.mechanisms.Mechanism, delta: float = 1e-5) -> tuple[float, float]:
    return _ends(hs.epsilon(plan, delta))


def _mu() -> tuple[float, float]:
    return _ends(hs.accountants.gaussian_summary(_mnist()).mu)


def _regret() -> tuple[float, float]:
    return _ends(hs.accountants.gaussian_summary(_mnist()).regret)


def _advantage() -> float:
    return hs.tradeoff(_mnist()).advantage


def _user(examples: int, noise: float) -> tuple[float, float]:
    return _epsilon(_mnist(noise, examples))


def _capped(cap: int) -> tuple[float, float]:
    return _epsilon(
        hs.DPSGD(examples=60_000, batch_size=256, steps=1_000, noise_multiplier=1.0, batch_cap=cap)
    )


def _loss_of(encoder: hs.mechanisms.Encoder, error: str = "max") -> float:
    return hs.calibration.sums_error(encoder, error).loss


def _buffered() -> float:
    return _loss_of(hs.calibration.optimise_buffered(1_000, 3))


def _buffered_often() -> float:
    return _loss_of(hs.calibration.optimise_buffered(2_052, 2, participations=6, separation=342))


def _banded() -> float:
    return _loss_of(hs.calibration.optimise_banded(1_000, 16, error="mean"), "mean")


def _tuned() -> tuple[float, float]:
    run = hs.DPSGD(noise_multiplier=2.0, rate=0.01, steps=1_000)
    count = hs.mechanisms.tuning.TruncatedNegativeBinomial(eta=1, gamma=0.1)
    return _epsilon(hs.mechanisms.RandomStopping(run, count), 1e-6)


def _allocated(noise: float, participations: int) -> tuple[float, float]:
    plan = hs.mechanisms.RandomAllocation(hs.Gaussian(noise), 1_000, participations)
    return _epsilon(plan, 1e-3)


def _cyclic() -> tuple[float, float]:
    rate = Fraction(500, 60_000 // 16)
    return _epsilon(hs.mechanisms.CyclicPoisson(1.0, (1.0,), 2_000, 16, rate))


def _negative() -> tuple[float, float]:
    return _ends(hs.accountants.directed_delta(_mnist(), -0.5, "remove"))


ROWS: Final = (
    Row("Report in mu", "mu of mnist-tutorial, error rates from 1e-12 on", _mu, "gdpnum_mu"),
    Row("Report in mu", "its regret", _regret, "gdpnum_regret"),
    Row("Report in mu", "advantage of an attack on it", _advantage, "riskcal_advantage"),
    Row(
        "User-level DP-SGD",
        "4 examples a user, noise 3, 256 of 60,000, 60 epochs, delta 1e-5",
        partial(_user, 4, 3.0),
        "jax_privacy_user_4",
    ),
    Row(
        "User-level DP-SGD",
        "16 examples a user, noise 12",
        partial(_user, 16, 12.0),
        "jax_privacy_user_16",
    ),
    Row(
        "Truncated batches",
        "256 of 60,000, at most 272, noise 1, 1,000 steps, delta 1e-5",
        partial(_capped, 272),
        "jax_privacy_cap_272",
    ),
    Row("Truncated batches", "at most 320", partial(_capped, 320), "jax_privacy_cap_320"),
    Row(
        "Matrix mechanisms",
        "loss (error times sensitivity) of 3 buffers, the worst of 1,000 sums",
        _buffered,
        "jax_privacy_buffered",
    ),
    Row(
        "Matrix mechanisms",
        "of 2 buffers, 2,052 rounds, 6 participations 342 apart",
        _buffered_often,
        "jax_privacy_buffered_often",
    ),
    Row(
        "Matrix mechanisms",
        "of 16 bands, root mean square over 1,000 sums",
        _banded,
        "jax_privacy_banded",
    ),
    Row(
        "Matrix mechanisms",
        "16 bands, cyclic Poisson: 2,000 rounds of 500 of 60,000, noise 1, delta 1e-5",
        _cyclic,
        "jax_privacy_cyclic",
    ),
    Row(
        "Tuning",
        "best of a geometric number of runs, 10 in the mean: noise 2, rate .01, 1,000 steps, "
        "delta 1e-6",
        _tuned,
        "dp_accounting_tuned",
    ),
    Row(
        "Random allocation",
        "5 of 1,000 steps, noise .8, delta 1e-3",
        partial(_allocated, 0.8, 5),
        published=".808 by simulation, Feldman and Shenfeld 2025",
    ),
    Row(
        "Random allocation",
        "10 of 1,000 steps, noise 1",
        partial(_allocated, 1.0, 10),
        published="1.099 by simulation",
    ),
    Row(
        "Single directions",
        "delta of mnist-tutorial at epsilon -0.5, the record removed",
        _negative,
        "dp_accounting_negative",
    ),
)
