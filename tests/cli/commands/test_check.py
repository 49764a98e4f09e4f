import json
import math
import re
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hockeystick.io.schema import plan_schema
from hockeystick.io.templates import template_of
from hockeystick.io.vocabulary import RELEASES

Run = Callable[..., Any]
Write = Callable[[str | bytes], str]

ROOT = Path(__file__).parents[3]
EXAMPLES = sorted((ROOT / "examples").glob("*.toml"))
TYPES: Mapping[str, Any] = {
    "object": dict,
    "array": list,
    "string": str,
    "boolean": bool,
    "number": (int, float),
    "integer": int,
}
BROKEN = """dleta = 1e-5
epsilon = -2
zebra = 1
[dpsgd]
rate = 2
steps = 1
noise_multiplier = 1
[[release]]
mechanism = "Gauss"
[[release]]
mechanism = "Laplace"
scale = -1
"""


def is_between(value: Any, schema: Mapping[str, Any]) -> bool:
    """Judge by the ends of numbers."""
    if isinstance(value, str):
        return re.search(schema.get("pattern", ""), value) is not None
    return isinstance(value, bool | dict | list) or (
        schema.get("minimum", value) <= value <= schema.get("maximum", value)
        and schema.get("exclusiveMinimum", -math.inf) < value
        and (value < schema["exclusiveMaximum"] if "exclusiveMaximum" in schema else True)
    )


def fits(value: Any, schema: Mapping[str, Any], root: Mapping[str, Any]) -> bool:
    """Judge by what of JSON schema the plan files' one is made of."""
    if "$ref" in schema:
        return fits(value, root["definitions"][schema["$ref"].rpartition("/")[2]], root)
    held = value if isinstance(value, dict) else {}
    properties, kinds = schema.get("properties", {}), schema.get("type", "")
    return (
        any(isinstance(value, TYPES.get(one, object)) for one in np.atleast_1d(kinds))
        and value == schema.get("const", value)
        and is_between(value, schema)
        and ("not" not in schema or not fits(value, schema["not"], root))
        and value in schema.get("enum", [value])
        and all(name in held for name in schema.get("required", []))
        and (schema.get("additionalProperties", True) or held.keys() <= properties.keys())
        and all(fits(held[name], one, root) for name, one in properties.items() if name in held)
        and all(fits(value, one, root) for one in schema.get("allOf", []))
        and ("anyOf" not in schema or any(fits(value, one, root) for one in schema["anyOf"]))
        and ("oneOf" not in schema or sum(fits(value, one, root) for one in schema["oneOf"]) == 1)
        and (not isinstance(value, list) or len(value) >= schema.get("minItems", 0))
        and all(
            fits(one, schema["items"], root)
            for one in (value if isinstance(value, list) and "items" in schema else [])
        )
    )


def test_the_schema_is_printed_and_knows_every_plan_and_no_misspelt_key(run: Run) -> None:
    schema = json.loads(run("check", "--schema").out)
    assert schema == plan_schema()
    texts = [path.read_text(encoding="utf-8") for path in EXAMPLES]
    texts += [template_of(name) for name in RELEASES]
    for text in texts:
        assert fits(tomllib.loads(text), schema, schema), text
    for right, wrong in (
        ("noise_multiplier = 1.1 ", "noise_multiplyer = 1.1 "),
        ("delta =", "dleta ="),
        ('"poisson"', '"poison"'),
        ("epochs = 60", "epochs = '60'"),
        ("epochs = 60", "epochs = 60\nsteps = 9"),
        ("batch_size = 256", "batch_size = 256\nrate = 0.1"),
        ("noise_multiplier = 1.1 ", "noise_multiplier = -1.1 "),
        ("batch_size = 256", "batch_size = 0"),
        ("delta = 1e-5 ", "delta = 1.5 "),
    ):
        text = template_of("DPSGD")
        assert right in text
        assert not fits(tomllib.loads(text.replace(right, wrong)), schema, schema), wrong
    nested = "[[release]]\nmechanism='PoissonSubsampled'\nrate=1\ninner={mechanism='Gaussian',s=1}"
    assert not fits(tomllib.loads(nested), schema, schema)


@pytest.mark.parametrize(
    ("text", "is_fine"),
    [
        ('[dpsgd]\nrate = "1/98"\nsteps = 9\nnoise_multiplier = "2*sqrt(3)"\n', True),
        ('[dpsgd]\nrate = "a/b"\nsteps = 9\nnoise_multiplier = 1\n', False),
        ('[dpsgd]\nrate = "0.01"\nsteps = 9\nnoise_multiplier = 1\n', False),
        ("release = []\n[dpsgd]\nrate = 0.1\nsteps = 9\nnoise_multiplier = 1\n", True),
        ("release = []\n", False),
        ("[[release]]\nmechanism = 'TreeAggregation'\nnoise_multiplier = 9\nleaves = 10\n", True),
        ("[[release]]\nmechanism = 'TreeAggregation'\nnoise_multiplier = 9\nleaves = 9.5\n", False),
        ("[[release]]\nmechanism = 'TreeAggregation'\nnoise_multiplier = 9\nleaves = -1\n", False),
    ],
)
def test_the_schema_and_check_agree(run: Run, write: Write, text: str, *, is_fine: bool) -> None:
    schema = plan_schema()
    assert fits(tomllib.loads(text), schema, schema) == is_fine
    assert (run("check", write(text)).status == 0) == is_fine


def test_all_tables_of_a_broken_file_say_what_is_wrong(run: Run, write: Write) -> None:
    path = write(BROKEN)
    told = run("check", path, "Laplace(2)", "nowhere.toml", "--json")
    broken, fine, missing = json.loads(told.out)["files"]
    assert (told.status, told.err, broken["well_formed"], fine["well_formed"]) == (
        1,
        "",
        False,
        True,
    )
    beginnings = [text[:34] for text in broken["problems"]]
    assert beginnings == [
        "unknown key dleta (did you mean 'd",
        "epsilon must be a number >= 0 or i",
        "dpsgd.rate must be a number from 0",
        "unknown release[0].mechanism 'Gaus",
        "release[1].scale must be a number ",
    ]
    assert missing["problems"] == ["no such file"]
    status, out, err = run("check", path)
    assert (status, err) == (1, "")
    assert f"{path}: 5 problems\n" in out


def test_nothing_to_check_is_wrong_input(run: Run) -> None:
    assert run("check").status == 2
    assert run("check", "a.toml", "--schema").status == 2


TRAINING = "examples = 600\nbatch_size = 10\nepochs = 1\nnoise_multiplier = -1\n"
