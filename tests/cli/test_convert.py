import json
import shlex
from collections.abc import Callable
from typing import Any

import pytest

import hockeystick as hs
from hockeystick.conversions import convert
from hockeystick.notions import ApproxDP
from hockeystick.numerics.numerals import at_most

Run = Callable[..., tuple[int, str, str]]
Write = Callable[[str | bytes], str]

PLAN = "title = 'A plan'\ndelta = 1e-5\n[dpsgd]\nrate = 0.01\nsteps = 100\nnoise_multiplier = 1\n"


def told(run: Run, *arguments: str) -> dict[str, Any]:
    status, out, err = run("convert", *arguments, "--json")
    assert (status, err) == (0, "")
    answer = json.loads(out, parse_constant=pytest.fail)
    assert isinstance(answer, dict)
    return answer


@pytest.mark.parametrize(
    ("source", "arguments", "result"),
    [
        ("PureDP(1)", "--to ZCDP", {"rho": 0.4621171572600098}),
        ("PureDP(epsilon=2)", "--to ApproxDP --epsilon 1", {"epsilon": 1.0}),
        ("GDP(1)", "--to RenyiDP --orders 2,8", {"divergences": [[2.0, 1.0], [8.0, 4.0]]}),
        ("GDP(1)", "--to RenyiDP --orders [2,8]", {"divergences": [[2.0, 1.0], [8.0, 4.0]]}),
        ("TCDP(0.1, omega=inf)", "--to ZCDP", {"rho": 0.1}),
        ("ZCDP(0.5)", "--to TCDP --orders inf", {"rho": 0.5, "omega": "inf"}),
        (" RenyiDP({2: 0.5, 8: 1.9}) ", "--to RenyiDP --orders 8", {"divergences": [[8.0, 1.9]]}),
        ("GDP(1)", "--to FDP", {"tradeoff": "GaussianTradeOff"}),
    ],
)
def test_json_carries_the_result(
    run: Run, source: str, arguments: str, result: dict[str, Any]
) -> None:
    answer = told(run, source, *shlex.split(arguments))
    for name, value in result.items():
        assert answer["result"][name] == value
    assert answer["to"] == arguments.split()[1]
    assert answer["kind"] in ("exact", "bound")
    assert answer["theorem"]
    assert answer["version"] == hs.__version__
    status, out, err = run("convert", source, *shlex.split(arguments))
    assert (status, err) == (0, "")
    assert answer["kind"] in out


def test_a_plan_file_is_a_source_too_and_its_delta_serves(run: Run, write: Write) -> None:
    path = write(PLAN)
    answer = told(run, path, "--to", "ApproxDP")
    plan = hs.DPSGD(rate=0.01, steps=100, noise_multiplier=1)
    assert answer["result"] == {"epsilon": hs.epsilon(plan, 1e-5).upper, "delta": 1e-5}
    assert answer["title"] == "A plan"
    assert answer["adjacency"] == "add-remove"
    assert any("Poisson" in sentence for sentence in answer["assumptions"])
    at = told(run, path, "--to", "ApproxDP", "--epsilon", "1")
    assert at["result"]["delta"] == convert(plan, ApproxDP, epsilon=1).delta
    status, out, err = run("convert", path, "--to", "FDP", "-v")
    assert (status, err) == (0, "")
    assert "holds if" in out


def test_short_is_the_one_number_that_was_not_given_rounded_up(run: Run) -> None:
    zcdp = "convert", "ZCDP(rho=0.5)", "--short", "--to", "ApproxDP"
    epsilon = hs.convert(hs.ZCDP(rho=0.5), hs.ApproxDP, delta=1e-6).epsilon
    assert run(*zcdp, "--delta", "1e-6") == (0, f"{at_most(float(epsilon))}\n", "")
    delta = hs.convert(hs.ZCDP(rho=0.5), hs.ApproxDP, epsilon=2).delta
    assert run(*zcdp, "--epsilon", "2")[:2] == (0, f"{at_most(float(delta))}\n")
