"""Kernels compute the same interpreted and compiled, can be interrupted, and numba waits."""

import ast
import importlib
import math
import pkgutil
import signal
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from copy import deepcopy
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any, get_args, get_origin, get_type_hints

import numba
import numpy as np
import pytest
from numba.core.dispatcher import Dispatcher

import hockeystick as hs
from hockeystick import kernels
from hockeystick.kernels import (
    compiled,
    doubling,
    jumps,
    long_lines,
    near_outputs,
    noise_levels,
    normal_masses,
    sampled_gaussian_contour,
    series,
    shuffled_reports,
)
from hockeystick.kernels.compiled import interruptible
from hockeystick.tradeoffs import SampledGaussianTradeOff

# What is numba's own from the first call on.
DIRECT = {"integer_sums", "inverse_transform"}
EVERY = [
    importlib.import_module(f"hockeystick.kernels.{room.name}")
    for room in pkgutil.iter_modules(kernels.__path__)
]
ROOMS = [room for room in EVERY if room.__name__.rpartition(".")[2] not in DIRECT]
# Of each kernel the first calls are compared, and one of so many later ones.
FIRST, LATER = 30, 97


compiled.load()


def kernels_of(room: Any) -> Iterator[tuple[str, Any]]:
    """Yield the kernels that a module defines, by all names that they have."""
    for name, value in list(vars(room).items()):
        if hasattr(value, "py_func") and value.__module__ == room.__name__:
            yield name, value


def sampled(noise: float, rate: float, runs: int) -> hs.Mechanism:
    return hs.PoissonSubsampled(hs.Gaussian(noise), rate) ** runs


def jump_kernels() -> None:
    """Call what separates the large losses, as a plan with few large losses would."""
    p, mu, w, edge, width = 1e-3, 1.25, 4.0, 6.0, 0.25
    for top, top_width in ((math.inf, 1.0), (9.0, 0.5)):
        window = edge, width, top, top_width, -12.0, 20.0
        jumps.widest_window_step(p, mu, w, 8.0, *window, -30.0)
        jumps.log_nodes_left_out(p, mu, w, top, top_width, -9.0, 14.0, 0.125)
        jumps.log_decay(p, mu, w, 3.0, *window)
    large, error = near_outputs.windows(-64, 192, 0.125, edge, width, 1.0)
    small, _ = near_outputs.windows(-64, 192, 0.125, edge, width, -1.0)
    loss = np.linspace(-1.0, 5.0, 192)
    log_weight, tiny = -0.5 * np.linspace(-8.0, 8.0, 192) ** 2, np.full(192, 1e-15)
    jumps.bulk_part(loss, log_weight, tiny, error, large, small, 3.0)
    for spacing in (0.02, 3.0):
        long_lines.gather(loss, log_weight, tiny, error, 3.0, 20.0, spacing, 9, 64)


def mass_kernels() -> None:
    """Call what sums masses of cells, of counts, and of pairs of values."""
    edges = np.concatenate(([-3e8, -40.0], np.linspace(-9.0, 60.0, 400), [61.0, 62.0, 3e8]))
    widths = np.diff(edges)
    normal_masses.log_masses(edges, np.full(edges.size, 1e-12), widths, np.full(widths.size, 1e-15))
    for trials, odds in ((0, 0.5), (40, 0.2), (1000, 3.0)):
        shuffled_reports.binomial(trials, odds)
    shuffled_reports.up_to(3000, 700, 3.0, 200.0, 2500)
    totals = np.array([7.0, 40.0])
    cuts = np.tanh(0.5 * np.linspace(-2.0, 2.0, 9))
    shuffled_reports.clone_masses(totals, 0.3 * np.ones(2), np.array([0.1, 0.6]), cuts)
    rng = np.random.default_rng(5)
    at, mass = np.sort(rng.lognormal(size=40)), rng.random(40)
    first, last = np.zeros(40, dtype=np.int64), np.full(40, 40)
    for product in (False, True):
        low, high = (at[0] ** 2, at[-1] ** 2) if product else (2.0 * at[0], 2.0 * at[-1])
        node = np.geomspace(0.99 * low, 1.01 * high, 23)
        for twice in (False, True):
            pairs = ((mass, mass), (at, at), first, last, node, twice, product)
            doubling.shares(*pairs)


def level_kernels() -> None:
    """Call what treats many noise levels, as a plan with a schedule would."""
    points = np.sort(np.random.default_rng(3).uniform(0.5, 1.5, 50))
    noise_levels.chebyshev_sums(points, np.ones(50), 1.0, 0.5, 12)
    noise_levels.recurrence(points, 1.0, 0.5, 10)
    noise_levels.cell_ends(points, 0.125)
    width, mass, ends = np.linspace(0.01, 3.0, 30), np.full(30, 0.03), np.array([10, 30])
    noise_levels.total_exponent(width, mass, ends, np.array([50.0, 70.0]), 2.5)
    for removing in (True, False):
        runs = np.full(2, 0.01), np.array([0.7, 1.3]), np.full(2, 100.0), removing
        sampled_gaussian_contour.total(runs, 3.0)


COMPARISONS = hs.mechanisms.AboveThreshold(
    5.0, 10.0, queries=3, threshold_noise="gaussian", query_noise="gaussian"
)
QUESTIONS: list[Callable[[], Any]] = [
    jump_kernels,
    mass_kernels,
    level_kernels,
    partial(hs.delta, COMPARISONS, epsilon=1.0),
    *(
        partial(hs.epsilon, plan, delta=1e-5)
        for plan in (
            sampled(1.1, 256 / 60_000, 14_063),
            sampled(0.5, 1e-3, 9_999),
            sampled(1.0, 1e-4, 1_001),
            sampled(5.0, 0.3, 501),
            hs.FDP(SampledGaussianTradeOff(1.0, 0.1)) ** 200,
        )
    ),
    partial(hs.epsilon, sampled(1.1, 256 / 60_000, 14_063), delta=[1e-6, 1e-5]),
    partial(hs.delta, sampled(1.1, 256 / 60_000, 14_063), epsilon=2.0),
]


class Recording(compiled.Interpreter):
    """Interprets without end, and keeps arguments, what became of them, and results."""

    def __init__(self) -> None:
        super().__init__(math.inf)
        self.calls: dict[str, list[tuple[Any, Any, Any]]] = defaultdict(list)
        self.changed: list[str] = []

    def interpreted(self, kernel: Any) -> Any:
        function = super().interpreted(kernel)
        name = f"{kernel.__module__}.{kernel.py_func.__name__}"
        count = 0

        def call(*args: Any) -> Any:
            nonlocal count
            count += 1
            if count > FIRST and count % LATER:
                return function(*args)
            given = deepcopy(args)
            result = function(*args)
            self.calls[name].append((given, deepcopy(args), deepcopy(result)))
            return result

        return call

    def entered(self, kernel: Any) -> Any:
        """Return a kernel for callers outside, which it must leave their arguments as they are."""
        function = self.interpreted(kernel)

        def call(*args: Any) -> Any:
            given = deepcopy(args)
            with np.errstate(all="raise", under="ignore"):
                result = compiled.plain(function(*args))
            if not same(given, args):
                self.changed.append(kernel.__name__)
            return result

        call.py_func = kernel.py_func  # type: ignore[attr-defined]
        call.__module__, call.__name__ = kernel.__module__, kernel.__name__
        return call


def same(one: Any, other: Any) -> bool:
    if isinstance(one, tuple):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, np.ndarray):
        return one.dtype == other.dtype and np.array_equal(one, other, equal_nan=True)
    return type(one) is type(other) and (one == other or one != one != other)


def test_an_interruption_leaves_no_kernel_half_read() -> None:
    class Interrupted(compiled.Interpreter):
        times = 1

        def _counted(self, kernel: Any) -> Any:
            if self.times:
                self.times -= 1
                raise KeyboardInterrupt
            return super()._counted(kernel)

    reader = Interrupted(math.inf)
    with pytest.raises(KeyboardInterrupt):
        reader.interpreted(series.e2)
    assert reader.interpreted(series.e2)(0.25) == series.e2(0.25)


@pytest.fixture(scope="module")
def recorded() -> Recording:
    """What answers ask of kernels, interpreted."""
    recording = Recording()
    with pytest.MonkeyPatch.context() as patch:
        for room in ROOMS:
            for name, kernel in kernels_of(room):
                patch.setattr(room, name, recording.entered(kernel))
        for ask in QUESTIONS:
            ask()
    return recording


@pytest.mark.parametrize("room", ROOMS, ids=lambda room: room.__name__.rpartition(".")[2])
def test_a_kernel_computes_the_same_interpreted_and_compiled(
    room: Any, recorded: Recording
) -> None:
    for name, kernel in kernels_of(room):
        calls = recorded.calls[f"{room.__name__}.{kernel.py_func.__name__}"]
        assert calls, f"no question asks {name}"
        for given, after, result in calls:
            args = deepcopy(given)
            found = kernel(*args)
            assert same(compiled.plain(result), found), (name, given)
            assert same(compiled.plain(after), compiled.plain(args)), (name, given)


def test_a_kernel_leaves_its_callers_arrays_as_they_are(recorded: Recording) -> None:
    assert recorded.changed == []


# What numpy computes in an order or by functions of its own is not what compiled loops compute.
PLAIN = {
    *("abs", "array", "bool_", "complex128", "diff", "empty", "float64", "full", "int64", "ones"),
    "zeros",
}
SUMS = {"cumsum", "dot", "mean", "prod", "std", "sum", "var"}


@pytest.mark.parametrize("room", ROOMS, ids=lambda room: room.__name__.rpartition(".")[2])
def test_a_kernel_takes_nothing_of_numpy_that_rounds_otherwise(room: Any) -> None:
    if room is compiled:
        return
    found = {
        node.attr
        for node in ast.walk(ast.parse(Path(str(room.__file__)).read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute)
        if node.attr in SUMS or (isinstance(node.value, ast.Name) and node.value.id == "np")
    }
    assert found <= PLAIN


def run(script: str) -> None:
    """Run a script in a process of its own, since numba is loaded once and for all."""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()


def test_a_first_answer_needs_no_numba_and_stays_the_same_with_it() -> None:
    run("""
import sys
import hockeystick as hs
from hockeystick.kernels import compiled, sampled_gaussian, series
plan = hs.DPSGD(examples=60_000, batch_size=256, epochs=60, noise_multiplier=1.1)
first = hs.epsilon(plan, delta=1e-5)
heavy = [name for name in ("numba", "scipy", "mpmath") if name in sys.modules]
assert not heavy, heavy
assert isinstance(series.rough_e2, compiled.Kernel)
compiled.load()
assert type(series.rough_e2).__name__ == type(sampled_gaussian.span).__name__ == "CPUDispatcher"
assert series.mgf_line.__wrapped__.py_func.__name__ == "sum_line"
plan = hs.DPSGD(examples=60_000, batch_size=256, epochs=60, noise_multiplier=1.1)
again = hs.epsilon(plan, delta=1e-5)
assert (again.lower, again.upper) == (first.lower, first.upper)
""")


def test_a_long_loop_and_a_number_out_of_range_are_compiled_where_they_stand() -> None:
    run("""
import math, sys
import numpy as np
from hockeystick.kernels import compiled, series
line = series.mgf_line
loss, log_weight = np.linspace(-1.0, 1.0, 600), np.full(600, -6.4)
args = (loss, log_weight, np.full(600, 1e-16), np.full(600, 1e-16), 2.0, 0.1)
short = line(*args, 40)
assert series.e2(1.0) == math.exp(1.0) - 2.0 and "numba" not in sys.modules
long = line(*args, 60_000)
assert "numba" in sys.modules and series.mgf_line is not line
assert np.array_equal(long[0], series.mgf_line(*args, 60_000)[0])
assert all(np.array_equal(*pair) for pair in zip(short, line(*args, 40), strict=True))
assert compiled.njit(cache=False)(lambda x: x + 1.0)(1.0) == 2.0
assert series.e2(800.0) == math.inf and series.e2(1.0) == math.exp(1.0) - 2.0
""")


def test_where_no_folder_can_be_written_kernels_are_compiled_without_a_cache(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    njit: Any = numba.njit

    def refuse(*given: Any, cache: bool = False, **options: Any) -> Any:
        if cache:
            raise RuntimeError("cannot cache function: no locator available")
        return njit(*given, cache=cache, **options)

    monkeypatch.setattr(numba, "njit", refuse)
    double = compiled.njit_at_once(cache=True)(lambda value: 2.0 * value)
    assert double(1.5) == 3.0


def stop(_signal: int, _frame: FrameType | None) -> None:
    raise TimeoutError


def arrays_of(function: Any) -> int:
    """Return how many arrays a function returns at the top level of a tuple."""
    returned = get_type_hints(function.py_func)["return"]
    parts = get_args(returned) if get_origin(returned) is tuple else ()
    return sum(get_origin(part) is np.ndarray for part in parts)


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="there are no timers here")
def test_what_a_handler_raises_in_compiled_code_is_raised() -> None:
    rng = np.random.default_rng(1)
    loss, weight, error = rng.normal(size=(3, 2000))
    lines = (loss, weight - 10.0, np.abs(error) * 1e-16, np.abs(error) * 1e-16)
    series.mgf_line(*lines, 1.0, 0.1, 16)
    before = signal.signal(signal.SIGALRM, stop)
    try:
        for _ in range(3):
            signal.setitimer(signal.ITIMER_REAL, 0.05)
            with pytest.raises(TimeoutError):
                series.mgf_line(*lines, 1.0, 0.1, 20_000)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


def test_an_error_of_the_system_itself_is_left_alone() -> None:
    def broken() -> None:
        raise SystemError("of its own")

    with pytest.raises(SystemError, match="of its own"):
        interruptible(broken)()


# These are for other compiled functions, to which a Python function would be closed.
FOR_OTHER_KERNELS = {
    "sampled_gaussian": "rough_nodes",
    "series": "log_line logs_at",
    "sampled_gaussian_contour": "quadratures at_orders minorants composed_line",
}


@pytest.mark.parametrize("room", EVERY, ids=lambda room: room.__name__.rpartition(".")[2])
def test_what_returns_several_arrays_is_interruptible(room: Any) -> None:
    values = vars(room).values()
    wrapped = [getattr(value, "__wrapped__", None) for value in values]
    bare = [
        value.py_func.__name__
        for value in values
        if isinstance(value, Dispatcher)
        if value.__module__ == room.__name__ and arrays_of(value) > 1 and value not in wrapped
    ]
    assert bare == FOR_OTHER_KERNELS.get(room.__name__.rpartition(".")[2], "").split()
