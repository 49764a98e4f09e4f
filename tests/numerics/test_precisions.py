"""The precision of mpmath that a user sets changes no answer."""

import os
import subprocess
import sys

import mpmath
import pytest

import hockeystick as hs
from hockeystick.numerics.multiprecision import integers_around, interval_bits, iv, mp, working_bits

PLANS = {"closed form": hs.Gaussian(1.5), "atoms": hs.Repeated(hs.RandomizedResponse(0.75), 7)}


@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
@pytest.mark.parametrize("prec", [1, 5000])
def test_digits_are_the_same_at_any_precision_of_mpmath(plan: hs.Mechanism, prec: int) -> None:
    usual = hs.epsilon(plan, 1e-9, digits=12)
    with mpmath.mp.workprec(prec):
        answer = hs.epsilon(plan, 1e-9, digits=12)
    assert (answer.lower, answer.upper) == (usual.lower, usual.upper)


def test_an_answer_in_digits_is_a_number_of_mpmaths_own_context() -> None:
    answer = hs.delta(hs.Gaussian(1.5), 1.0, digits=60)
    assert type(answer.lower) is type(answer.upper) is mpmath.mpf
    with mpmath.mp.workdps(60):
        width = (answer.upper - answer.lower) / answer.upper
    assert 0 < width < mpmath.mpf(10) ** -60


FORK = """
import os, signal, threading
from hockeystick.numerics.multiprecision import working_bits

held = threading.Event()

def hold():
    with working_bits(50):
        held.set()
        threading.Event().wait(0.5)

threading.Thread(target=hold).start()
held.wait()
child = os.fork()
if child == 0:
    signal.alarm(20)
    with working_bits(60):
        os._exit(7)
with working_bits(60):
    raise SystemExit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_integers_around_leave_room_for_what_mpmath_misses() -> None:
    """``iv.exp`` at 700 bits does not enclose this exponential; the integers must."""
    x = mp.mpf("0.05817355172790976869291625916957855224609375")
    with interval_bits(700):
        exponential = iv.exp(-iv.mpf(x))
        assert integers_around(iv.mpf(5)) == (4, 6)
        assert integers_around(iv.mpf([5.25, 6.75])) == (5, 7)
        assert integers_around(iv.mpf([-2, 0])) == (0, 1)
        scaled = exponential * iv.mpf(2) ** 668
    with working_bits(1000):
        low, high = integers_around(scaled)
        assert low <= mp.ldexp(mp.exp(-x), 668) <= high
        assert high - low == 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_child_that_is_forked_while_a_thread_has_its_turn_gets_its_own() -> None:
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", FORK]
    assert subprocess.run(command, check=False, timeout=600).returncode == 7
