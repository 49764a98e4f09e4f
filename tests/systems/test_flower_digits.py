"""Ten clients, twenty rounds, three ways of training, in Flower's simulation engine."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import hockeystick as hs

pytest.importorskip("ray")
pytest.importorskip("flwr")
pytest.importorskip("torch")
pytest.importorskip("sklearn")

ROOT = Path(__file__).parents[2]
LINE = re.compile(
    r"^(\w+) +accuracy ([\d.]+)%; hidden is a (\w+); epsilon ([\d.]+) at delta 1e-05"
    r"(?: \(Flower says ([\d.]+)\))?; (\d+) of (\d+) releases counted$",
    re.MULTILINE,
)
DELTA = 1e-5


@pytest.mark.extras
@pytest.mark.slow
def test_ten_clients_train_for_twenty_rounds_and_cost_what_their_plans_cost() -> None:
    program = ROOT / "examples" / "systems" / "flower_digits.py"
    ran = subprocess.run(
        [sys.executable, str(program)], capture_output=True, text=True, timeout=300, check=False
    )
    assert ran.returncode == 0, ran.stderr
    # No client was lost on the way: with noise alone epsilon would be the same.
    assert "counts as 0" not in ran.stderr
    assert "Error" not in ran.stderr
    found = {match[1]: match.groups()[1:] for match in LINE.finditer(ran.stdout)}
    assert set(found) == {"flower", "poisson", "local"}, ran.stdout
    accuracy = {way: float(groups[0]) for way, groups in found.items()}
    epsilon = {way: float(groups[2]) for way, groups in found.items()}

    assert [found[way][1] for way in ("flower", "poisson", "local")] == [
        "client",
        "client",
        "record",
    ]
    assert (epsilon["flower"], found["flower"][3]) == (10.33, "5.38")
    poisson = hs.federated.FedSDP(
        noise_multiplier=4, total_clients=10, clients_per_round=9, rounds=20, sampling="poisson"
    )
    local = hs.DPSGD(examples=144, batch_size=36, steps=100, noise_multiplier=3)
    for way, plan in {"poisson": poisson, "local": local}.items():
        cost = hs.epsilon(plan, DELTA).upper
        assert cost <= epsilon[way] <= cost + 0.01
    assert [found[way][4:] for way in ("flower", "poisson", "local")] == [
        ("20", "20"),
        ("20", "20"),
        ("100", "100"),
    ]
    assert accuracy["local"] > 75
    # 10 % is chance; the noise on ten clients leaves 24 to 60 % in 40 runs.
    assert min(accuracy["flower"], accuracy["poisson"]) > 15
