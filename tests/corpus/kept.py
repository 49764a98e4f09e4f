"""What lies on people's disks, and the plans that made it, three steps of each (five of "epochs").

The stored files are not made anew: whoever changes what is written adds files beside them, as
those with a 2, which have the second title of federated rounds. ``costs.json`` has the count and
the ends of the cost of each.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import hockeystick as hs
from hockeystick.adapters.loop import Account
from hockeystick.ledger import ReservedRun
from hockeystick.release.federated import ClientRounds, ClientTraining

STORED: Final = Path(__file__).parent
COSTS: Final = json.loads((STORED / "costs.json").read_text())
DELTA: Final = 1e-5
STEPS: Final = hs.DPSGD(examples=60, batch_size=6, steps=8, noise_multiplier=4)
CLIENTS: Final[dict[str, Any]] = {
    "noise_multiplier": 4,
    "total_clients": 4,
    "clients_per_round": 2,
    "rounds": 8,
}
RECORDS: Final[dict[str, Any]] = {
    **CLIENTS,
    "examples_per_client": 6,
    "batch_size": 2,
    "local_steps": 3,
}
LOCAL: Final = tuple(
    hs.federated.LocalTraining(examples=n, batch_size=2, noise_multiplier=4, local_steps=2)
    for n in (6, 8)
)
ON_LEDGER: Final = {
    "reserved-steps": ("census", hs.ZCDP(rho=0.5)),
    "reserved-rounds": ("clients", hs.ZCDP(rho=0.75)),
}

# Each opens a run on a journal, a new one as it is made and the stored one as it is read.
RUNS: Final[dict[str, Callable[[Any], Any]]] = {
    "steps": lambda journal: Account(STEPS, journal=journal),
    "steps-real": lambda journal: Account(STEPS, journal=journal, arithmetic="real"),
    "steps-not-private": lambda journal: Account(STEPS, journal=journal, not_private=True),
    "steps-scheduled": lambda journal: Account(
        hs.DPSGD(
            examples=60,
            batch_size=6,
            steps=8,
            noise_multiplier=4,
            batch_cap=9,
            extra=hs.Gaussian(9),
            schedule=hs.schedules.Exponential(0.9),
        ),
        journal=journal,
    ),
    "epochs": lambda journal: Account(
        hs.DPSGD(
            examples=60, batch_size=12, epochs=3, noise_multiplier=4, sampling="random-allocation"
        ),
        journal=journal,
    ),
    "reserved-steps": lambda journal: Account(STEPS, journal=journal),
    "rounds": lambda journal: ClientRounds(
        hs.federated.FedSDP(**CLIENTS, sampling="poisson"), 2, 1.0, journal=journal
    ),
    "rounds-of-clients": lambda journal: ClientRounds(
        hs.federated.FedSDP(**CLIENTS, sampling="revealed", adjacency="zero-out"),
        2,
        1.0,
        noise_at="clients",
        journal=journal,
    ),
    "reserved-rounds": lambda journal: ClientRounds(
        hs.federated.FedSDP(**CLIENTS, sampling="poisson"), 2, 1.0, journal=journal
    ),
    "fedcdp": lambda journal: ClientTraining(
        hs.federated.FedCDP(**RECORDS, sampling="poisson"), 6, 1.0, journal=journal
    ),
    "fedalphacdp": lambda journal: ClientTraining(
        hs.federated.FedAlphaCDP(
            **RECORDS, sampling="two-stage", schedule=hs.schedules.Linear(0.5)
        ),
        6,
        1.0,
        journal=journal,
    ),
    "prifedsync": lambda journal: ClientTraining(
        hs.federated.PriFedSync(clients=LOCAL, rounds=8), 8, 1.0, client=1, journal=journal
    ),
}
RUNS.update({f"{name}-2": RUNS[name] for name in ("rounds", "rounds-of-clients", "prifedsync")})
# From a recorded state to the recorder, what is recorded there, and its cost.
RECORDERS: Final[dict[str, tuple[Any, Callable[[], Any], Callable[[Any], Any]]]] = {
    "accountant": (hs.Accountant.from_state_dict, hs.Accountant, lambda one: one.epsilon(DELTA)),
    "filter": (
        hs.calibration.Filter.from_state_dict,
        lambda: hs.calibration.Filter(hs.ApproxDP(8, DELTA)),
        lambda one: float(one.spent.epsilon),
    ),
    "filter-sampled": (
        hs.calibration.Filter.from_state_dict,
        lambda: hs.calibration.Filter(hs.ApproxDP(8, DELTA), expected=STEPS),
        lambda one: float(one.spent.epsilon),
    ),
    "odometer": (
        hs.calibration.Odometer.from_state_dict,
        lambda: hs.calibration.Odometer(DELTA),
        lambda one: one.epsilon,
    ),
}
RECORDED: Final = {hs.PoissonSubsampled(hs.Gaussian(4.0), 0.1): 5, hs.Laplace(scale=9.0): 2}
PLAN: Final = hs.Gaussian(4.0) ** 3 @ hs.PoissonSubsampled(hs.Laplace(3.0), 0.25)
GRID: Final = {"noise_multiplier": [2.0, 3.0, -1.0]}
ASK: Final = hs.calibration.AskEpsilon(hs.Gaussian(1.0), DELTA)


def run_of(name: str, folder: Path) -> Any:
    """Return a run that goes on with its journal in a folder, or begins it."""
    journal: Any = folder / f"{name}.journal"
    if name in ON_LEDGER:
        ledger = hs.Ledger(folder / "ledger.db", *ON_LEDGER[name])
        journal = ReservedRun(ledger.charging(by="ana", note="a run"), name, journal)
    return RUNS[name](journal)


def counted(run: Any, steps: int) -> Any:
    """Count steps or rounds of a run."""
    for _ in range(steps):
        run.count()
    return run


def ends(answer: Any) -> list[float]:
    """Return the ends of a cost."""
    return [answer, answer] if isinstance(answer, float) else [answer.lower, answer.upper]


def cost_of(run: Any) -> list[Any]:
    """Return how much of a run is counted, and what that costs."""
    return [run.counted, *ends(hs.epsilon(run.released, DELTA, accountant="rdp"))]
