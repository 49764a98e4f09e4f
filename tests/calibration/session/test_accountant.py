"""The stateful accountant: what it records, what it answers, and that no run is ever lost."""

import copy
import json
import math
import pickle
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Any, Final

import pytest

import hockeystick as hs

STEP: Final = hs.PoissonSubsampled(hs.Gaussian(1.1), rate=256 / 60_000)
THREADS: Final = 8


def at_once(work: Callable[[], object]) -> None:
    """Do the same in eight threads that start together and take turns as often as they can."""
    barrier, failures, before = threading.Barrier(THREADS), [], sys.getswitchinterval()

    def run() -> None:
        barrier.wait()
        try:
            work()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=run) for _ in range(THREADS)]
    sys.setswitchinterval(1e-6)
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    sys.setswitchinterval(before)
    for failure in failures:
        raise failure


def test_what_is_recorded_costs_what_the_plan_costs() -> None:
    accountant = hs.Accountant()
    for _ in range(100):
        accountant.step(STEP)
    accountant.step(hs.Laplace(20.0), count=3)
    accountant.step(STEP**7, count=2)
    plan = STEP**114 @ hs.Laplace(20.0) ** 3
    assert accountant.plan == plan
    assert len(accountant) == 117
    for accountants in ("auto", "rdp", "gdp"):
        own = accountant.epsilon(1e-5, accountant=accountants)
        same = hs.epsilon(plan, 1e-5, accountant=accountants)
        assert str(own) == str(same)
    assert str(accountant.delta(0.5)) == str(hs.delta(plan, 0.5))
    assert accountant.tradeoff()(0.1) == hs.tradeoff(plan)(0.1)


def test_more_runs_than_can_be_counted_are_refused_and_change_nothing() -> None:
    accountant = hs.Accountant()
    accountant.step(STEP, count=10**15)
    for wrong in (-1, 0.5, math.nan, math.inf, "1", None, True):
        with pytest.raises(hs.errors.ParameterError, match=r"^count must be"):
            accountant.step(STEP, count=wrong)  # type: ignore[arg-type]  # what is refused
    with pytest.raises(hs.errors.ParameterError, match="mechanism must be a mechanism"):
        accountant.step(1.1)  # type: ignore[arg-type]  # what is refused
    for count in (1, 10**15):
        with pytest.raises(hs.errors.ParameterError, match=r"^count must be"):
            accountant.step(hs.Gaussian(1), count=count)
    assert accountant.plan == STEP**10**15


def test_a_state_comes_back_through_json() -> None:
    accountant = hs.Accountant()
    accountant.step(STEP, count=1000)
    accountant.step(hs.DPSGD(noise_multiplier=2, rate=0.1, epochs=3))
    accountant.step(hs.ApproxDP(0.1, 1e-9), count=4)
    accountant.step(hs.Gaussian(math.inf))
    text = json.dumps(accountant.state_dict(), allow_nan=False)
    found = hs.Accountant.from_state_dict(json.loads(text))
    assert found.plan == accountant.plan
    assert len(found) == len(accountant)
    assert str(found.epsilon(1e-5)) == str(accountant.epsilon(1e-5))
    assert json.dumps(found.state_dict()) == text
    for copied in (copy.deepcopy(accountant), pickle.loads(pickle.dumps(accountant)), found):
        copied.step(STEP)
        assert len(copied) == len(accountant) + 1
    found.load_state_dict(accountant.state_dict())
    assert found.plan == accountant.plan


@dataclass(frozen=True)
class Yielding(hs.Mechanism):
    """A mechanism that lets other threads run whenever it is looked up."""

    number: int

    @property
    def adjacency(self) -> None:
        """None: whichever."""
        return

    def _words(self) -> tuple[str, tuple[str, ...]]:
        return f"number {self.number}", ()

    def __hash__(self) -> int:
        """Return the number, after others had their turn."""
        time.sleep(0)
        return self.number


ONE: Final = {"mechanism": {"type": "Gaussian", "noise_multiplier": 1.0}, "count": 1}


@pytest.mark.parametrize(
    ("state", "name"),
    [
        (None, "kind"),
        ({"kind": "Filter", "version": 1, "steps": []}, "kind"),
        ({"kind": "Accountant", "steps": []}, "version"),
        ({"kind": "Accountant", "version": 2, "steps": []}, "version"),
        ({"kind": "Accountant", "version": True, "steps": []}, "version"),
        ({"kind": "Accountant", "version": 1}, "the state of Accountant"),
        ({"kind": "Accountant", "version": 1, "steps": [], "more": 1}, "the state of Accountant"),
        ({"kind": "Accountant", "version": 1, "steps": {}}, "steps"),
        ({"kind": "Accountant", "version": 1, "steps": [3]}, "a step"),
        ({"kind": "Accountant", "version": 1, "steps": [{"count": 1}]}, "a step"),
        ({"kind": "Accountant", "version": 1, "steps": [{**ONE, "more": 1}]}, "a step"),
        ({"kind": "Accountant", "version": 1, "steps": [{**ONE, "count": -1}]}, "count"),
        ({"kind": "Accountant", "version": 1, "steps": [{**ONE, "count": 1.5}]}, "count"),
        ({"kind": "Accountant", "version": 1, "steps": [{**ONE, "mechanism": 3}]}, "description"),
    ],
)
def test_what_is_no_state_is_refused_by_name_and_changes_nothing(state: Any, name: str) -> None:
    accountant = hs.Accountant()
    accountant.step(STEP)
    with pytest.raises(hs.errors.ParameterError) as found:
        accountant.load_state_dict(state)
    assert found.value.name == name
    assert accountant.plan == STEP


def test_eight_threads_lose_no_run() -> None:
    accountant = hs.Accountant()
    kinds = [Yielding(k) for k in range(1, 4)]

    def work() -> None:
        for k in range(600):
            accountant.step(kinds[k % 3], count=2)

    at_once(work)
    assert len(accountant) == THREADS * 1200
    assert accountant.plan == kinds[0] ** 3200 @ kinds[1] ** 3200 @ kinds[2] ** 3200


# An interrupt at any instruction of a step leaves it undone, or charged and recorded.

FILES: Final = tuple(f"/{one}.py" for one in ("filter", "odometer", "accountant", "runs"))
NOISY: Final = hs.Gaussian(2.0)
KEPT: Final[dict[str, Callable[[], Any]]] = {
    "filter of rho": lambda: hs.calibration.Filter(hs.ZCDP(1e6)),
    "filter of divergences": lambda: hs.calibration.Filter(hs.RenyiDP({2.0: 1e6, 8.0: 1e6})),
    "odometer": lambda: hs.calibration.Odometer(1e-6),
    "accountant": hs.Accountant,
}


@pytest.mark.parametrize("name", KEPT)
def test_another_adjacency_is_refused_when_it_is_recorded(name: str) -> None:
    kept = KEPT[name]()
    kept.step(hs.Gaussian(1))
    kept.step(STEP)
    other = hs.PoissonSubsampled(hs.Gaussian(2.0), 0.01, adjacency="replace-one")
    for ask in (kept.step, getattr(kept, "fits", kept.step)):
        with pytest.raises(hs.errors.IncompatibleError, match="under one adjacency"):
            ask(other)
    assert len(kept) == 2


@contextmanager
def interrupted_at(number: int) -> Iterator[None]:
    """Raise KeyboardInterrupt before the instruction of that number of the files' methods."""
    seen = [0]

    def trace(frame: FrameType, event: str, argument: object) -> Any:
        if "self" not in frame.f_locals or not frame.f_code.co_filename.endswith(FILES):
            return None
        frame.f_trace_opcodes = True
        if event == "opcode":
            seen[0] += 1
            if seen[0] == number:
                sys.settrace(None)
                raise KeyboardInterrupt
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        yield
    finally:
        sys.settrace(before)


@pytest.fixture
def own_locks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Between two instructions of a with statement there is no interrupt but this one."""
    for module in ("filters.filter", "filters.odometer", "session.accountant"):
        monkeypatch.setattr(f"hockeystick.calibration.{module}.EVALUATING", threading.RLock())


@pytest.mark.usefixtures("own_locks")
@pytest.mark.parametrize("name", KEPT)
def test_an_interrupt_at_any_instruction_leaves_count_and_cost_together(name: str) -> None:
    made = KEPT[name]()
    made.step(hs.Gaussian(4.0))
    charged, number, finished = 0, 0, False
    while not finished:
        number += 1
        try:
            with interrupted_at(number):
                made.step(NOISY)
            finished = True
        except KeyboardInterrupt:
            pass
        read = type(made).from_state_dict(made.state_dict())
        assert repr(read) == repr(made)
        assert 0 <= len(made) - 1 - charged <= 1
        charged = len(made) - 1
    assert number > 50
    assert 1 < charged < number


def test_what_is_due_is_entered_by_whoever_reads_next() -> None:
    """The count, the cost, the state and the next step each see the whole of a step cut short."""
    once = hs.calibration.Filter(hs.ZCDP(10.0))
    once.step(NOISY)
    readings: tuple[Callable[[Any], object], ...] = (
        len,
        repr,
        lambda one: one.spent,
        lambda one: one.left,
        lambda one: one.adjacency,
        lambda one: one.state_dict(),
        lambda one: one.fits(NOISY),
        lambda one: one.step(NOISY, count=0),
    )
    for reading in readings:
        cut = hs.calibration.Filter(hs.ZCDP(10.0))
        cut.step(NOISY, count=0)
        total = cut._costs(NOISY, 1)
        cut._runs._due = NOISY, 1, cut._runs._sums._replace(total=1, stating=(NOISY,), spent=total)
        assert reading(cut) == reading(once)
        assert repr(cut) == repr(once)
