"""Children that are forked to do something and be killed."""

import os
import signal
from collections.abc import Callable


def killed(work: Callable[[], object]) -> None:
    """Do work in a forked process, and check that it is killed by SIGKILL on the way."""
    assert outcome(work) == -signal.SIGKILL


def outcome(work: Callable[[], object]) -> int:
    """Return the exit status of a forked process that does work: 0, 1 where it raises, -9."""
    return awaited(forked(work))


def forked(work: Callable[[], object]) -> int:
    """Return the number of a forked process that does work."""
    child = os.fork()
    if child == 0:
        try:
            work()
        except BaseException:
            os._exit(1)
        os._exit(0)
    return child


def awaited(child: int) -> int:
    """Return how a process ended."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def die(*_: object) -> None:
    """Kill this process."""
    os.kill(os.getpid(), signal.SIGKILL)
