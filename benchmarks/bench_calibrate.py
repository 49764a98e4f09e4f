"""Time and value of one solved parameter, beside other libraries where they are installed."""

from typing import Any

import pytest

import hockeystick as hs

RATE, STEPS = 256 / 60_000, 14_062
BUDGET = hs.ApproxDP(2, 1e-5)
BY_RATE = hs.DPSGD(noise_multiplier=1.1, rate=RATE, steps=STEPS)
BY_SIZE = hs.DPSGD(noise_multiplier=1.1, examples=60_000, batch_size=256, steps=STEPS)
BY_EPOCHS = hs.DPSGD(noise_multiplier=1.1, examples=60_000, batch_size=256, epochs=60)


@pytest.mark.parametrize(
    ("plan", "parameter"),
    [
        (BY_RATE, "noise_multiplier"),
        (BY_RATE, "rate"),
        (BY_RATE, "steps"),
        (BY_SIZE, "batch_size"),
        (BY_SIZE, "examples"),
        (BY_EPOCHS, "epochs"),
    ],
    ids=lambda one: one if isinstance(one, str) else "",
)
def bench_hockeystick(benchmark: Any, plan: hs.Mechanism, parameter: str) -> None:
    found = benchmark(hs.calibrate, plan, parameter, BUDGET)
    benchmark.extra_info["value"] = repr(found.value)
    assert found.achieved.upper <= 2


# Opacus says so where its largest order is the best one: what it then answers is what is timed.
@pytest.mark.filterwarnings("ignore:Optimal order is the")
@pytest.mark.parametrize("accountant", ["rdp", "prv"])
def bench_opacus(benchmark: Any, accountant: str) -> None:
    utils = pytest.importorskip("opacus.accountants.utils", reason="needs the extra opacus")

    def ask() -> float:
        return float(
            utils.get_noise_multiplier(
                target_epsilon=2.0,
                target_delta=1e-5,
                sample_rate=RATE,
                steps=STEPS,
                accountant=accountant,
            )
        )

    benchmark.extra_info["value"] = repr(benchmark(ask))


def bench_dp_accounting_pld(benchmark: Any) -> None:
    dp = pytest.importorskip("dp_accounting", reason="needs the extra peers")

    def event(noise: float) -> Any:
        step = dp.PoissonSampledDpEvent(RATE, dp.GaussianDpEvent(noise))
        return dp.SelfComposedDpEvent(step, STEPS)

    def ask() -> float:
        return float(dp.calibrate_dp_mechanism(dp.pld.PLDAccountant, event, 2.0, 1e-5))

    benchmark.extra_info["value"] = repr(benchmark(ask))
