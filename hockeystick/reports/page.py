"""The page of a report: one HTML text, written by Jinja2, with curves drawn by Matplotlib."""

from __future__ import annotations

import datetime as dt
import hashlib
import html
import math
import os
import platform
import re
import shlex
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from importlib import import_module, metadata
from pathlib import Path
from typing import Any, Final, final

from hockeystick import _validate
from hockeystick.accountants.auto import ACCOUNTANTS
from hockeystick.accountants.comparison import Truth, quoted
from hockeystick.answers import in_words, protected, registration, sources, steps_rules, titled
from hockeystick.answers.cautions import Caution, reservation, suggested_delta, units_of
from hockeystick.errors import HockeystickError, ParameterError, PlanFileError
from hockeystick.io import PlanFile
from hockeystick.io.plan_file import plan_text
from hockeystick.ledger import Ledger
from hockeystick.mechanisms import Mechanism, assumptions_of
from hockeystick.mechanisms.base import checked
from hockeystick.mechanisms.scope import unit_of
from hockeystick.numerics.numerals import at_least, at_most, formatted, interval, nearest, plain
from hockeystick.reports.audit import Audit
from hockeystick.reports.figures import figures, is_wide
from hockeystick.reports.findings import Findings, Subject, investigate
from hockeystick.reports.ledger import Ledgered, entries_told, ledgered, rooms_of, status_facts
from hockeystick.results import Certified, cells_of
from hockeystick.tradeoffs.attack_words import attack_in_words, is_promise, percent, percent_at_most

_FILE_NAME: Final = "plan.toml"
_FRAME: Final = "width: 100%; height: 40rem; border: 1px solid #8888"
_FILTERS: Final[tuple[Callable[..., Any], ...]] = (
    *(at_least, at_most, interval, nearest, plain, percent, percent_at_most, is_wide),
    *(in_words, titled, protected, steps_rules, unit_of, units_of, assumptions_of, sources),
    *(reservation, attack_in_words, is_promise, cells_of, quoted),
)
_SHOWN_ENTRIES: Final = 200
_SOFTWARE: Final = ("hockeystick", "numpy", "scipy", "mpmath", "numba", "matplotlib")
# What is left as it is, or a number in the text: a digit of it begins no word, and ends none.
_UNBROKEN: Final = re.compile(
    r"<(script|style|title|svg)\b.*?</\1>|<[^>]*>|(?<![\w.,])(\d[\d.,]*(?:e[-+]\d+(?: %)?| %))",
    re.DOTALL,
)


def require_libraries() -> None:
    """Raise where a library for pages is missing, and say how to install it.

    Example:
        >>> from hockeystick.reports import require_libraries
        >>> require_libraries()
    """
    try:
        import_module("matplotlib.figure")
        import_module("jinja2")
    except ImportError:
        message = "reports need Matplotlib and Jinja2: pip install 'hockeystick[report]'"
        raise HockeystickError(message) from None


@final
@dataclass(frozen=True, repr=False)
class Report:
    """What a report says, and its page, which bears a date; a notebook shows the page."""

    findings: Findings
    date: dt.date

    @property
    def answer(self) -> Certified:
        """Epsilon at the delta that was asked at: the headline."""
        return self.findings.answer

    @property
    def cautions(self) -> tuple[Caution, ...]:
        """What whoever decides should know besides."""
        return self.findings.cautions

    @cached_property
    def html(self) -> str:
        """The page: one HTML text that loads nothing else."""
        return page(self.findings, self.date)

    @property
    def registration(self) -> str:
        """An entry for the registry of deployments."""
        told = self.findings.subject
        about = {"title": told.title, "source": told.source, "notes": told.notes}
        return registration(self.answer, told.plan, delta=told.delta, **about)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the page to a file, which is replaced if it exists, and return its path."""
        file = Path(path)
        file.write_text(self.html, encoding="utf-8", newline="\n")
        return file

    def _repr_html_(self) -> str:
        frame = f'sandbox="allow-scripts" style="{_FRAME}"'
        return f'<iframe title="Report" {frame} srcdoc="{html.escape(self.html)}"></iframe>'

    def __repr__(self) -> str:
        return f"<report: {self.answer}>"


def report(
    plan: Mechanism | PlanFile,
    *,
    delta: float | None = None,
    budget_epsilon: float | None = None,
    title: str | None = None,
    source: str | None = None,
    notes: str | None = None,
    date: dt.date | None = None,
    verify: bool = False,
    audit: Audit | None = None,
    ledger: Ledger | None = None,
    head: str | None = None,
) -> Report:
    """Return the page for whoever has to approve a release, as ``hockeystick report`` writes it.

    Guarantees:
        Every number is a proven end, rounded to its safe side, but for the rows that say that they
        are approximations. The page holds the answer for ``hockeystick verify``, and loads nothing.

    Edge cases:
        A plan that no plan file can hold is not on the page as a file, and no command gives the
        page again.

    Args:
        plan: A mechanism or plan; or what ``load_plan`` returned, with its title, delta and so on.
        delta: Where to ask for epsilon, in [0, 1]; by default the plan file's.
        budget_epsilon: Say whether epsilon is at most this.
        title: What to call it; by default as the plan file says, and so for the next two.
        source: Where the plan's numbers come from.
        notes: What a reader should know.
        date: The day that the page bears; by default that of SOURCE_DATE_EPOCH, or today.
        verify: Whether a second program is to verify the headline, which may take its time.
        audit: The scores of an attack on what ran, to be set against the plan.
        ledger: The ledger of the dataset that the plan reads, to be shown.
        head: A head of that ledger that was noted before.

    Raises:
        ParameterError: If a parameter is outside its domain, or no delta is given.
        UnsupportedError: If no accountant has an answer for the plan.
        LedgerError: If the ledger cannot be read.
        HockeystickError: If a library is missing, also python-flint where it is to be verified.

    Example:
        >>> import hockeystick as hs
        >>> made = hs.report(hs.Laplace(2), delta=1e-5, title="A count")
        >>> made
        <report: epsilon = 0.499980 at delta = 1e-05 (proven in [0.499..., 0.499...]; closed-form)>
        >>> "A count" in made.html
        True
    """
    require_libraries()
    file = plan if isinstance(plan, PlanFile) else PlanFile(plan=checked("plan", plan))
    about = {"title": title, "source": source, "notes": notes}
    given: dict[str, Any] = {name: one for name, one in about.items() if one is not None}
    file = replace(file, **given)
    asked, budget = _delta(file, delta), budget_epsilon
    if budget is not None:
        budget = _validate.real("budget_epsilon", budget, _validate.PARAMETERS["epsilon"])
    try:
        content, name = plan_text(file).encode(), _FILE_NAME
        commands = _commands(asked, budget, audit or ledger, verify=verify)
    except PlanFileError:
        content, name, commands = None, None, ()
    subject = Subject(
        plan=file.plan,
        delta=asked,
        title=file.title,
        source=file.source,
        notes=file.notes,
        file_name=name,
        file_content=content,
        commands=commands,
        budget=budget,
        verify=verify,
        audit=audit,
        ledger=None if ledger is None else ledgered(ledger, head=head),
    )
    return Report(investigate(subject), day_of_build() if date is None else date)


def day_of_build() -> dt.date:
    """Return the day that a page bears by default: that of SOURCE_DATE_EPOCH, or today's, UTC.

    Example:
        >>> from hockeystick.reports import day_of_build
        >>> day_of_build().isoformat() >= "1970-01-01"
        True
    """
    build = os.environ.get("SOURCE_DATE_EPOCH", "")
    now = dt.datetime.now(dt.UTC)
    return (dt.datetime.fromtimestamp(int(build), dt.UTC) if build.isdecimal() else now).date()


def page(findings: Findings, date: dt.date) -> str:
    """Return the page of a report, which bears a date, as the text of an HTML file.

    Guarantees:
        Every upper end is rounded up and every lower end down. What a plan file says is escaped.
        Nothing is loaded from anywhere, which the page itself forbids the browser to do. The same
        findings, date and versions give the same text.

    Example:
        >>> import datetime as dt
        >>> import hockeystick as hs
        >>> from hockeystick.reports import Subject, investigate, page
        >>> findings = investigate(Subject(plan=hs.Laplace(2), delta=1e-5))
        >>> "2026-01-31" in page(findings, date=dt.date(2026, 1, 31))
        True
    """
    require_libraries()
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("hockeystick.reports"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {one.__name__: one for one in (*_FILTERS, factor)}
    environment.policies["json.dumps_kwargs"] = {"separators": (",", ":"), "allow_nan": False}
    subject, accountant = findings.subject, ACCOUNTANTS.get(findings.answer.accountant)
    content, at = subject.file_content, subject.delta
    text: str = environment.get_template("report.html").render(
        found=findings,
        subject=subject,
        date=date.isoformat(),
        infinity=math.inf,
        powers=[
            one for one in findings.by_delta if one.at == at or f"{one.at:e}"[:8] == "1.000000"
        ],
        summary="" if accountant is None else accountant.summary,
        truth=Truth.of(findings.rows),
        **({} if subject.ledger is None else _of_ledger(subject.ledger, subject)),
        file_text=None if content is None else content.decode("utf-8-sig", "replace"),
        digest=None if content is None else hashlib.sha256(content).hexdigest(),
        versions=_versions(),
        figures=figures(findings),
    )
    return _unbroken(text)


def _of_ledger(ledger: Ledgered, subject: Subject) -> dict[str, Any]:
    delta, entries = subject.delta, ledger.entries
    facts = status_facts(ledger.status, delta, rooms_of(entries, delta))
    return {
        "facts": [*facts, ("this plan", ledger.cost_of(subject.plan, delta))],
        "entries": entries_told(entries[-_SHOWN_ENTRIES:], ledger.terms, delta),
        "left_out": max(len(entries) - _SHOWN_ENTRIES, 0),
    }


def factor(epsilon: float) -> str:
    """Return e^epsilon, rounded up; nothing where that says nothing."""
    if epsilon > 700.0:
        return ""
    power = math.exp(epsilon) * (1.0 + 2.0**-40) if epsilon else 1.0
    return at_most(power, 4) if power < 1e7 else formatted(power, ".2e")


def _unbroken(page: str) -> str:
    """Return a page whose numbers stay in one line: browsers break "1e-05" and "1 %"."""
    return _UNBROKEN.sub(
        lambda found: found[0] if found[2] is None else f'<span class="unbroken">{found[2]}</span>',
        page,
    )


def _versions() -> list[tuple[str, str]]:
    known = [("Python", platform.python_version())]
    for name in _SOFTWARE:
        with suppress(metadata.PackageNotFoundError):
            known.append((name, metadata.version(name)))
    return known


def _delta(file: PlanFile, given: float | None) -> float:
    value, units = file.delta if given is None else given, units_of(file.plan)
    if value is not None:
        return _validate.real("delta", value)
    sensible = "" if units is None else f"; for {units}, {plain(suggested_delta(units))} or less"
    raise ParameterError("delta", None, _validate.PARAMETERS["delta"].allowed + sensible)


def _commands(
    delta: float, budget: float | None, besides: object, *, verify: bool
) -> tuple[str, ...]:
    asked = [_FILE_NAME, "--delta", repr(float(delta))]
    budgeted = [] if budget is None else ["--at-most", repr(float(budget))]
    lines = [["epsilon", *asked]]
    if besides is None:
        verified = ["--verify"] if verify else []
        lines.append(["report", *asked, *budgeted, *verified, "-o", "report.html"])
    return tuple(shlex.join(["hockeystick", *line]) for line in lines)
