"""The table of frozen answers still stands, asks about everything, and notices what it is for."""

import random
from decimal import Decimal
from functools import cache
from operator import attrgetter
from typing import Final

import pytest

from benchmarks.frozen.answers import Frozen, told
from benchmarks.frozen.comparing import Ends, difference, same_number, truths
from benchmarks.frozen.questions import is_about, questions
from benchmarks.frozen.table import read
from hockeystick.accountants import ACCOUNTANTS
from hockeystick.mechanisms import MECHANISMS
from hockeystick.notions import NOTIONS

TABLE: Final = read()
TRUTHS: Final = truths(TABLE.values())
SAMPLE: Final = 75
# Milliseconds: of answers that are all asked for again, and of those of which a sample is.
AT_ONCE: Final = 1.0
QUICK: Final = 50.0
# Another processor's exponential function may differ in the last digit, and delta in some more.
SLACK: Final = Decimal("1e-10")
WIDER: Final = Decimal("1e-9")
BEFORE: Final = Frozen("epsilon", "hs.epsilon(x, 0.1)", "0.5<0.6<0.75 contour", 1.0)


def changes(one: Frozen) -> list[str]:
    after = told(one.question)
    right, _ = difference(one, after, SLACK, TRUTHS.get(same_number(one.question)), WIDER)
    return [] if right else [f"{one.question}\n  was {one.answer}\n  is  {after}"]


@pytest.mark.parametrize("kind", sorted({one.kind for one in TABLE.values()}))
def test_what_is_answered_at_once_is_as_it_was(kind: str) -> None:
    asked = (one for one in TABLE.values() if one.kind == kind and one.time < AT_ONCE)
    assert "\n".join(change for one in asked for change in changes(one)) == ""


def sample() -> list[Frozen]:
    quick = [one for one in TABLE.values() if AT_ONCE <= one.time < QUICK]
    return random.Random(0).sample(quick, SAMPLE)


@pytest.mark.parametrize("one", sample(), ids=attrgetter("question"))
def test_a_sample_of_the_others_is_answered_as_it_was(one: Frozen) -> None:
    assert changes(one) == []


@cache
def asked_of_all() -> tuple[tuple[str, str], ...]:
    return tuple(questions())


@pytest.mark.parametrize("name", [*MECHANISMS, *NOTIONS])
def test_every_mechanism_and_every_notion_is_asked_about(name: str) -> None:
    asked = [(kind, text) for kind, text in asked_of_all() if is_about(text, name)]
    frozen = {one for kind, text in asked if (one := TABLE.get(text))}
    for quantity in ("epsilon", "delta"):
        assert any(kind.startswith(quantity) for kind, _ in asked)
        answers = [one.answer for one in frozen if one.kind.startswith(quantity)]
        # What is registered after the table was written waits for the next one.
        assert not frozen or not all(answer.startswith("!") for answer in answers)


@pytest.mark.parametrize("name", [name for name in ACCOUNTANTS if name != "auto"])
def test_every_accountant_is_asked(name: str) -> None:
    kinds = {one.kind for one in TABLE.values()}
    adds = f"`python -m benchmarks.frozen --write --missing --about {name}` adds what is missing"
    assert {f"epsilon by {name}", f"delta by {name}"} <= kinds, adds
    answered = sum(name in one.answer.split() for one in TABLE.values())
    assert answered > 2, f"{answered} of the answers are by {name!r}, 3 are needed: {adds}"


def test_the_table_holds_answers_that_are_no_slips() -> None:
    slips = ("! AttributeError", "! NameError", "! SyntaxError", "! AssertionError")
    assert not [one for one in TABLE.values() if one.answer.startswith(slips)]
    assert len(TABLE) > 2000


@pytest.mark.parametrize(
    ("after", "right"),
    [
        ("0.5<0.6<0.75 contour", True),
        ("0.5<0.6<0.7 contour", True),
        ("0.55<0.56<0.75 contour", True),
        ("0.5<0.6<0.7500000001 contour", False),
        ("0.4999999999<0.6<0.75 contour", False),
        ("0.5<0.7<0.6 contour", False),
        ("0.5<0.51<0.52 contour", False),
        ("0.5<0.6<0.75 prv", False),
        ("0.6 contour", False),
        ("0.5<0.6<0.75", False),
        ("! UnsupportedError", False),
    ],
)
def test_an_answer_may_only_become_narrower_around_the_truth(after: str, right: bool) -> None:
    truth: Ends = (Decimal("0.58"), Decimal("0.59"))
    if after.startswith("0.55<"):
        truth = (Decimal("0.56"), Decimal("0.6"))
    assert difference(BEFORE, after, Decimal(0), truth)[0] == right


@pytest.mark.parametrize(
    ("question", "before", "after", "said"),
    [
        ("delta(x, 2.0)", "0.7<0.7<0.7 prv", "0.6999999999<0.7<0.7 prv", "a little wider"),
        ("delta(x, 2.0)", "0.7<0.7<0.7 prv", "0.699999999<0.7<0.7 prv", "moved"),
        ("delta(x, 2.0)", "0.5<0.5<0.5 prv", "0.5000000001<0.5000000001<0.5000000002 prv", "moved"),
        ("delta(x, 0.5)", "0.5<0.5<0.5 prv", "0.4999999999<0.5<0.5 prv", "moved"),
        ("delta(x, 2.0)", "1<1<1 prv", "1<1<1.0000000001 prv", "moved"),
        ("delta(x, digits=20)", "0.7<0.7<0.7 prv", "0.6999999999<0.7<0.7 prv", "moved"),
        ("delta(x, tolerance=1e-10)", "0.7<0.7<0.7 prv", "0.6999999999<0.7<0.7 prv", "moved"),
        ("epsilon(x, 2.0)", "0.7<0.7<0.7 prv", "0.7<0.7<inf prv", "moved"),
        ("convert(x)", "bound 0.7", "bound 0.7000000001", "a little wider"),
        ("convert(x)", "bound 0.7", "bound 0.700000001", "moved"),
    ],
)
def test_an_answer_may_become_wider_by_a_billionth_where_none_asks_for_less(
    question: str, before: str, after: str, said: str
) -> None:
    frozen = Frozen("delta", question, before, 1.0)
    assert difference(frozen, after, Decimal(0), None, Decimal("1e-9"))[1] == said
    assert not difference(frozen, after, Decimal(0), None)[0]


@pytest.mark.parametrize("slack", ["0", "1e-9"])
def test_an_end_may_become_finite_but_not_infinite(slack: str) -> None:
    ends = "0.5<inf<inf prv", "0.5<0.6<0.7 prv"
    for answers, truth, told_of in (
        (ends, (Decimal("0.5"), Decimal("0.7")), (True, "narrower")),
        (ends, (Decimal("0.8"), Decimal("0.9")), (False, "beside what others prove")),
        (ends[::-1], None, (False, "moved")),
    ):
        before = Frozen("epsilon", "x", answers[0], 1.0)
        assert difference(before, answers[1], Decimal(slack), truth) == told_of


def test_a_refusal_stays_one_of_its_class_and_sentences_are_not_kept() -> None:
    refused = Frozen("epsilon", "x", told("hs.Gaussian(-1.0)"), 1.0)
    assert refused.answer == "! ParameterError"
    assert not difference(refused, "! UnsupportedError", Decimal(0), None)[0]
    assert not difference(refused, "0.5<0.6<0.7 rdp", Decimal(0), None)[0]
    assert told("['contour', 'two words', 1.5]") == "contour 1.5"
