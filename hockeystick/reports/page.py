"""The page of a report: what was found, in words, tables and curves, as one HTML text."""

from __future__ import annotations

import datetime as dt
import hashlib
import json
import re
from collections.abc import Callable
from importlib import resources
from typing import TYPE_CHECKING, Any, Final

from hockeystick.answers.page_text import sealed
from hockeystick.reports import words
from hockeystick.reports.figures import figures, is_wide
from hockeystick.reports.findings import Findings
from hockeystick.reports.libraries import require_libraries, versions

if TYPE_CHECKING:
    from jinja2 import Environment

_TEMPLATES: Final = "templates"
# What people fill in, on the screen or on paper.
_BLANKS: Final = ("Checked by", "Approved by", "Decision", "Date", "Comment")

# What is left as it is, or a number in the text: a digit of it begins no word, and ends none.
_UNBROKEN: Final = re.compile(
    r"<(script|style|title|option)\b.*?</\1>|<[^>]*>|(?<![\w.,])(\d[\d.,]*(?:e[-+]\d+(?: %)?| %))",
    re.DOTALL,
)


def page(findings: Findings, date: dt.date) -> str:
    """Return the page of a report: one HTML text that loads nothing else.

    Guarantees:
        Every upper end is rounded up and every lower end down, in texts, tables and under the
        pointer. What a plan file says is escaped. Nothing is loaded from anywhere, which the page
        itself forbids the browser to do. The same findings, date and versions give the same text.

    Args:
        findings: What the report says.
        date: The day that it bears.

    Returns:
        The text of an HTML file, in UTF-8.

    Raises:
        HockeystickError: If Bokeh or Jinja2 is missing.

    Example:
        >>> import datetime
        >>> import hockeystick as hs
        >>> from hockeystick.reports import Subject, investigate, page
        >>> subject = Subject(plan=hs.Gaussian(4), delta=1e-5)
        >>> text = page(investigate(subject), datetime.date(2026, 1, 31))
        >>> "epsilon is at most 0.926342" in text
        True
    """
    require_libraries()
    template = environment(template_text).get_template("report.html")
    drawn = figures(findings)
    text: str = template.render(
        told=words.told(findings),
        date=date.isoformat(),
        versions=versions(),
        digest=_digest(findings.subject.file_content),
        figures=embeddable(list(drawn.values())),
        document=None if findings.document is None else embeddable(findings.document),
        drawn=frozenset(drawn),
        wide=_wide(findings),
        blanks=_BLANKS,
        has_found=findings.audited is not None and bool(findings.audited.points),
        style=template_text("report.css"),
        script=template_text("paint.js") + template_text("report.js"),
        bokeh=bokeh_script(),
    )
    return sealed(unbroken(text))


def unbroken(page: str) -> str:
    """Return a page whose numbers with an exponent, or per cent, each stay in one line.

    Browsers break "1e-05" behind its hyphen, and "1 %" at its blank. The text stays what it is, so
    that it is copied as it was.

    Example:
        >>> from hockeystick.reports.page import unbroken
        >>> unbroken('<p title="1e-05">1e-05</p>')
        '<p title="1e-05"><span class="unbroken">1e-05</span></p>'
    """
    return _UNBROKEN.sub(
        lambda found: found[0] if found[2] is None else f'<span class="unbroken">{found[2]}</span>',
        page,
    )


def environment(read: Callable[[str], str]) -> Environment:
    """Return templates, read by name, which escape what they are given, and refuse all else."""
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    return Environment(
        loader=FunctionLoader(read),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def template_text(name: str) -> str:
    """Return a file of the templates."""
    return resources.files("hockeystick.reports").joinpath(_TEMPLATES, name).read_text("utf-8")


def bokeh_script() -> str:
    """Return BokehJS, as it may stand in a script of a page."""
    from bokeh.resources import INLINE

    script: str = INLINE.clone(components=["bokeh"]).js_raw[0]
    return script.replace("</script", "<\\/script").replace("<!--", "<\\!--")


def embeddable(told: Any) -> str:
    """Return JSON that may stand in a script of a page."""
    text = json.dumps(told, separators=(",", ":"), allow_nan=False)
    for letter in "<>&":
        text = text.replace(letter, f"\\u{ord(letter):04x}")
    return text


def _wide(findings: Findings) -> dict[str, bool]:
    """Return, for each of the curves, whether it has a band."""
    attack = findings.attack
    return {
        "by_delta": is_wide(findings.by_delta),
        "by_epsilon": is_wide(findings.by_epsilon),
        "spent": is_wide(findings.spent),
        "attack": attack is not None and is_wide(attack.misses),
    }


def _digest(content: bytes | None) -> str | None:
    """Return the SHA-256 of a plan file."""
    return None if content is None else hashlib.sha256(content).hexdigest()
