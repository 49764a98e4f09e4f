"""Kernels run as plain Python until that costs more than loading numba, then compiled.

Loading numba and the first kernels takes ten times as long as a usual answer without them. So a
kernel's first calls are interpreted, and what they cost is counted, in rounds of loops and calls of
kernels: the same every time, unlike clocks. Once ``BUDGET`` of them are spent, in all calls
together, numba is loaded, and the call that spent them is made again compiled, as are all later
ones. A kernel only reads what it is given, so that a call can be made again.

**Both ways compute the same.** Each operation on floats is the same IEEE 754 operation in the same
order: the compiler is never allowed to reassociate or to contract, and sums are loops, never
numpy's. ``exp``, ``log`` and their like come from the C library in both, bit by bit the same, so
that ``np.exp`` of an array, which numpy computes by itself, stands in no kernel. Where a compiler
has a vector library of its own they may differ, within the four units in the last place that
kernels allow for. ``min`` and ``max`` keep their first argument unless a later one is strictly
beyond it, also where one is NaN. Integers are counts far below 2^63. Where Python or numpy raises,
for an overflow, a division by zero or an argument outside a function's domain, compiled code may go
on with inf or NaN: such a call is made again compiled. Results have the types of compiled code.

Kernels whose integers are meant to wrap, or whose work is always large, take ``njit_at_once``.
"""

from collections.abc import Callable
from functools import cached_property, partial, update_wrapper, wraps
from threading import Event, RLock
from types import FunctionType
from typing import Any, Final, Generic, ParamSpec, TypeVar

import numpy as np

P = ParamSpec("P")
R = TypeVar("R")

# Rounds of loops and calls of kernels: some 2 s, where loading numba and kernels takes 1 s and
# compiling them, once after installing, 40 s.
BUDGET: Final = 2_500_000


def interruptible(function: Callable[P, R]) -> Callable[P, R]:
    """Return a compiled function that raises what a signal handler raised: KeyboardInterrupt, say.

    Where several arrays are handed back, Python handles the signals that arrived meanwhile before
    the last array is there, and reports a ``SystemError`` caused by what was really raised.
    """

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except SystemError as error:
            raised: BaseException = error
            while isinstance(raised, SystemError) and raised.__cause__ is not None:
                raised = raised.__cause__
            raise raised from None

    return call


class Compilations:
    """Whether numba compiles just now, which it does once after an installation."""

    def __init__(self) -> None:
        self._watched = False
        self._under_way = 0

    @property
    def under_way(self) -> bool:
        """Whether anything is being compiled, as opposed to loaded or run."""
        return self._under_way > 0

    def watch(self) -> None:
        """Have numba tell when it compiles."""
        if self._watched:
            return
        self._watched = True
        from numba.core import event

        tally = self

        class Listener(event.Listener):
            """Counts what has begun and not ended."""

            def on_start(self, event: Any) -> None:
                tally._under_way += 1

            def on_end(self, event: Any) -> None:
                tally._under_way -= 1

        register: Any = event.register
        register("numba:compile", Listener())


COMPILATIONS: Final = Compilations()


class _SpentError(Exception):
    """Interpreting has cost enough."""


class Interpreter:
    """Kernels as Python functions, whose loops and calls of one another are counted."""

    def __init__(self, budget: float) -> None:
        self.left: float = budget
        self._names: dict[str, dict[str, Any]] = {}

    def interpreted(self, kernel: Any) -> Any:
        """Return a kernel's Python function among counted loops and counted kernels."""
        function = kernel.py_func
        names = self._names.get(function.__module__)
        if names is None:
            names = {
                name: self._counted(value) if hasattr(value, "py_func") else value
                for name, value in function.__globals__.items()
            }
            names["range"] = self._range
            # Stored when it is complete: an interruption leaves nothing half made.
            self._names[function.__module__] = names
        return FunctionType(function.__code__, names, function.__name__, function.__defaults__)

    def _range(self, *bounds: int) -> range:
        """Return a range, its rounds counted in advance."""
        found = range(*bounds)
        self.left -= len(found)
        if self.left < 0:
            raise _SpentError
        return found

    def _counted(self, kernel: Any) -> Callable[..., Any]:
        """Return a kernel for other interpreted kernels to call."""
        function = None

        def call(*args: Any, **kwargs: Any) -> Any:
            nonlocal function
            self.left -= 1
            if self.left < 0:
                raise _SpentError
            if function is None:
                function = self.interpreted(kernel)
            return function(*args, **kwargs)

        return call


class Kernel(Generic[P, R]):
    """A kernel from before numba was loaded; ``load`` puts the compiled one in its place."""

    def __init__(self, function: Callable[P, R], options: dict[str, Any]) -> None:
        self.py_func: Any = function
        self._options = options
        update_wrapper(self, function)

    @cached_property
    def interpreted(self) -> Callable[P, R]:
        """The function among interpreted kernels."""
        found: Callable[P, R] = _INTERPRETER.interpreted(self)
        return found

    @cached_property
    def compiled(self) -> Callable[P, R]:
        """The function in numba's hands: compiled, or loaded from a cache, when it is called."""
        return in_numba(self.py_func, **self._options)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Return what the kernel computes, interpreted as long as that is cheaper."""
        if not _LOADED.is_set():
            try:
                with np.errstate(over="raise", divide="raise", invalid="raise"):
                    result: R = plain(self.interpreted(*args, **kwargs))
                    return result
            except (_SpentError, ArithmeticError, ValueError):
                load()
        return self.compiled(*args, **kwargs)


def in_numba(function: Callable[P, R], *, cache: bool, nogil: bool = False) -> Callable[P, R]:
    """Return a function in numba's hands, kept for later processes where a folder can be written.

    Neither can be where a package is installed read-only, for a user without a home.
    """
    import numba

    COMPILATIONS.watch()
    found: Callable[P, R]
    try:
        found = numba.njit(cache=cache, nogil=nogil)(function)
    except RuntimeError:
        # No folder for it: each process compiles anew.
        found = numba.njit(cache=False, nogil=nogil)(function)
    return found


def njit_at_once(*, cache: bool, nogil: bool = False) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Return a decorator for what is numba's own from the first call on."""
    return partial(in_numba, cache=cache, nogil=nogil)


_KERNELS: Final[list[Kernel[..., Any]]] = []
_INTERPRETER: Final = Interpreter(BUDGET)
_LOADING: Final = RLock()
_LOADED: Final = Event()


def njit(*, cache: bool, nogil: bool = False) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Return a decorator like numba's, which waits with loading numba."""

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        kernel = Kernel(function, {"cache": cache, "nogil": nogil})
        with _LOADING:
            if _LOADED.is_set():
                return kernel.compiled
            _KERNELS.append(kernel)
            return kernel

    return decorate


def load() -> None:
    """Load numba, and put compiled kernels in the place of interpreted ones, for good."""
    with _LOADING:
        if _LOADED.is_set():
            return
        for names in [kernel.py_func.__globals__ for kernel in _KERNELS]:
            names.update((name, _compiled(value)) for name, value in list(names.items()))
        _INTERPRETER.left = -1
        _LOADED.set()


def _compiled(value: Any) -> Any:
    """Return a module's value, or the compiled kernel in place of one from before."""
    if isinstance(value, Kernel):
        return value.compiled
    kernel = getattr(value, "__wrapped__", None)
    return interruptible(kernel.compiled) if isinstance(kernel, Kernel) else value


def plain(value: Any) -> Any:
    """Return a result with Python's numbers in place of numpy's."""
    if isinstance(value, tuple):
        return tuple(plain(one) for one in value)
    return value.item() if isinstance(value, np.generic) else value
