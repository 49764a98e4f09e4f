"""Ray as a place where sweeps are asked, or anything else that takes an executor."""

from __future__ import annotations

import concurrent.futures
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor, Future
from threading import Lock
from typing import Any, ParamSpec, TypeVar, final
from weakref import WeakSet

from hockeystick.adapters import missing

try:
    import ray
except ModuleNotFoundError as _error:
    raise missing(_error, "ray", "ray") from _error

__all__ = ["RayExecutor"]

_P = ParamSpec("_P")
_T = TypeVar("_T")


@final
class RayExecutor(Executor):
    """Run calls as tasks of Ray: a ``concurrent.futures.Executor``, such as ``hs.sweep`` takes.

    Where Ray is not connected yet, the first call connects it: to the cluster that RAY_ADDRESS
    names, else to one that it starts on this machine. What a call raises is what its future raises,
    with Ray's account of where it happened as its ``__cause__``. ``cancel`` takes a call that waits
    out of Ray's queue, and interrupts one that runs. A worker that dies fails its call after Ray
    has tried it again ``max_retries`` times (3 by default). ``shutdown``, and the end of ``with``,
    wait for the calls and leave Ray running.

    Args:
        options: Options of Ray for each task, as ``ray.remote`` takes them: ``num_cpus=2``,
            ``max_retries=0``, ``resources={...}``, ``runtime_env={...}``.

    Raises:
        ValueError: If Ray does not know an option.
        RuntimeError: From ``submit``, after ``shutdown``.

    Example, which ``docs/howto/sweeps.md`` runs::

        with RayExecutor() as executor:
            for row in hs.sweep({"epochs": [1, 2]}, hs.calibration.AskEpsilon(plan), executor):
                print(row)
    """

    def __init__(self, **options: Any) -> None:
        self._task: Any = ray.remote(_called).options(**options)
        self._lock = Lock()
        self._kept = WeakSet[Future[Any]]()  # which Ray holds until they are done
        self._ended = False

    def submit(self, fn: Callable[_P, _T], /, *args: _P.args, **kwargs: _P.kwargs) -> Future[_T]:
        """Have Ray run a call, and return what will have its result."""
        with self._lock:
            if self._ended:
                raise RuntimeError("cannot schedule new futures after shutdown")
            future: Future[_T] = _TaskFuture(self._task.remote(fn, args, kwargs))
            self._kept.add(future)
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        with self._lock:
            self._ended = True
            futures = list(self._kept)
        if cancel_futures:
            for future in futures:
                future.cancel()
        if wait:
            concurrent.futures.wait(futures)


@final
class _TaskFuture(Future[Any]):
    """The future of a task of Ray's: pending until that is done, so that it can be cancelled."""

    def __init__(self, task: Any) -> None:
        super().__init__()
        self._task = task
        task.future().add_done_callback(self._settle)

    def cancel(self) -> bool:
        if not super().cancel():
            return False
        ray.cancel(self._task)
        return True

    def _settle(self, told: Future[Any]) -> None:
        if not self.set_running_or_notify_cancel():
            return
        error: Any = told.exception()
        if error is None:
            self.set_result(told.result())
            return
        cause = error.cause if isinstance(error, ray.exceptions.RayTaskError) else None
        if isinstance(cause, BaseException):
            cause.__cause__ = error
            error = cause
        self.set_exception(error)


def _called(fn: Callable[..., _T], args: Sequence[Any], kwargs: Mapping[str, Any]) -> _T:
    """Call a function; one task for all of them, as Ray keeps each one that it is told of."""
    return fn(*args, **kwargs)
