"""Ten clients, twenty rounds, training in four ways, in Flower's simulation engine."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import hockeystick as hs

pytestmark = pytest.mark.extras
pytest.importorskip("ray")
pytest.importorskip("flwr")
pytest.importorskip("torch")
pytest.importorskip("sklearn")

ROOT = Path(__file__).parents[2]
LINE = re.compile(
    r"^(\w+), hides (a \w+) +accuracy ([\d.]+), releases (\d+)(?:, Flower says ([\d.]+))?"
    r" +\(([\d.]+), 1e-05\) +as accounted$",
    re.MULTILINE,
)
OPEN = re.compile(r"^open, hides nothing +accuracy ([\d.]+) +no privacy$", re.MULTILINE)
DELTA = 1e-5


def test_ten_clients_train_for_twenty_rounds_and_cost_what_their_plans_cost() -> None:
    program = ROOT / "examples" / "systems" / "flower_digits.py"
    ran = subprocess.run(
        [sys.executable, str(program)], capture_output=True, text=True, timeout=1800, check=False
    )
    assert ran.returncode == 0, ran.stderr
    # No client was lost on the way: with noise alone epsilon would be the same.
    assert "counts as 0" not in ran.stderr
    assert "Error" not in ran.stderr
    found = {match[1]: match.groups()[1:] for match in LINE.finditer(ran.stdout)}
    assert set(found) == {"flower", "poisson", "local"}, ran.stdout
    hidden, accuracy, releases, theirs, epsilon = (
        {way: groups[place] for way, groups in found.items()} for place in range(5)
    )
    assert hidden == {"flower": "a client", "poisson": "a client", "local": "a record"}
    assert releases == {"flower": "20", "poisson": "20", "local": "100"}
    assert theirs == {"flower": "5.378", "poisson": None, "local": None}
    assert epsilon["flower"] == "10.327"
    poisson = hs.federated.FedSDP(
        noise_multiplier=4, total_clients=10, clients_per_round=9, rounds=20, sampling="poisson"
    )
    local = hs.DPSGD(examples=144, batch_size=36, steps=100, noise_multiplier=3)
    for way, plan in {"poisson": poisson, "local": local}.items():
        cost = hs.epsilon(plan, DELTA).upper
        assert cost <= float(epsilon[way]) <= cost + 0.001
    without = OPEN.search(ran.stdout)
    assert without is not None, ran.stdout
    assert float(without[1]) > float(accuracy["local"]) > 0.75
    # 10 % is chance; the noise on ten clients leaves 24 to 60 % in 40 runs.
    assert min(float(accuracy[way]) for way in ("flower", "poisson")) > 0.15
