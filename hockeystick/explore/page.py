"""The page and its server: Bokeh keeps what is shown, and another process proves it.

Each move of a slider makes a new plan. One question is under way at a time, and the plan that is
wanted last is asked next, so that nothing piles up; a question that takes long is stopped once its
plan has moved on.
"""

from __future__ import annotations

import html
import math
import signal
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from importlib import resources
from time import monotonic
from typing import Any, Final, TypeAlias

from bokeh.document import Document
from bokeh.layouts import column, row
from bokeh.models import Button, ColumnDataSource, Div, Select, Slider, TextInput
from bokeh.plotting import figure
from bokeh.server.server import BaseServer
from bokeh.server.tornado import BokehTornado
from bokeh.server.util import bind_sockets
from bokeh.util.token import generate_secret_key, generate_session_id
from jinja2 import Environment
from tornado.httpserver import HTTPServer
from tornado.ioloop import IOLoop

from hockeystick._spawning import Spawning
from hockeystick._validate import PARAMETERS, real
from hockeystick.accountants.ask import epsilon
from hockeystick.accountants.tradeoff import tradeoff
from hockeystick.answers import cautions, in_words, titled
from hockeystick.calibration import calibrate
from hockeystick.calibration.solve import fields
from hockeystick.errors import HockeystickError, PlanFileError
from hockeystick.io import PlanFile
from hockeystick.io.call_text import parse
from hockeystick.io.plan_file import plan_text
from hockeystick.mechanisms import DPSGD, Mechanism
from hockeystick.notions import ApproxDP
from hockeystick.numerics.numerals import at_most, interval, plain
from hockeystick.reports import course_of
from hockeystick.results import Certified
from hockeystick.tradeoffs.attack_words import percent_at_most

HOST: Final = "127.0.0.1"
USUAL: Final = PlanFile(
    plan=DPSGD(examples=60_000, batch_size=256, epochs=60, noise_multiplier=1.1), delta=1e-5
)
_MOST_SLIDERS: Final = 8
_WIDE: Final = 2000.0
_READ_AT: Final = (0.1, 0.01, 0.001)
_RATES: Final = (0.001, 0.01, 0.03, 0.06, *(k / 10 for k in range(1, 10)))
_NOISES: Final = tuple(float(f"{0.4 * 75 ** (k / 15):.3g}") for k in range(16))
_STAGES: Final = 12
_WATCH_MS: Final = 200
_REST_SECONDS: Final = 0.3
_PATIENCE_SECONDS: Final = 1.5
_WIDTH: Final = "stretch_width"
_COMPUTING: Final = "<p>Computing: some plans take minutes, as does a first answer ever.</p>"
_STYLE: Final = """
p { margin: 0 0 0.4rem; } pre { white-space: pre-wrap; background: #eef2f6; padding: 0.6rem; }
.number { font-size: 1.8rem; font-weight: 700; } .bad { color: #a81c1c; font-weight: 600; }
.number span, .small { font-size: 0.9rem; font-weight: 400; color: #4c5a6a; }
td { padding: 0 1.2rem 0 0; } b, .number { font-variant-numeric: tabular-nums; }
"""
Columns: TypeAlias = dict[str, list[float]]
Proven: TypeAlias = tuple[Certified, dict[str, float], Columns]


def proven(plan: Mechanism, delta: float) -> Proven:
    """Return epsilon, the most that attackers find, and lower ends of the trade-off curve."""
    f = tradeoff(plan)
    powers = zip(_READ_AT, f.power(_READ_AT).tolist(), strict=True)
    finds = {f"TPR at FPR {100 * rate:g} %": power for rate, power in powers}
    missed = (float(one) for one in f.bounds(_RATES)[0])
    curve = {"x": [*_RATES, 1.0], "y": [*missed, 0.0]}
    return epsilon(plan, delta), finds | {"advantage": float(f.advantage)}, curve


def curves(plan: Mechanism, delta: float) -> dict[str, Columns]:
    """Return upper ends of epsilon over the stages of a plan, and over its noise."""
    course = course_of(plan, _STAGES)
    noise = [path for path in fields.numeric_paths(plan) if path[-1] == "noise_multiplier"]
    noises = [(z, fields.rebuilt(plan, noise[0], z)) for z in _NOISES] if len(noise) == 1 else []
    stages = _epsilons(() if course is None else course.stages, delta)
    return {"course": stages, "noise": _epsilons(noises, delta)}


def solved(plan: Mechanism, delta: float, path: fields.Path, target: float) -> float:
    """Return the number with which a plan just meets an epsilon, on the safe side."""
    return calibrate(plan, fields.spelled(path), ApproxDP(target, delta), tolerance=1e-4).value


def _epsilons(plans: Iterable[tuple[float, Mechanism]], delta: float) -> Columns:
    """Return the finite upper ends of epsilon; a plan without an answer has no point."""
    found: list[tuple[float, float]] = []
    for place, plan in plans:
        with suppress(HockeystickError):
            found.append((place, epsilon(plan, delta).upper))
    known = [one for one in found if one[1] < math.inf]
    return {"x": [place for place, _ in known], "y": [upper for _, upper in known]}


def _begin() -> None:
    """Load the compiled arithmetic; an interrupt is for the process that asks."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    from hockeystick.kernels import compiled

    compiled.load()


def stops_of(name: str, value: float) -> list[float]:
    """Return the round numbers around the usual ones of a name, and the value itself."""
    usual = PARAMETERS.get(name)
    near = value if 0 < value < math.inf else 1.0
    low, high = (near / 100, near * 100) if usual is None else usual.typical
    digits = 2 if high < _WIDE * low else 1
    decades = range(math.floor(math.log10(low)) - digits, math.ceil(math.log10(high)) + 1)
    grid = {float(f"{m}e{k}") for k in decades for m in range(10 ** (digits - 1), 10**digits)}
    whole = isinstance(value, int) or (usual is not None and usual.whole)
    kept = {one for one in grid if low <= one <= high and (not whole or one.is_integer())}
    return sorted(kept | ({float(value)} if value < math.inf else set()))


def _div(name: str) -> Any:
    return Div(sizing_mode=_WIDTH, stylesheets=[_STYLE], name=name)


class Page:
    """What a browser sees: the plan that is wanted, the question under way, and what is shown."""

    def __init__(self, file: PlanFile, document: Document) -> None:
        self.file: PlanFile = file
        self.document: Document = document
        self.plan: Mechanism = file.plan
        self.delta: float = 1e-5 if file.delta is None else file.delta
        self.asked: tuple[Any, ...] = ()
        self.shown: dict[Any, Any] = {}
        self.since: float = monotonic()
        self.moved: float = self.since
        self.pool: Any = Spawning().Pool(1, initializer=_begin)
        document.on_session_destroyed(lambda _: self.pool.terminate())
        self.answer: Any = _div("answer")
        self.notice: Any = _div("notice")
        self.told: Any = _div("told")
        paths = fields.numeric_paths(self.plan)[:_MOST_SLIDERS]
        self.controls: dict[fields.Path, Any] = {}
        self.drawn: dict[str, tuple[Any, Any, Any]] = {
            "misses": _picture("false positive rate", "least false negative rate"),
            "course": _picture("stages of the run", "epsilon (nats)"),
            "noise": _picture("noise multiplier", "epsilon (nats)", "log"),
        }
        keep = Button(label="Keep these curves", name="keep")
        keep.on_click(self._keep)
        choices = ("sampling", "adjacency") if isinstance(self.plan, DPSGD) else ()
        sliders = [self._slider(path) for path in ((), *paths)]
        controls = [*sliders, *map(self._choice, choices), *self._solving(paths), keep]
        pictures = row([one for one, *_ in self.drawn.values()], sizing_mode=_WIDTH)
        results = [self.answer, self.notice, pictures, self.told]
        self.begun: dict[fields.Path, Any] = {
            path: one.value for path, one in self.controls.items()
        }
        document.add_root(column(controls, name="controls", sizing_mode=_WIDTH))
        document.add_root(column(results, name="results", sizing_mode=_WIDTH))
        document.title = f"{file.title or titled(file.plan)}: explore"
        template = resources.files("hockeystick.explore") / "templates" / "explore.html"
        document.template = Environment().from_string(template.read_text("utf-8"))
        document.add_periodic_callback(self._watch, _WATCH_MS)
        self._ask(proven)

    def _slider(self, path: fields.Path) -> Any:
        """Return a slider over round numbers, and beside it the number itself, to be typed."""
        value = fields.value_at(self.plan, path) if path else self.delta
        stops = stops_of(fields.name_of(path) if path else "delta", value)
        name = fields.spelled(path).replace("_", " ") if path else "delta"
        field = self.controls[path] = TextInput(value=plain(value), title="as a number", width=110)
        at = min(range(len(stops)), key=lambda one: abs(stops[one] - value))
        slider = Slider(start=0, end=len(stops) - 1, value=at, title=name, name=name)
        slider.update(show_value=False, tooltips=False, sizing_mode=_WIDTH)

        slider.on_change("value", lambda _attr, _old, new: field.update(value=plain(stops[new])))
        field.on_change("value", self._move)
        return row(slider, field, sizing_mode=_WIDTH)

    def _choice(self, name: str) -> Select:
        """Return a choice of how batches are drawn, or of the neighbours."""
        value = getattr(self.plan, name)
        options = [str(one) for one in type(value)]
        choice = self.controls[name,] = Select(
            title=name, value=str(value), options=options, name=name
        )
        choice.on_change("value", self._move)
        return choice

    def _solving(self, paths: Iterable[fields.Path]) -> Iterator[Any]:
        """Yield a target epsilon, the number of the plan to solve for, and what does it."""
        named = {fields.spelled(path): path for path in paths}
        if named:
            target = TextInput(value=plain(self.file.epsilon or 2.0), title="epsilon at most")
            which = Select(title="by another", options=list(named), value=next(iter(named)))
            find = Button(label="Solve", name="solve")
            find.on_click(lambda: self._ask(solved, named[which.value], parse(target.value)))
            yield from (target, which, find)

    def _move(self, _attribute: str, _old: str, _new: str) -> None:
        """Want the plan that all controls say together, or tell why the library refuses it."""
        values = {path: one.value for path, one in self.controls.items()}
        moved = [path for path, value in values.items() if value != self.begun[path]]
        at_once: Any = {path[0]: parse(values[path]) for path in moved if len(path) == 1}
        plan: Any = self.file.plan
        try:
            plan = replace(plan, **at_once)
            for path in (one for one in moved if len(one) > 1):
                plan = fields.rebuilt(plan, path, parse(values[path]))
            self.delta = real("delta", parse(values[()]))
        except HockeystickError as error:
            self._refuse(error)
            return
        self.plan, self.notice.text, self.moved = plan, "", monotonic()
        if not self.asked:
            self._ask(proven)

    def _ask(self, question: Callable[..., Any], *besides: Any) -> None:
        """Ask one question about the plan that is wanted."""
        asked = self.asked = (question, self.plan, self.delta, *besides)
        self.since = monotonic()

        def then(found: Any) -> None:
            self.document.add_next_tick_callback(partial(self._take, asked, found))

        self.pool.apply_async(question, asked[1:], callback=then, error_callback=then)

    def _take(self, asked: tuple[Any, ...], found: Any) -> None:
        """Show an answer, unless it was dropped, and ask what is wanted by now."""
        if asked is not self.asked:
            return
        question, plan, delta, *besides = asked
        self.asked, self.notice.text = (), ""
        self.shown[question] = (plan, delta)
        if isinstance(found, Exception):
            self._refuse(found)
        elif question is solved:
            self.controls[besides[0]].value = plain(found)
        elif question is curves:
            for name, columns in found.items():
                self._draw(name, columns)
        else:
            self._tell(plan, delta, found)
        if self.shown.get(proven) != (self.plan, self.delta) and not self.asked:
            self._ask(proven)

    def _watch(self) -> None:
        """Ask for the other curves once the plan rests, and drop what nobody waits for."""
        wanted, now = (self.plan, self.delta), monotonic()
        if not self.asked:
            if self.shown.get(curves) != wanted and now - self.moved > _REST_SECONDS:
                self._ask(curves)
        elif now - self.since > _PATIENCE_SECONDS:
            self.notice.text = _COMPUTING
            if self.asked[1:3] != wanted:
                self.pool.terminate()
                self.pool = Spawning().Pool(1, initializer=_begin)
                self._ask(proven)

    def _refuse(self, error: Exception) -> None:
        self.notice.text = f'<p class="bad">{html.escape(str(error))}</p>'

    def _tell(self, plan: Mechanism, delta: float, found: Proven) -> None:
        """Show the numbers of a plan, its curve, and the plan in words and as a file."""
        answer, finds, curve = found
        lower, upper = interval(answer.lower, answer.upper)
        warnings = "".join(
            f'<p class="{"small" if one.is_mild else "bad"}">Caution: {html.escape(one.text)}</p>'
            for one in cautions(answer, plan, delta=delta)
        )
        cells = "".join(
            f"<td>{label}<br><b>≤ {percent_at_most(most)}</b></td>" for label, most in finds.items()
        )
        self.answer.text = (
            f'<p class="number">epsilon ≤ {at_most(answer.upper)} <span>at delta = {plain(delta)}'
            f"</span></p><p>proven: from {lower} to {upper} ({answer.accountant})</p>{warnings}"
            f"<table><tr>{cells}</tr></table>"
        )
        self._draw("misses", curve)
        try:
            text = plan_text(replace(self.file, plan=plan, delta=delta))
        except PlanFileError as error:
            text = str(error)
        self.told.text = (
            f"<p>{html.escape('; '.join(in_words(plan)))}</p><p>As a file, for <code>hockeystick "
            f"epsilon</code> and <code>hockeystick report</code>:</p><pre>{html.escape(text)}</pre>"
        )

    def _draw(self, name: str, columns: Columns) -> None:
        picture, line, _ = self.drawn[name]
        line.data, picture.visible = columns, len(columns["x"]) > 1

    def _keep(self) -> None:
        for _, line, kept in self.drawn.values():
            kept.data = dict(line.data)


def _picture(across: str, up: str, scale: str = "linear") -> tuple[Any, Any, Any]:
    """Return a picture with the columns of its line and of the one that is kept."""
    types = {"x_axis_type": scale, "y_axis_type": scale}
    picture = figure(x_axis_label=across, y_axis_label=up, height=260, tools="", **types)
    picture.update(toolbar_location=None, sizing_mode=_WIDTH)
    line = ColumnDataSource({"x": [1.0], "y": [1.0]}, name=f"{across} line")
    kept = ColumnDataSource({"x": [], "y": []})
    picture.line("x", "y", source=kept, line_width=2, line_dash="dashed", line_color="#b3470b")
    picture.line("x", "y", source=line, line_width=2, line_color="#005a9c")
    picture.scatter("x", "y", source=line, size=5, color="#005a9c")
    return picture, line, kept


def serve(file: PlanFile, port: int, opened: Callable[[str], None]) -> None:
    """Serve the page to this machine, and to whoever has the link, until the process is ended."""
    key = generate_secret_key().encode()
    sockets, bound = bind_sockets(HOST, port)
    application = BokehTornado(
        partial(Page, file),
        extra_websocket_origins=[f"{HOST}:{bound}"],
        secret_key=key,
        sign_sessions=True,
        generate_session_ids=False,
    )
    http = HTTPServer(application)
    http.add_sockets(sockets)
    session = generate_session_id(secret_key=key, signed=True)
    opened(f"http://{HOST}:{bound}/?bokeh-session-id={session}")
    BaseServer(IOLoop.current(), application, http).run_until_shutdown()
