"""What `import hockeystick` gives, and what it does not load."""

import importlib
import inspect
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

import hockeystick as hs

HEAVY = ("numba", "scipy", "mpmath", "flint", "click", "rich", "matplotlib")
ROOMS = sorted(
    f"hockeystick.{one.parent.name}"
    for one in Path(str(hs.__file__)).parent.glob("*/__init__.py")
    if one.parent.name not in ("adapters", "verifier")  # which need extras
)
PEERS = ("torch", "opacus", "flwr", "dp_accounting", "prv_accountant")


def test_the_public_names_are_exactly_these() -> None:
    assert " ".join(sorted(hs.__all__)) == (
        "Accountant Adjacency ApproxDP Approximate Calibrated Certified Composed DPSGD "
        "DiscreteGaussian DiscreteLaplace Exponential FDP FixedSizeSubsampled GDP Gaussian "
        "HockeystickError Laplace Ledger Mechanism Parallel PoissonSubsampled PureDP "
        "RandomizedResponse RenyiDP Repeated Shuffled TCDP ZCDP "
        "calibrate calibration compare convert delta epsilon errors federated load_plan "
        "mechanisms notions release report save_plan sweep tradeoff tradeoffs verify"
    )


@pytest.mark.parametrize("name", hs.__all__)
def test_every_public_name_exists_and_is_documented(name: str) -> None:
    assert inspect.getdoc(getattr(hs, name))


def _loaded_after(code: str) -> set[str]:
    script = f"import sys\n{code}\nprint(*({{*{HEAVY + PEERS}}} & sys.modules.keys()))"
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=600)
    return set(done.stdout.split())


def test_importing_the_package_loads_only_what_is_used() -> None:
    loaded = "{'numpy', 'hockeystick.mechanisms', 'hockeystick.adapters'} & sys.modules.keys()"
    code = f"import hockeystick as hs\nassert not {loaded}\n"
    assert _loaded_after(code) == set()


def test_an_adapter_is_loaded_when_it_is_named() -> None:
    assert not {*PEERS} & _loaded_after("import hockeystick as hs\nhs.adapters.loop.Account")


@pytest.mark.parametrize("room", ROOMS)
def test_each_room_can_be_imported_first(room: str) -> None:
    command = [sys.executable, "-c", f"import {room}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("plug", "library"),
    [("dp_accounting", "dp_accounting"), ("flower", "flwr"), ("torch", "torch")],
)
def test_a_plug_whose_library_is_missing_names_the_extra(
    plug: str, library: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    for name in [one for one in sys.modules if one.startswith(f"hockeystick.adapters.{plug}")]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(ModuleNotFoundError, match=r"not installed: pip install 'hockeystick\["):
        importlib.import_module(f"hockeystick.adapters.{plug}")


@pytest.mark.extras
def test_an_answer_loads_no_library_that_is_installed_beside_this_one() -> None:
    if not all(map(find_spec, PEERS)):
        pytest.skip("not every extra is installed")
    assert not {*PEERS} & _loaded_after(
        "import hockeystick as hs\nhs.epsilon(hs.Gaussian(1), delta=1e-5)"
    )


def test_describing_a_plan_loads_nothing_heavy() -> None:
    plan = "hs.DPSGD(examples=60_000, batch_size=256, epochs=60, noise_multiplier=1.1)"
    assert _loaded_after(f"import hockeystick as hs\nprint(str({plan}), file=sys.stderr)") == set()
