"""A ledger beside a plain model of it: whatever is done to both, they agree."""

import shutil
import tempfile
from fractions import Fraction
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

import hockeystick as hs
from tests.ledger import auditor

NOISE: Final = (1.0, 2.0, 5.0)
LIMITS: Final = {"whole": Fraction(4), "cap": Fraction(2), "block": Fraction(3)}
WITHIN: Final = {"cap": "whole"}
NAMES: Final = st.sampled_from(sorted(LIMITS))
KEYS: Final = st.sampled_from([f"k{index}" for index in range(12)])
RUNS: Final = st.integers(0, 4)


def rho(noise: float, runs: int) -> Fraction:
    return Fraction(runs, 2) / Fraction(repr(noise)) ** 2


class Held:
    """What the model knows of one reservation."""

    def __init__(self, noise: float, runs: int, together: frozenset[str]) -> None:
        self.noise, self.runs, self.together = noise, runs, together
        self.counted, self.state = runs, "reserved"


class LedgerMachine(RuleBasedStateMachine):
    """Reservations made, resolved and forgotten, on a ledger and in a dict."""

    def __init__(self) -> None:
        super().__init__()
        memory = "/dev/shm" if Path("/dev/shm").is_dir() else None
        self.folder = Path(tempfile.mkdtemp(dir=memory, prefix="ledger-"))
        self.file = self.folder / "ledger.db"
        self.model: dict[str, Held] = {}
        for name, limit in LIMITS.items():
            hs.Ledger(self.file, name, hs.ZCDP(float(limit)), within=WITHIN.get(name))
        self.reopen()

    def teardown(self) -> None:
        assert auditor.audit(str(self.file))["wrong"] == []
        shutil.rmtree(self.folder)

    def spent(self, name: str) -> Fraction:
        held = (one for one in self.model.values() if name in one.together)
        return sum((rho(one.noise, one.counted) for one in held), Fraction(0))

    @rule()
    def reopen(self) -> None:
        self.ledgers = {name: hs.Ledger(self.file, name) for name in LIMITS}

    @rule(name=NAMES, also=st.sets(NAMES), key=KEYS, noise=st.sampled_from(NOISE), runs=RUNS)
    def reserve(self, name: str, also: set[str], key: str, noise: float, runs: int) -> None:
        """Reserve; the model says whether that is new, known, refused or too much."""
        named = {name, *also}
        together = frozenset(named | {WITHIN[one] for one in named if one in WITHIN})
        mechanism = hs.Gaussian(noise) ** runs
        known, price = self.model.get(key), rho(noise, runs)
        short = {one for one in together if price and self.spent(one) + price > LIMITS[one]}
        if known is None and short:
            with pytest.raises(hs.errors.BudgetExhausted) as refused:
                self.ledgers[name].reserve(mechanism, key=key, also=also)
            assert all((repr(one) in refused.value.step) == (one in short) for one in LIMITS)
        elif known is None:
            held = self.ledgers[name].reserve(mechanism, key=key, also=also)
            assert (held.state, held.resumed) == ("reserved", False)
            self.model[key] = Held(noise, runs, together)
        elif (known.noise, known.runs, known.together) == (noise, runs, together):
            if known.state != "reserved":
                with pytest.raises(hs.errors.IncompatibleError, match="is no leave to run"):
                    self.ledgers[name].reserve(mechanism, key=key, also=also, resume=True)
                return
            with pytest.raises(hs.errors.ParameterError, match="not reserved before"):
                self.ledgers[name].reserve(mechanism, key=key, also=also)
            held = self.ledgers[name].reserve(mechanism, key=key, also=also, resume=True)
            assert (held.state, held.resumed) == ("reserved", True)
        elif known.together & together:
            with pytest.raises(hs.errors.ParameterError, match="key must be a key of its own"):
                self.ledgers[name].reserve(mechanism, key=key, also=also)

    @rule(name=NAMES, keys=st.lists(KEYS, unique=True, max_size=4), noise=st.sampled_from(NOISE))
    def reserve_many(self, name: str, keys: list[str], noise: float) -> None:
        """Reserve a batch: all of it, or nothing of it."""
        together = frozenset({name, *(WITHIN[one] for one in (name,) if one in WITHIN)})
        batch: dict[str, Any] = {"mechanisms": [hs.Gaussian(noise) ** 1] * len(keys), "keys": keys}
        known = [self.model[key] for key in keys if key in self.model]
        if any(one.together & together for one in known):
            with pytest.raises((hs.errors.ParameterError, hs.errors.IncompatibleError)):
                self.ledgers[name].reserve_many(**batch)
            return
        if known:  # of other datasets, which the model knows by the same key
            return
        cost = rho(noise, len(keys))
        if any(self.spent(one) + cost > LIMITS[one] for one in together):
            with pytest.raises(hs.errors.BudgetExhausted):
                self.ledgers[name].reserve_many(**batch)
            return
        made = self.ledgers[name].reserve_many(**batch)
        assert [one.key for one in made] == keys
        self.model.update({key: Held(noise, 1, together) for key in keys})

    @precondition(lambda self: self.model)
    @rule(data=st.data(), runs=st.none() | RUNS)
    def commit(self, data: st.DataObject, runs: int | None) -> None:
        """Commit all or a part; only of what is open, and only a part."""
        key = data.draw(st.sampled_from(sorted(self.model)))
        known = self.model[key]
        held = self.reservation(key)
        ran = None if runs is None else hs.Gaussian(known.noise) ** runs
        again = known.state == "committed" and known.counted == (
            known.runs if ran is None else runs
        )
        if known.state == "reserved" and (runs is None or runs <= known.runs):
            held.commit(ran=ran)
            known.state, known.counted = "committed", known.runs if runs is None else runs
        elif again:
            held.commit(ran=ran)
        else:
            with pytest.raises(hs.errors.IncompatibleError):
                held.commit(ran=ran)

    @precondition(lambda self: self.model)
    @rule(data=st.data())
    def release(self, data: st.DataObject) -> None:
        key = data.draw(st.sampled_from(sorted(self.model)))
        known = self.model[key]
        if known.state == "committed":
            with pytest.raises(hs.errors.IncompatibleError, match="was committed"):
                self.reservation(key).release()
            return
        self.reservation(key).release()
        known.state, known.counted = "released", 0

    @rule(key=KEYS, runs=RUNS, fails=st.booleans())
    def run(self, key: str, runs: int, *, fails: bool) -> None:
        """Run as a program does, to its end or not; never what may have run before."""
        cost = rho(5.0, runs)
        if key in self.model:
            with pytest.raises(hs.errors.IncompatibleError), self.reservation(key):
                raise KeyError(key)
            return
        if cost and self.spent("block") + cost > LIMITS["block"]:
            return
        held = self.ledgers["block"].reserve(hs.Gaussian(5.0) ** runs, key=key)
        self.model[key] = known = Held(5.0, runs, frozenset({"block"}))
        if fails:
            with pytest.raises(KeyError), held:
                raise KeyError(key)
            return
        with held:
            pass
        known.state = "committed"

    @rule()
    def reprice(self) -> None:
        """Price anew, by the same library, which changes nothing."""
        assert self.ledgers["whole"].reprice().changed == ()

    def reservation(self, key: str) -> hs.ledger.Reservation:
        """Return a reservation by any dataset that it is charged to."""
        return self.ledgers[min(self.model[key].together)].reservation(key)

    @invariant()
    def the_same_counts(self) -> None:
        for name, ledger in self.ledgers.items():
            status = ledger.status
            own = [one for one in self.model.values() if name in one.together]
            assert ledger.history()[-1].total == (self.spent(name),)
            assert self.spent(name) <= LIMITS[name]
            assert status.unresolved == sum(one.state == "reserved" for one in own)


@pytest.mark.parametrize(("examples", "steps"), [(4, 12), (40, 30)])
def test_a_ledger_does_what_a_plain_model_of_it_does(examples: int, steps: int) -> None:
    how = settings(max_examples=examples, stateful_step_count=steps)
    run_state_machine_as_test(LedgerMachine, settings=how)
