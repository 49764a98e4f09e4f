"""Plans in JSON: what ``--json`` printed, a description, or the tables of a plan file."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import starmap
from typing import Any, Final

from hockeystick.calibration import read_description
from hockeystick.cli.of_group import OfGroup
from hockeystick.errors import HockeystickError, PlanFileError
from hockeystick.io.call_text import computed_in, parse_real
from hockeystick.io.plan_file import TABLES, PlanFile, plan_file_of, plan_text
from hockeystick.io.vocabulary import TOP_KEYS

_TEXTS: Final = TOP_KEYS[:3]
_QUESTIONS: Final = TOP_KEYS[3:]


def toml_of(content: bytes, name: str) -> bytes | None:
    """Return the plan file that JSON stands for; None where it stands for none.

    An answer stands for the plan that it is of, asked where it was; a solution for the plan with
    the value that was found.

    Args:
        content: What a file holds.
        name: What to call it.

    Raises:
        PlanFileError: If it stands for a plan, and for none that is right or that a file can hold.
    """
    try:
        told = json.loads(content, parse_float=parse_real, object_pairs_hook=_once)
        file = _plan_file(told)
        return None if file is None else plan_text(file).encode()
    except json.JSONDecodeError as error:
        raise PlanFileError(f"{name}:{error.lineno}: no valid JSON: {error.msg}") from None
    except HockeystickError as error:
        raise PlanFileError(f"{name}: {error}") from None
    except (ValueError, RecursionError):
        return None


def _once(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object whose keys are there once, or raise."""
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise PlanFileError(f"{key!r} is there twice")
        found[key] = value
    return found


def _plan_file(told: Mapping[str, Any]) -> PlanFile | None:
    """Return the plan of an object; None where it has none."""
    if "description" in told:
        _refuse_group(told.get("plan"))
        at = _asked(told)
        said: dict[str, Any] = {key: told[key] for key in _TEXTS if isinstance(told.get(key), str)}
        said |= {key: float(at[key]) for key in _QUESTIONS if key in at}
        return PlanFile(plan=read_description(told["description"]), **said)
    if "type" in told:
        return PlanFile(plan=read_description(told))
    if any(name in told for name in TABLES):
        return plan_file_of(computed_in(_given(told)), {})
    _refuse_rows(told.get("rows"))
    return None


def _refuse_rows(rows: object) -> None:
    """Raise for answers at several values, which are of as many plans."""
    if not isinstance(rows, list):
        return
    of_each = [one["parameters"] for one in rows if isinstance(one, dict) and "parameters" in one]
    if of_each and all(isinstance(one, dict) and one for one in of_each):
        flags = " ".join(starmap(_flag, of_each[0].items()))
        raise PlanFileError(
            f"this holds several plans, in {len(rows)} rows, and one is wanted: ask for one value "
            f"of each flag, such as {flags}, and give that answer"
        )


def _flag(name: str, value: object) -> str:
    """Return how one value of a parameter is asked for."""
    is_path = not name.isidentifier()
    return f"--set '{name}={value}'" if is_path else f"--{name.replace('_', '-')} {value}"


def _refuse_group(plan: object) -> None:
    """Raise for an answer that is about several records: its description is of one who costs so."""
    if isinstance(plan, dict) and plan.get("mechanism") == OfGroup.__name__:
        flag = f"--group {plan.get('size')}"
        raise PlanFileError(f"this answer is for a group: give the plan that it is of, and {flag}")


def _given(node: Any) -> Any:
    """Return what has a value: JSON says null where a plan file has no line."""
    if isinstance(node, dict):
        return {key: _given(one) for key, one in node.items() if one is not None}
    return [_given(one) for one in node] if isinstance(node, list) else node


def _asked(told: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return where an answer was asked; of a solution, the delta of its target."""
    budget = told.get("budget", {})
    return told.get("at") or {key: budget[key] for key in ("delta",) if key in budget}
