"""Plans written as files."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from fractions import Fraction
from inspect import signature
from typing import Any, Final

from hockeystick.errors import PlanFileError
from hockeystick.io.contents import shown
from hockeystick.io.plan_file import PlanFile
from hockeystick.io.vocabulary import KINDS, RELEASES, STRATEGIES
from hockeystick.mechanisms import DPSGD, Composed, Encoder, Graph, Mechanism, Repeated
from hockeystick.mechanisms.base import checked

_LONG: Final = 1000


def save_plan(plan: Mechanism | PlanFile, path: str | os.PathLike[str]) -> None:
    """Write a plan as a file that ``load_plan`` reads.

    Guarantees:
        ``load_plan(path).plan`` equals the plan.

    Edge cases:
        A file that exists is replaced. What no file can hold is refused: trade-off functions, and
        encoders made from a whole matrix, of which they keep the sensitivity alone.

    Args:
        plan: A mechanism or plan; or a ``hockeystick.io.PlanFile``, which besides has a title,
            notes, and the delta or epsilon at which to ask.
        path: Where to write it. JSON is written and read by ``hockeystick.calibration.describe``
            and ``read_description``, which keep the plan alone.

    Raises:
        ParameterError: If it is no plan.
        PlanFileError: If a file cannot hold it, or cannot be written.

    Example:
        >>> import hockeystick as hs
        >>> from pathlib import Path
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     file = Path(folder) / "plan.toml"
        ...     hs.save_plan(hs.DPSGD(rate=0.01, steps=1000, noise_multiplier=2.0), file)
        ...     print(file.read_text().strip())
        [dpsgd]
        noise_multiplier = 2.0
        rate = 0.01
        steps = 1000

        With a delta, there and back:

        >>> plan = hs.DPSGD(rate=0.01, steps=1000, noise_multiplier=2.0)
        >>> with TemporaryDirectory() as folder:
        ...     file = Path(folder) / "plan.toml"
        ...     hs.save_plan(hs.io.PlanFile(plan=plan, title="Digits", delta=1e-5), file)
        ...     again = hs.load_plan(file)
        >>> again.plan == plan, again.title, again.delta
        (True, 'Digits', 1e-05)
        >>> print(f"{hs.epsilon(again.plan, again.delta):.3f}")
        0.623
    """
    text = plan_text(plan)
    try:
        with open(path, "w", encoding="utf-8") as out:
            out.write(text)
    except (OSError, ValueError) as error:  # ValueError: a name with a null byte
        raise PlanFileError(
            f"{shown(os.fspath(path))}: the file cannot be written: "
            f"{getattr(error, 'strerror', error)}"
        ) from None


def plan_text(plan: Mechanism | PlanFile) -> str:
    """Return what a file holds that describes a plan.

    Args:
        plan: A mechanism or plan, or a ``PlanFile``, which has a title and the like besides.

    Raises:
        ParameterError: If it is no plan.
        PlanFileError: If a file cannot hold it.
    """
    import tomli_w

    file = plan if isinstance(plan, PlanFile) else PlanFile(plan=checked("plan", plan))
    about = {name: getattr(file, name) for name in ("title", "source", "notes", "delta", "epsilon")}
    known = {name: _written(name, value) for name, value in about.items() if value is not None}
    text = tomli_w.dumps({**known, **_tables(file.plan)})
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise PlanFileError(f"no file can hold the text {error.object[error.start]!r}") from None
    return text


def _tables(plan: Mechanism) -> dict[str, Any]:
    """Return the tables of a plan: ``[dpsgd]`` where that comes first, and releases."""
    first, *rest = plan.parts if isinstance(plan, Composed) else (plan,)
    if not isinstance(first, DPSGD):
        return {"release": [_release(part) for part in (first, *rest)]}
    releases = [_release(part) for part in rest]
    return {"dpsgd": _fields(first), **({"release": releases} if rest else {})}


def _release(part: Mechanism) -> dict[str, Any]:
    """Return the table of one release."""
    if isinstance(part, Repeated):
        return {**_mechanism(part.inner), "repeat": part.count}
    return _mechanism(part)


def _mechanism(mechanism: Mechanism) -> dict[str, Any]:
    """Return a table that names its mechanism."""
    name = type(mechanism).__name__
    if name not in RELEASES:
        raise PlanFileError(f"no file can hold a {name}; use Python")
    return {"mechanism": name, **_fields(mechanism)}


def _fields(value: Any) -> dict[str, Any]:
    """Return what a description is made of, leaving out what a file has by default."""
    taken = signature(type(value)).parameters
    names = [one.name for one in fields(value) if one.name in taken and one.name != "origin"]
    found = {name: getattr(value, name) for name in names}
    return {
        name: _written(name, part)
        for name, part in found.items()
        if part is not None and part != taken[name].default
    }


def _written(name: str, value: Any) -> Any:
    """Return a value as TOML has it."""
    if isinstance(value, Mechanism):
        return _mechanism(value)
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Fraction):
        # Of decimals, Python reads a few thousand digits.
        form = "#x" if len(f"{value.numerator * value.denominator:x}") > _LONG else "d"
        return f"Fraction({value.numerator:{form}}, {value.denominator:{form}})"
    if isinstance(value, tuple | list):
        return [_written(name, one) for one in value]
    if isinstance(value, frozenset):
        return sorted(value)
    if isinstance(value, Graph):
        return _graph(value)
    if isinstance(value, Encoder):
        return _encoder(value)
    if is_dataclass(value):
        return _of_a_kind(name, value)
    return value


def _graph(graph: Graph) -> dict[str, Any]:
    """Return the table of a graph."""
    if graph.whole:
        return {"kind": "complete", "parties": graph.parties}
    return {"kind": "edges", "parties": graph.parties, "edges": graph.pairs.tolist()}


def _encoder(encoder: Encoder) -> dict[str, Any]:
    """Return the table of an encoder, made of its strategy and its pattern of participation."""
    kind, own = _strategy(encoder)
    pattern = {"participations": encoder.participations, "separation": encoder.separation}
    return {
        "kind": kind,
        **{name: _written(name, value) for name, value in own.items() if value is not None},
        "rounds": encoder.rounds,
        **{name: value for name, value in pattern.items() if value != 1},
    }


def _strategy(encoder: Encoder) -> tuple[str, dict[str, Any]]:
    """Return the kind of an encoder, and the numbers that are its own."""
    strategy = encoder.strategy
    if encoder.words == "tree":
        return "tree", {}
    if strategy is None:
        raise PlanFileError("encoder: no file can hold one made from a matrix; use Python")
    kind = next(kind for kind, made in STRATEGIES.items() if made is type(strategy))
    return kind, {name: getattr(strategy, name) for name in signature(type(strategy)).parameters}


def _of_a_kind(name: str, value: Any) -> dict[str, Any]:
    """Return a table that names its kind: a schedule, or a distribution of runs."""
    kinds: Mapping[str, Any] = KINDS.get(name, {})
    kind = next((kind for kind, make in kinds.items() if make is type(value)), None)
    if kind is None:
        raise PlanFileError(f"{name}: no file can hold a {type(value).__name__}; use Python")
    return {"kind": kind, **_fields(value)}
