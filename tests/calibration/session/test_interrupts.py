"""An interrupt at any instruction of a step leaves it undone, or charged and recorded."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import RLock
from types import FrameType
from typing import Any, Final

import pytest

import hockeystick as hs

FILES: Final = (
    "filters/filter.py",
    "filters/odometer.py",
    "session/accountant.py",
    "session/runs.py",
)
KEPT: Final[dict[str, Callable[[], Any]]] = {
    "filter of rho": lambda: hs.calibration.Filter(hs.ZCDP(1e6)),
    "filter of divergences": lambda: hs.calibration.Filter(hs.RenyiDP({2.0: 1e6, 8.0: 1e6})),
    "odometer": lambda: hs.calibration.Odometer(1e-6),
    "accountant": hs.Accountant,
}
STEP: Final = hs.Gaussian(2.0)


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


@pytest.fixture(autouse=True)
def own_locks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Between two instructions of a with statement there is no interrupt but this one."""
    for module in ("filters.filter", "filters.odometer", "session.accountant"):
        monkeypatch.setattr(f"hockeystick.calibration.{module}.EVALUATING", RLock())


@pytest.mark.parametrize("name", KEPT)
def test_an_interrupt_at_any_instruction_leaves_count_and_cost_together(name: str) -> None:
    made = KEPT[name]()
    made.step(hs.Gaussian(4.0))
    charged, number, finished = 0, 0, False
    while not finished:
        number += 1
        try:
            with interrupted_at(number):
                made.step(STEP)
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
    once.step(STEP)
    readings: tuple[Callable[[Any], object], ...] = (
        len,
        repr,
        lambda one: one.spent,
        lambda one: one.left,
        lambda one: one.adjacency,
        lambda one: one.state_dict(),
        lambda one: one.fits(STEP),
        lambda one: one.step(STEP, count=0),
    )
    for reading in readings:
        cut = hs.calibration.Filter(hs.ZCDP(10.0))
        cut.step(STEP, count=0)
        total = cut._costs(STEP, 1)
        cut._runs._due = STEP, 1, cut._runs._sums._replace(total=1, stating=(STEP,), spent=total)
        assert reading(cut) == reading(once)
        assert repr(cut) == repr(once)
