"""Time and value of epsilon for usual plans, beside other accountants where they are installed."""

from typing import Any

import numpy as np
import pytest

import hockeystick as hs

PLANS = {
    "mnist-tutorial": (256 / 60_000, 1.1, 14_062, 1e-5),
    "abadi-2016": (0.01, 4.0, 10_000, 1e-5),
    "imagenet-scale": (16_384 / 1_281_167, 2.5, 72_000, 8e-7),
}
plans = pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS.keys())


@plans
@pytest.mark.parametrize("accountant", ["contour", "rdp"])
def bench_hockeystick(benchmark: Any, plan: Any, accountant: str) -> None:
    rate, noise, steps, delta = plan
    mechanism = hs.PoissonSubsampled(hs.Gaussian(noise), rate) ** steps
    answer = benchmark(hs.epsilon, mechanism, delta, accountant=accountant)
    benchmark.extra_info["epsilon"] = str(answer)
    assert float(answer) > 0


@pytest.mark.parametrize("count", [10, 1000])
def bench_many_deltas(benchmark: Any, count: int) -> None:
    rate, noise, steps, _ = PLANS["mnist-tutorial"]
    mechanism = hs.PoissonSubsampled(hs.Gaussian(noise), rate) ** steps
    deltas = np.geomspace(1e-12, 1e-2, count if benchmark.enabled else 3)

    def ask() -> list[float]:
        return [hs.epsilon(mechanism, delta).upper for delta in deltas.tolist()]

    assert (np.diff(benchmark(ask)) < 0.0).all()


@plans
def bench_dp_accounting_pld(benchmark: Any, plan: Any) -> None:
    dp = pytest.importorskip("dp_accounting", reason="needs the extra peers")
    rate, noise, steps, delta = plan
    step = dp.PoissonSampledDpEvent(rate, dp.GaussianDpEvent(noise))
    event = dp.SelfComposedDpEvent(step, steps)

    def ask() -> float:
        return float(dp.pld.PLDAccountant().compose(event).get_epsilon(delta))

    benchmark.extra_info["epsilon"] = benchmark(ask)


@plans
def bench_prv_accountant(benchmark: Any, plan: Any) -> None:
    prv = pytest.importorskip("prv_accountant", reason="needs the extra peers")
    rate, noise, steps, delta = plan
    loss = prv.PoissonSubsampledGaussianMechanism(rate, noise)

    def ask() -> Any:
        accountant = prv.PRVAccountant(
            prvs=[loss], max_self_compositions=[steps], eps_error=0.1, delta_error=delta / 1000
        )
        return accountant.compute_epsilon(delta, [steps])

    benchmark.extra_info["epsilon"] = benchmark(ask)


# Opacus says so where its largest order is the best one: what it then answers is what is timed.
@pytest.mark.filterwarnings("ignore:Optimal order is the")
@plans
def bench_opacus_prv(benchmark: Any, plan: Any) -> None:
    accountants = pytest.importorskip("opacus.accountants", reason="needs the extra opacus")
    rate, noise, steps, delta = plan

    def ask() -> float:
        accountant = accountants.PRVAccountant()
        accountant.history = [(noise, rate, steps)]
        return float(accountant.get_epsilon(delta))

    benchmark.extra_info["epsilon"] = benchmark(ask)
