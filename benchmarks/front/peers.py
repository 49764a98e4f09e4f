"""What other packages answer: run by an interpreter that has them, one name a question.

``PYTHON benchmarks/front/peers.py NAME ...`` prints one JSON object: for each name the answer as a
number and the seconds that it took, or what was said instead. It imports nothing of hockeystick.
"""

import json
import math
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

MNIST = {"noise_multiplier": 1.1, "sample_rate": 256 / 60_000, "num_steps": 14_063}


def gdpnum_mu() -> float:
    import gdpnum

    return float(gdpnum.dpsgd.get_mu_and_regret_for_dpsgd(**MNIST, err=1e-12)[0])


def gdpnum_regret() -> float:
    import gdpnum

    return float(gdpnum.dpsgd.get_mu_and_regret_for_dpsgd(**MNIST, err=1e-12)[1])


def riskcal_advantage() -> float:
    from dp_accounting.pld import privacy_loss_distribution as pld
    from riskcal.analysis import get_advantage_from_pld

    step = pld.from_gaussian_mechanism(
        MNIST["noise_multiplier"], sampling_prob=MNIST["sample_rate"]
    )
    return float(get_advantage_from_pld(step.self_compose(int(MNIST["num_steps"]))))


def _jax_privacy(**params: Any) -> float:
    from jax_privacy.accounting import accountants, analysis

    steps, users = params.pop("steps"), "examples_per_user" in params
    kind = analysis.DpsgdTrainingUserLevelAccountant if users else analysis.DpsgdTrainingAccountant
    return float(
        kind(accountants.PldAccountantConfig()).compute_epsilon(
            steps, analysis.DpParams(**{"delta": 1e-5, "num_samples": 60_000, **params})
        )
    )


def jax_privacy_user_4() -> float:
    return _jax_privacy(steps=14_063, noise_multipliers=3.0, batch_size=256, examples_per_user=4)


def jax_privacy_user_16() -> float:
    return _jax_privacy(steps=14_063, noise_multipliers=12.0, batch_size=256, examples_per_user=16)


def jax_privacy_cyclic() -> float:
    return _jax_privacy(steps=2_000, noise_multipliers=1.0, batch_size=500, cycle_length=16)


def _buffers(count: int, rounds: int, participations: int, separation: int) -> float:
    import jax

    jax.config.update("jax_enable_x64", True)
    from jax_privacy.matrix_factorization import buffered_toeplitz as blt
    from jax_privacy.matrix_factorization import toeplitz

    found = blt.optimize(
        n=rounds,
        min_sep=separation,
        max_participations=participations,
        min_buffers=count,
        max_buffers=count,
    )
    diagonals = found.toeplitz_coefs(rounds)
    square = toeplitz.minsep_sensitivity_squared(
        diagonals, separation, participations, rounds, skip_checks=True
    )
    error = toeplitz.per_query_error(strategy_coef=diagonals, n=rounds)[-1]
    return math.sqrt(float(error * square))


def jax_privacy_buffered() -> float:
    return _buffers(3, 1_000, 1, 1)


def jax_privacy_buffered_often() -> float:
    return _buffers(2, 2_052, 6, 342)


def jax_privacy_banded() -> float:
    import jax

    jax.config.update("jax_enable_x64", True)
    from jax_privacy.matrix_factorization import toeplitz

    found = toeplitz.optimize_banded_toeplitz(1_000, 16)
    return math.sqrt(float(toeplitz.loss(found, 1_000)))


def _capped(cap: int) -> float:
    return _jax_privacy(
        steps=1_000, noise_multipliers=1.0, batch_size=256, truncated_batch_size=cap
    )


def jax_privacy_cap_272() -> float:
    return _capped(272)


def jax_privacy_cap_320() -> float:
    return _capped(320)


def dp_accounting_tuned() -> float:
    import dp_accounting as dp

    step = dp.PoissonSampledDpEvent(0.01, dp.GaussianDpEvent(2.0))
    training = dp.SelfComposedDpEvent(step, 1_000)
    searched = dp.dp_event.RepeatAndSelectDpEvent(training, 10.0, 1.0)
    return float(dp.rdp.RdpAccountant().compose(searched).get_epsilon(1e-6))


def dp_accounting_negative() -> float:
    from dp_accounting.pld import privacy_loss_distribution as pld

    step = pld.from_gaussian_mechanism(1.1, sampling_prob=256 / 60_000)
    composed = step.self_compose(14_063)
    # The order in which the record is removed.
    return float(composed._pmf_remove.get_delta_for_epsilon(-0.5))


ANSWERS: dict[str, Callable[[], float]] = {
    name: answer
    for name, answer in list(globals().items())
    if callable(answer)
    and not name.startswith("_")
    and getattr(answer, "__module__", "") == __name__
}


def main() -> None:
    """Print what was asked for."""
    warnings.simplefilter("ignore")
    said: dict[str, Any] = {}
    for name in sys.argv[1:]:
        began = time.perf_counter()
        try:
            value = ANSWERS[name]()
        except Exception as error:  # what a peer refuses is an answer as well
            said[name] = {"said": f"{type(error).__name__}: {error}".splitlines()[0]}
        else:
            shown = value if math.isfinite(value) else str(value)
            said[name] = {"value": shown, "seconds": time.perf_counter() - began}
    sys.stdout.write(json.dumps(said))


if __name__ == "__main__":
    main()
