"""What pages show of the package itself, filled in when they are read.

A line ``% generated: NAME ARGUMENTS`` in a page is a comment to every other reader of Markdown;
here it is replaced by what the function of that name returns. What leads others to a page, a link
to ``page.md#hockeystick.NAME``, leads here to the entry of that name.
"""

from __future__ import annotations

import ast
import inspect
import json
import re
from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

_LINE = re.compile(r"^% generated: (\S+)(?: (.*))?$", re.MULTILINE)
_FAMILIES: Final = {
    "mechanisms": ("noise", "sampling", "training", "streams", "selection"),
    "parties": ("local", "federated", "decentralised"),
}
_ENTRY: Final = re.compile(r"\[`([^`\]]+)`\]\([^)\s]*\.md#(hockeystick\.[\w.]+)\)")


def setup(app: Any) -> dict[str, bool]:
    """Have pages filled in as they are read."""
    app.connect("source-read", _fill)
    return {"parallel_read_safe": True}


def _fill(app: Any, document: str, source: list[str]) -> None:
    """Replace the lines of one page, and have its links to entries followed."""
    source[0] = _ENTRY.sub(r"{py:obj}`\1 <\2>`", filled(source[0]))


def filled(text: str) -> str:
    """Return a page with all lines replaced."""
    return _LINE.sub(lambda found: _FILLERS[found[1]](*(found[2] or "").split()), text)


def claims() -> str:
    """Return what became of every published claim: all are recomputed, which takes a minute."""
    from tests.claims import check
    from tests.claims.page import markdown_page

    title, *rest = markdown_page(check()).split("\n")
    assert title.startswith("# ")
    return "\n".join(rest)


def matrix() -> str:
    """Return what benchmarks/matrix.py found exact, wide and refused."""
    page = Path(__file__).parents[2] / "benchmarks" / "MATRIX.md"
    return page.read_text(encoding="utf-8").partition("\n\n")[2]


def systems() -> str:
    """Return what the programs in examples/systems came to when they last ran."""
    saved = Path(__file__).parents[2] / "examples" / "systems" / "table.json"
    rows = [
        (
            f"{one['system']}: {one['setting']}",
            *(one[key] for key in ("result", "plain", "cost", "check")),
        )
        for one in json.loads(saved.read_text(encoding="utf-8"))
    ]
    return _table(("system and setting", "result", "without privacy", "cost", "as accounted"), rows)


def accountants() -> str:
    """Return a table of all accountants."""
    from hockeystick.accountants import ACCOUNTANTS

    rows = [
        (f"`{one.name}`", one.kind, one.summary, "yes" if one.has_digits else "-")
        for one in ACCOUNTANTS.values()
    ]
    return _table(("accountant", "kind", "what it is", "`digits=`"), rows)


def conversions() -> str:
    """Return a table of what each notion says in terms of each other one."""
    from hockeystick.conversions import TARGETS

    head = ("from, to", *TARGETS)
    kinds = [(f"**{source}**", *(_said(source, to)[0] for to in TARGETS)) for source in TARGETS]
    pages = [_table(head, kinds), ""]
    for source in TARGETS:
        rows = [(to, *_said(source, to)) for to in TARGETS if to != source]
        pages += [f"### From `{source}`", "", _table(("to", "kind", "by, or why not"), rows), ""]
    return "\n".join(pages)


def members(room: str, *names: str) -> str:
    """Return the descriptions of what a module has, by its docstrings."""
    module = import_module(room)
    described = (_described(f"{room}.{name}", getattr(module, name)) for name in names)
    return "\n".join(("```{eval-rst}", *described, "```"))


def plugs(room: str) -> str:
    """Return the descriptions of what plugs into a library, which may be missing here."""
    spec = find_spec(room)
    assert spec is not None
    assert spec.origin is not None
    tree = ast.parse(Path(spec.origin).read_text(encoding="utf-8"))
    (names,) = (
        ast.literal_eval(one.value)
        for one in tree.body
        if isinstance(one, ast.Assign) and ast.unparse(one.targets[0]) == "__all__"
    )
    kinds = ("class" if name[0].isupper() else "function" for name in names)
    described = (
        f".. auto{kind}:: {room}.{name}\n" + "   :members:\n" * (kind == "class")
        for kind, name in zip(kinds, names, strict=True)
    )
    return "\n".join(("```{eval-rst}", *described, "```"))


def module(room: str) -> str:
    """Return the descriptions of all that a module says it has."""
    return members(room, *import_module(room).__all__)


def family(name: str) -> str:
    """Return the descriptions of what the modules of a family register, mechanisms first."""
    homes = _homes(name)
    shown = {
        home: [one for one in homes if homes[one] == home] for home in sorted({*homes.values()})
    }
    return "\n\n".join(members(home, *names) for home, names in shown.items())


def mechanisms() -> str:
    """Return a table of all mechanisms: the first sentence of each, and its family."""
    from hockeystick.mechanisms import MECHANISMS

    rows = [
        (f"[`{one}`]({page}.md#{home}.{one})", _summary(MECHANISMS[one]), name)
        for page, families in _FAMILIES.items()
        for name in families
        for one, home in _homes(name).items()
        if one in MECHANISMS
    ]
    return _table(("mechanism", "what it is", "family"), rows)


def _summary(thing: object) -> str:
    """Return the first sentence of a docstring as a cell of a table."""
    first, _, _ = (inspect.getdoc(thing) or "").partition("\n\n")
    return first.replace("\n", " ").replace("``", "`").replace("|", "\\|")


def _homes(name: str) -> dict[str, str]:
    """Return the module from which each of what a family registers is shown."""
    import hockeystick as hs

    package = f"hockeystick.mechanisms.{name}"
    room = package if hasattr(import_module(package), "__all__") else "hockeystick.mechanisms"
    return {one: "hockeystick" if one in hs.__all__ else room for one in _names_of(name)}


def _names_of(name: str) -> list[str]:
    """Return the names of what a family registers: the mechanisms, then what they take."""
    from hockeystick.mechanisms import MECHANISMS
    from hockeystick.mechanisms.base import registered_in

    names = registered_in(f"hockeystick.mechanisms.{name}")
    return sorted(names, key=lambda one: one not in MECHANISMS)


def others(room: str) -> str:
    """Return the descriptions of the public names of a room that no page lists by name."""
    import hockeystick as hs

    pages = sorted((Path(__file__).parents[1] / "reference").rglob("*.md"))
    lines = [found for page in pages for found in _LINE.findall(page.read_text(encoding="utf-8"))]
    named = {name for kind, words in lines if kind == "members" for name in words.split()}
    listed = named.union(*(_names_of(words) for kind, words in lines if kind == "family"))
    top = {name: getattr(hs, name) for name in hs.__all__ if name not in listed}
    homes = {name: _home(one) for name, one in top.items() if not inspect.ismodule(one)}
    found = [name for name, home in homes.items() if home.startswith(f"hockeystick.{room}")]
    return members("hockeystick", *found) if found else ""


def _described(path: str, thing: object) -> str:
    """Return the directive that describes a thing."""
    if inspect.ismodule(thing):
        return f".. automodule:: {thing.__name__}\n   :members:\n"
    if inspect.isclass(thing):
        return f".. autoclass:: {path}\n   :members:\n"
    if callable(thing):
        return f".. autofunction:: {path}\n"
    return f".. autodata:: {path}\n   :no-value:\n"


def _home(thing: object) -> str:
    """Return the module that a public thing comes from."""
    own = thing.__name__ if inspect.ismodule(thing) else getattr(thing, "__module__", "")
    return str(own)


def command(*path: str) -> str:
    """Return the help of a command as it prints it."""
    return f"```text\n{_help_of(*path)}\n```"


def commands() -> str:
    """Return a section with the help of every command, and of those below it."""
    from hockeystick.cli.command import hockeystick as group

    context = group.context_class(group)
    sections = []
    for name in group.list_commands(context):
        below = getattr(group.get_command(context, name), "commands", {})
        paths = [(name,), *((name, one) for one in sorted(below))]
        sections += [
            f"{'#' * len(path)}# `hockeystick {' '.join(path)}`\n\n{command(*path)}"
            for path in paths
        ]
    return "\n\n".join(sections)


def _help_of(*path: str) -> str:
    """Return the help of a command in a terminal of 80 columns."""
    import click

    from hockeystick.cli.command import hockeystick as group

    context: Any = click.Context(group, info_name="hockeystick", terminal_width=80)
    found: Any = group
    for name in path:
        found = found.get_command(context, name)
        context = click.Context(found, info_name=name, parent=context, terminal_width=80)
    return str(found.get_help(context))


@cache
def _said(source: str, to: str) -> tuple[str, str]:
    """Return how one notion converts to another: the kind and the theorem, or the reason."""
    import hockeystick as hs

    sources = {
        "PureDP": hs.PureDP(1),
        "ApproxDP": hs.ApproxDP(1, 1e-6),
        "GDP": hs.GDP(1),
        "ZCDP": hs.ZCDP(0.5),
        "TCDP": hs.TCDP(0.5, 8),
        "RenyiDP": hs.RenyiDP({2: 0.5, 8: 1.9}),
        "FDP": hs.FDP(hs.tradeoffs.G(1)),
    }
    given: dict[str, dict[str, Any]] = {
        "ApproxDP": {"delta": 1e-5},
        "TCDP": {"omega": 4},
        "RenyiDP": {"orders": [2, 4]},
    }
    try:
        origin = hs.convert(sources[source], to, **given.get(to, {})).origin
    except hs.errors.IncompatibleError as error:
        return "-", str(error).partition(": ")[2]
    return (origin.kind, origin.theorem) if origin else ("exact", "the guarantee itself")


def _table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    """Return a table in Markdown."""
    lines = [head, tuple("---" for _ in head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


_FILLERS: Final[dict[str, Callable[..., str]]] = {
    one.__name__: one
    for one in (
        accountants,
        claims,
        command,
        commands,
        conversions,
        family,
        matrix,
        mechanisms,
        members,
        module,
        others,
        plugs,
        systems,
    )
}
