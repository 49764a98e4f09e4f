"""mpmath's precision in turns: its round-off is allowed for, and a fork waits for its turn."""

import os
import subprocess
import sys

import pytest

from hockeystick.numerics.multiprecision import iv, mp
from hockeystick.numerics.working_precision import integers_around, interval_bits, working_bits

FORK = """
import os, signal, threading
from hockeystick.numerics.working_precision import working_bits

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
