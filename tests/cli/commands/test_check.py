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


def test_the_schema_describes_keys_in_the_words_of_toml() -> None:
    told = json.dumps(plan_schema())
    assert not re.search(r"\bNone for\b|\btuples?\b|Fraction(?!\))|\bFalse\b", told)
    assert "an integer >= 1; left out: all." in told
    assert "a mechanism, or several in an array; left out: nothing." in told


def test_a_well_formed_file_says_what_it_means(run: Run) -> None:
    status, out, err = run("check", str(ROOT / "examples" / "mnist-tutorial.toml"))
    assert (status, err) == (0, "")
    assert "mnist-tutorial.toml: well-formed\n  DP-SGD on 60,000 examples: Poisson" in out
    assert "asks for epsilon at delta = 1e-05" in out
    grid = run("check", str(ROOT / "examples" / "grids" / "mnist-noise-and-epochs.toml"))
    assert "10 of noise_multiplier, 6 of epochs, 2 of delta\n  finds epsilon\n" in grid.out


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
    beginnings = [" ".join(text.split()[:6]) for text in broken["problems"]]
    assert beginnings == [
        "line 1: unknown key 'dleta' in",
        "line 2: epsilon must be a",
        "line 3: unknown key 'zebra' in",
        "line 5: [dpsgd]: rate must be",
        "line 9: [[release]] number 1: unknown",
        "line 12: [[release]] number 2 (Laplace):",
    ]
    assert missing["problems"] == ["no such file; give the path of a plan file"]
    status, out, err = run("check", path)
    assert (status, err) == (1, "")
    assert f"{path}: 6 problems (more may show once mended)\n" in out


def test_a_program_is_told_the_line_of_each_problem(run: Run, write: Write) -> None:
    text = "delta = 2\n[dpsgd]\nrate = 0.1\nsteps = 9\nnoise_multiplier = -1\n[[release]]\n"
    broken = "delta = 1e-6\nepochs == 60\n"
    left_open = "delta = 1e-6\ntitle = 'ours\n"
    told = run("check", *map(write, (text,)), "nowhere.toml", "--json")
    fine, missing = json.loads(told.out)["files"]
    assert (fine["lines"], missing["lines"]) == ([1, 5, 6], [None])
    for one in (broken, left_open):
        (found,) = json.loads(run("check", write(one), "--json").out)["files"]
        assert found["lines"] == [2]


def test_each_unknown_key_is_told_once_with_its_own_line(run: Run, write: Write) -> None:
    text = (
        "[dpsgd]\nrate = 0.1\nsteps = 9\nnoise_multiplier = 1\ntitle = 'x'\nzebra = 1\nlemur = 2\n"
    )
    out = run("check", write(text)).out
    said = re.findall(r"line (\d): unknown key '(\w+)' in \[dpsgd\]", out)
    assert said == [("5", "title"), ("6", "zebra"), ("7", "lemur")]
    assert out.count("allowed are") == 1


def test_a_number_that_is_left_out_to_be_solved_for_is_well_formed(run: Run, write: Write) -> None:
    path = write("[dpsgd]\nexamples = 6000\nbatch_size = 60\nepochs = 1\n")
    status, out, err = run("check", path)
    assert (status, err) == (0, "")
    assert out.startswith(f"{path}: well-formed for solve\n  noise_multiplier is left out")
    assert "solve finds it; epsilon needs noise_multiplier" in " ".join(out.split())
    assert run("check", write("[dpsgd]\nexamples = 6000\nbatch_size = 60\n")).status == 1


@pytest.mark.parametrize(
    ("delta", "noise", "said"),
    [
        ("1", 1, "a delta of 1 is not below 1 / 6,000: it allows a release"),
        ("1e-4", 1, "a delta of 0.0001 times 6,000 examples is 0.6: usual is one well below"),
        ("0", 1, "at a delta of 0, this plan's epsilon is infinite: choose a delta above 0."),
        ("0", "inf", ""),
        ("1e-6", 1, ""),
    ],
)
def test_a_delta_that_promises_little_has_the_caution_of_its_answer(
    run: Run, write: Write, delta: str, noise: object, said: str
) -> None:
    numbers = f"examples = 6000\nbatch_size = 60\nepochs = 1\nnoise_multiplier = {noise}\n"
    path = write(f"delta = {delta}\n[dpsgd]\n{numbers}")
    shown = " ".join(run("check", path).out.split())
    told = json.loads(run("check", path, "--json").out)["files"][0]["cautions"]
    assert (f" caution: {said}" in shown, "caution" in shown) == (bool(said), bool(said))
    assert [(one["about"], one["text"][: len(said)]) for one in told] == (
        [("delta", said)] if said else []
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "[[dpsgd.release]]\nmechanism = 'Laplace'\nscale = 2\n[[dpsgd.release]]\n[[release]]\n",
            "line 5: unknown key 'release' in [dpsgd] (write [[release]] in place of "
            "[[dpsgd.release]]); allowed",
        ),
        ("[dpsgd.release]\nscale = 2\n", "line 5: unknown key 'release' in [dpsgd] (write [["),
        ("[dpsgd.sampling]\nkind = 'poisson'\n", "line 5: [dpsgd]: sampling must be one of"),
        (
            "[[release]]\nmechanism = 'Composed'\nparts = ['Gaussian']\n",
            "line 7: [[release]] number 1 (Composed): parts[0] must be a table that names its "
            "mechanism, such as {mechanism = \"Gaussian\", noise_multiplier = 2}; got 'Gaussian'",
        ),
    ],
)
def test_a_table_in_a_wrong_place_is_told_with_its_line(
    run: Run, write: Write, text: str, said: str
) -> None:
    path = write(f"[dpsgd]\nrate = 0.1\nsteps = 9\nnoise_multiplier = 1\n{text}")
    assert said in " ".join(run("check", path).out.split())


def test_the_one_error_of_a_command_says_what_lists_the_others(run: Run, write: Write) -> None:
    numbers = "rate = 2\nsteps = 9\nnoise_multiplier = -1\n"
    path = write(f"delta = 2\n[dpsgd]\n{numbers}")
    status, _, err = run("epsilon", path)
    assert (status, err.count("\n")) == (2, 1)
    assert err.endswith(f"; 2 more: hockeystick check {path} lists them\n")
    one = write(f"[dpsgd]\n{numbers}")
    assert run("epsilon", one).err.endswith(f"; 1 more: hockeystick check {one} tells it\n")
    unknown = write("[dpsgd]\nrate = 0.1\nsteps = 9\nnoise_multiplier = 1\nzebra = 1\nlemur = 2\n")
    assert "more:" not in run("epsilon", unknown).err
    assert "more:" not in run("epsilon", one, "--rate", "0.1").err
    grid = ROOT / "examples" / "grids" / "mnist-noise-and-epochs.toml"
    assert "more:" not in run("epsilon", str(grid)).err


def test_a_delta_of_zero_is_cautioned_against_where_any_part_is_gaussian(
    run: Run, write: Write
) -> None:
    parts = "delta = 0\n[[release]]\nmechanism = 'Laplace'\nscale = 2\n"
    assert "caution" not in run("check", write(parts)).out
    parts += "[[release]]\nmechanism = 'Gaussian'\nnoise_multiplier = 2\nrepeat = "
    assert "caution: at a delta of 0" in run("check", write(f"{parts}3")).out
    assert "caution" not in run("check", write(f"{parts}0")).out


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("delta = 1e-6\n[dpsgd]\nrate = 0.1\nsteps = 9\nnoise_multiplier = 0", "noise 0 hides no"),
        ("delta = 0\n[[release]]\nmechanism = 'Laplace'\nscale = 0", "noise 0 hides nothing: eps"),
        ("[[release]]\nmechanism = 'Gaussian'\nnoise_multiplier = 0", "noise 0 hides nothing: eps"),
        ("[dpsgd]\nrate = 0.1\nsteps = 0\nnoise_multiplier = 1", "0 steps: nothing is released."),
        (
            "[[release]]\nmechanism = 'Laplace'\nscale = 2\nrepeat = 0",
            "0 runs: nothing is released.",
        ),
        ("[dpsgd]\nrate = 0.1\nsteps = 9\nnoise_multiplier = 0", ""),
    ],
)
def test_an_epsilon_of_zero_or_inf_that_numbers_show_is_said_before_it_is_computed(
    run: Run, write: Write, text: str, said: str
) -> None:
    path = write(text)
    shown = " ".join(run("check", path).out.split())
    assert ("caution" in shown, f" caution: {said}" in shown) == (bool(said), bool(said))
    (found,) = json.loads(run("check", path, "--json").out)["files"]
    assert [one["about"] for one in found["cautions"]] == (["epsilon"] if said else [])


def test_a_link_to_nowhere_is_told_apart_from_no_file(run: Run, tmp_path: Path) -> None:
    link = tmp_path / "dead.toml"
    link.symlink_to("/nonexistent")
    assert " this link leads to /nonexistent, where no file is" in run("check", str(link)).out


def test_nothing_to_check_is_wrong_input(run: Run) -> None:
    assert run("check").status == 2
    assert run("check", "a.toml", "--schema").status == 2


def test_all_that_is_wrong_with_a_table_is_listed_and_nothing_that_only_follows_from_it(
    run: Run, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COLUMNS")
    training = 'examples = -5\nbatch_size = 0\nepochs = -1\nnoise_multiplier = "x"\n'
    release = '[[release]]\nmechanism = "Gaussian"\nnoise_multiplier = -3\nrepeat = -2\n'
    status, out, _ = run("check", write(f"[dpsgd]\n{training}adjacency = 'nope'\n{release}"))
    assert status == 1
    _, *problems = out.splitlines()
    assert sorted(int(line.split()[1].rstrip(":")) for line in problems) == [2, 3, 4, 5, 6, 9, 10]
    # Without its sampling, the rest would be at odds: that is nobody's mistake.
    shuffled = "examples = 60\nbatch_size = 10\nepochs = 1\nnoise_multiplier = 1\n"
    misspelt = "sampling = 'shufle'\nadjacency = 'zero-out'\ndrop_last = true\n"
    _, *problems = run("check", write(f"[dpsgd]\n{shuffled}{misspelt}"))[1].splitlines()
    assert [line.split()[1] for line in problems] == ["6:"]
    both = "noise_multiplier = -1\nexamples = 9\nepochs = 2\nsteps = 1\nrate = 0.1\n"
    _, *problems = run("check", write(f"[dpsgd]\n{both}"))[1].splitlines()
    assert [line.split()[1] for line in problems] == ["2:", "4:"]
    assert "give epochs or steps, not both" in problems[1]


def test_all_that_is_wrong_with_a_grid_is_listed_by_line(
    run: Run, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COLUMNS")
    grid = "[grid]\nnoise_multplier = [1, 2]\nepochs = 3\nrate = ['a', 1]\n"
    asked = "[ask]\nfind = 'epsilom'\nfoo = 3\ndelta = 7\n"
    status, out, _ = run("check", write(f"[dpsgd]\nexamples = 6000\n{grid}{asked}"))
    assert status == 1
    _, *problems = out.splitlines()
    assert [line.split()[1] for line in problems[:-1]] == ["4:", "5:", "6:", "8:", "9:"]
    assert problems[-1].startswith("  delta must be a number from 0 to 1")


def test_a_plan_that_says_not_where_it_is_asked_says_so(run: Run) -> None:
    assert run("check", "Laplace(2)").out.endswith("  no delta: give --delta\n")


TRAINING = "examples = 600\nbatch_size = 10\nepochs = 1\nnoise_multiplier = -1\n"
WRONG_TABLES = [
    (
        f"[release.dpsgd]\n{TRAINING}",
        ["1: release must be an array of tables: write [dpsgd] in place of [release.dpsgd]"],
    ),
    (f"[dpsg]\n{TRAINING}", ["1: unknown table [dpsg] (did you mean 'dpsgd'?)"]),
    (f"[my-run]\n{TRAINING}", ["1: unknown table [my-run] (did you mean 'dpsgd'?)"]),
    (
        f"[run.dpsgd]\n{TRAINING}",
        ["1: unknown table [run] (write [dpsgd] in place of [run.dpsgd])"],
    ),
    (f"[[dpsgd]]\n{TRAINING}", ["1: dpsgd must be a table: write [dpsgd]"]),
    (
        f"[DPSGD]\n{TRAINING}[DPSGD.schedule]\nkind = 'exponentia'",
        [
            "1: unknown table [DPSGD] (did you mean 'dpsgd'?)",
            "7: [dpsgd].schedule: unknown kind 'exponentia' (did you mean 'exponential'?)",
        ],
    ),
    (
        "[[releases]]\nmechanism = 'Laplac'\n[[releases]]\nmechanism = 'Laplace'\nscale = -1",
        [
            "1: unknown table [[releases]] (did you mean 'release'?)",
            "2: [[release]] number 1: unknown mechanism 'Laplac'",
            "5: [[release]] number 2 (Laplace): scale must be a number >= 0",
        ],
    ),
    (
        "delta = 2\n[release]\nmechanism = 'Laplace'\nscale = -1",
        [
            "1: delta must be a number from 0 to 1",
            "2: release must be an array of tables: write [[release]]",
            "4: [[release]] number 1 (Laplace): scale must be a number >= 0",
        ],
    ),
    (
        "[release.laplace]\nscale = 3",
        [
            "1: release must be an array of tables: write [[release]] with mechanism = "
            '"Laplace" in place of [release.laplace]'
        ],
    ),
    ("[privacy]\nepsilon = 3", ["1: unknown table [privacy]; allowed are"]),
]


def problems_of(run: Run, path: str) -> list[str]:
    """Return what is wrong with a file, a line each."""
    (found,) = json.loads(run("check", path, "--json").out)["files"]
    problems: list[str] = found["problems"]
    return problems


@pytest.mark.parametrize(("text", "told"), WRONG_TABLES)
def test_a_table_of_a_wrong_name_is_told_and_its_keys_are_looked_at_too(
    run: Run, write: Write, text: str, told: list[str]
) -> None:
    if text.endswith(TRAINING):
        told = [*told, "5: [dpsgd]: noise_multiplier must be a number >= 0 or inf; got -1"]
    problems = problems_of(run, write(text))
    assert len(problems) == len(told)
    pairs = zip(problems, told, strict=True)
    assert all(one.startswith(f"line {wanted}") for one, wanted in pairs), problems


def test_a_table_of_a_wrong_name_beside_the_right_one_is_told_alone(run: Run, write: Write) -> None:
    text = f"[dpsgd]\n{TRAINING.replace('-1', '1')}[dpsg]\nepochs = -1"
    (one,) = problems_of(run, write(text))
    assert one.startswith("line 6: unknown table [dpsg] (did you mean 'dpsgd'?)")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            "[[release]]\nmechanism = 'PoissonSubsampled'\nrate = 2\nrepeat = -1\n[release.inner]\n"
            "mechanism = 'Laplace'\nscale = 'big'",
            [
                "3: [[release]] number 1 (PoissonSubsampled): rate",
                "4: [[release]] number 1: repeat",
                "7: [[release]] number 1, inner (Laplace): scale",
            ],
        ),
        (
            "[[release]]\nmechanism = 'RandomStopping'\n[release.inner]\nmechanism = 'Gaussian'\n"
            "noise_multiplier = -5\n[release.distribution]\nkind = 'poisson'\nmeen = 3",
            [
                "5: [[release]] number 1, inner (Gaussian): noise_multiplier",
                "8: unknown key 'meen' in [[release]] number 1, distribution (poisson)",
            ],
        ),
        (
            "[[release]]\nmechanism = 'Composed'\nrepeat = -1\nparts = [\n"
            "{mechanism = 'Laplace', scale = -1},\n{mechanism = 'Laplace', scale = -2},\n]",
            [
                "3: [[release]] number 1: repeat",
                "5: [[release]] number 1, parts[0] (Laplace): scale",
                "6: [[release]] number 1, parts[1] (Laplace): scale",
            ],
        ),
        (
            "[[release]]\nmechanism = 'PoissonSubsampled'\nrate = 2\n[release.inner]\n"
            "mechanism = 'Lapl'\nscale = 1",
            ["5: [[release]] number 1, inner: unknown mechanism 'Lapl'"],
        ),
    ],
)
def test_what_is_wrong_inside_of_a_table_hides_nothing_else_of_it(
    run: Run, write: Write, text: str, told: list[str]
) -> None:
    problems = problems_of(run, write(text))
    assert len(problems) == len(told), problems
    for one, wanted in zip(problems, told, strict=True):
        assert one.startswith(f"line {wanted}")


def test_what_is_not_there_hides_no_more_problems(
    run: Run, write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COLUMNS")
    for one in ("nowhere.toml", str(tmp_path)):
        assert run("check", one).out.startswith(f"{one}: 1 problem\n")
    for one in (write("{"), "Laplace(-1)"):
        assert run("check", one).out.startswith(f"{one}: 1 problem (more may show once mended)\n")


def test_one_example_is_no_examples(run: Run) -> None:
    plan = "DPSGD(examples=1, batch_size=1, epochs=1, noise_multiplier=1)"
    assert "DP-SGD on 1 example: Poisson" in run("check", plan).out
    assert (
        "DP-SGD on 2 examples: Poisson"
        in run("check", plan.replace("examples=1", "examples=2")).out
    )
