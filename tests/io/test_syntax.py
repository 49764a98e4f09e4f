"""A text that is no TOML is told with its line, and with what to write instead."""

import pytest

from hockeystick.errors import PlanFileError
from hockeystick.io.plan_file import plan_in

LINES = [
    ("delta = 0.001%", "'delta = 0.001%': write it as 1e-05"),
    ("delta = 1/60000", "write the number itself, 1.66666666666667e-05"),
    ("rate = 1/98", 'the number itself, 0.0102040816326531, or the quotient in quotes, "1/98"'),
    ("delta = 1/0", "in 'delta = 1/0'"),
    ("delta = 10^-5", "write it as 1e-5"),
    ("examples = 60,000  # all", "write 60000"),
    ("epochs = 1,500", "write 1500, or a point where the comma is a decimal one"),
    ("batch_size = 0.4%", "a share of the examples is a rate: write rate=0.004 in its place"),
    ("rate = 0,004", "write 0.004, with a point"),
    ("delta = 1e\u22125", "write a plain minus, -"),
    ("title = \u201cours\u201d", "write straight quotes"),
    ("epochs\xa0= 60", "write plain spaces"),
    ("epochs: 60", "write epochs = ..., with = for :"),
    ("sampling = poisson", 'a text is in quotes: "poisson"'),
    ("title = MNIST, two releases", 'a text is in quotes: "MNIST, two releases"'),
    ("delta: 1e-5\ndpsgd:\n  rate: 0.01\n  steps: 100", "this looks like YAML"),
    ("drop_last = True", "write true"),
    ("[[release]", None),
    ("delta = .00001", "write 0.00001"),
    ("delta = -1.e-5", "write -1.0e-5, or -1e-5"),
    ("delta = 10e^-5", "write 10e-5"),
    ("delta = 1e", "write 1, or an exponent behind the e"),
    ("examples = 60k  # all", "write 60000"),
    ("examples = 1.5M", "write 1500000"),
    ("examples = 60 000", "write 60000, or 60_000"),
    ("examples = 60_", "write 60"),
    ("batch_size = 0256", "write 256, without a zero before it"),
    ("batch_size =  # later", "the value behind = is missing"),
    ('title = "ours', 'end the text with ", on the same line'),
    ("title = 'ours", "end the text with ', on the same line"),
    ("title = ours'", "begin the text with '"),
    (r'title = "C:\#new"', r"write each \ twice, or the text in single quotes"),
    ("epochs = 10;", "write 10, and nothing behind it"),
    ("epochs = 10, steps = 5", "write each key on a line of its own"),
    ('title = "a" steps = 5', "write each key on a line of its own"),
    ("epochs = 10 // passes", "a comment begins with #"),
    ("epochs = None", "leave the line out where there is no value"),
    ("epochs 10", "write epochs = 10"),
    ("dpsgd:\n  epochs: 1", "this looks like YAML"),
    ("<plan/>", "this looks like XML or HTML"),
    ("a\0 \0=\0 \x001\0", "this is UTF-16, or no text"),
    ("[dpsgd", "write [dpsgd]"),
    ("a = 1\na = 2", "in 'a = 2': a is there twice"),
    ("[dpsgd]\n[dpsgd]", "[dpsgd] is there twice (at line 3, column 7), in '[dpsgd]': one plan"),
    ("rate = Infinity", "write inf, in lower case"),
    ("rate = NaN", "nan is no number to plan with: write a number"),
    ("batch_size = True", "write a number"),
    ("noise multiplier = 1.1", "write noise_multiplier"),
    ('{"dpsgd": {}}', "this looks like JSON"),
    ("a = 1\rb = 2", "its lines end in CR alone"),
    ("DPSGD(epochs=1)", "this is a plan as in Python"),
    ('print("hi")', "this looks like Python; a plan file is TOML, and hockeystick init writes one"),
    ("import torch", "this looks like Python"),
    ("a,b,c\n1,2,3", "this looks like CSV; a plan file is TOML"),
    ("<<<<<<< HEAD\na = 1", "a merge conflict is left in the file, '<<<<<<< HEAD' on line 1"),
    ("a = 1\n=======\na = 2", "a merge conflict is left in the file"),
    ('{"schema": "hockeystick-answer/1", "plan": {}}', "--like ANSWER.json writes its plan"),
    ("// my run", "a comment begins with #"),
    ('dpsgd = {"examples": 60000}', "write = in place of :, or a [dpsgd] table"),
    ("; my run", "a comment begins with #"),
    ("epochs = 60 ; passes", "a comment begins with #"),
    ("epochs = 60 passes", "write 60, without passes"),
    ("epochs == 60", "write epochs = 60, with one ="),
    ("delta = 10**(-5)", "write it as 1e-5"),
    ("delta = 1*10^-6", "write it as 1e-6"),
    ("delta = 2.5 x 10-6", "write it as 2.5e-6"),
    ("examples = 6*10_000", "write the number itself, 60000"),
    ("scale = 2*sqrt(3)", 'write it in quotes, "2*sqrt(3)"'),
    ("release = [\n  { scale = 2,\n repeat = 3 }]", "an inline table is on one line"),
    ("release = [\n  { scale = 2, },\n]", "leave out the comma before }"),
    ("release = [\n  { scale = 2 repeat = 3 },\n]", "write a comma before repeat"),
    (
        "release = [\n  { scale = 2 }\n  { scale = 3 }\n]",
        "in '{ scale = 3 }': write a comma between the tables of an array, and ] behind the last",
    ),
    ("release = [\n  { scale = 2 },", "in 'release = [' on line 2: write ] where the array ends"),
    ("[[release]\nscale = 1", "in '[[release]': write [[release]]"),
    ("[release]]\nscale = 1", "in '[release]]': write [[release]]"),
    ("[ [release] ]", "in '[ [release] ]': write [[release]]"),
    ("[dpsgd]]", "in '[dpsgd]]': write [dpsgd]"),
    ("[release]\n[release]", "column 9), in '[release]': write [[release]] above each release"),
    ("dpsgd.rate = 1\n[dpsgd]", "in '[dpsgd]': write what begins with dpsgd. below [dpsgd], wi"),
    ("orders = [\n 2,\n[dpsgd]\nsteps = 3", "in '[dpsgd]': an array above it lacks its ]"),
    ("orders = [2 3]", "write a comma between the values of an array"),
    ("title = 'ours\nrate = 1", "in \"title = 'ours\" on line 2: end the text with ', on the same"),
    ('title = """ours\nrate = 1', 'ours\' on line 2: end the text with """'),
    ("[DEFAULT]\ntitle: x\n[dpsgd]\nrate: 0.1\nsteps: 9", "this looks like INI: write = in"),
    (
        "delta: 1e-5\nrelease:\n  - mechanism: Laplace\n    scale: 1",
        "this looks like YAML: write key = value, and tables as [[release]]",
    ),
    (
        "dpsgd:\n  steps: 9\nreleases:\n  - mechanism: Laplace\n    scale: 1",
        "and tables as [dpsgd] and [[release]]",
    ),
    ("[dpsgd]\nsteps = 1\n[dpsgd]", "one plan per file; another release of the same data is a"),
    ("dpsgd = {\n epochs = 1\n}", "an inline table is on one line: write [dpsgd] and its keys"),
]


@pytest.mark.parametrize(("text", "hint"), LINES)
def test_a_syntax_error_shows_its_line_and_what_to_write(text: str, hint: str | None) -> None:
    with pytest.raises(PlanFileError, match=r"^x: a plan file must be valid TOML: ") as error:
        plan_in(text.encode() if text[0] in "{<" else f"# first\n{text}\n".encode(), "x")
    assert hint is None or hint in str(error.value)


def test_a_count_with_a_comma_is_told_one_spelling_alone() -> None:
    with pytest.raises(PlanFileError, match=r"write 60000$"):
        plan_in(b"examples = 60,000", "x")


def test_a_long_line_is_told_soon() -> None:
    text = f"a = [{'{ b = 1 ' * 100_000}"
    with pytest.raises(PlanFileError, match=r"in 'a = \[\{ b = 1 .*\.\.\.'$"):
        plan_in(text.encode(), "x")
