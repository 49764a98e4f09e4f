"""Checking claims: which, in which order, and what is told of them."""

import pytest

import hockeystick as hs
from tests.claims import Found, catalogue, check
from tests.claims.checking import ask
from tests.claims.found import found

SOME = "sense-and-sensitivity/section-3.5"


def test_a_prefix_ends_at_a_slash() -> None:
    with pytest.raises(hs.errors.ParameterError, match="document must be one of federated-f-dp"):
        check("sense-and-sensitivity/section-3")


@pytest.mark.parametrize(
    ("name", "meant"),
    [("federated", "federated-f-dp"), ("consideration", "considerations"), ("xyz", None)],
)
def test_a_wrong_name_is_answered_with_a_near_one(name: str, meant: str | None) -> None:
    with pytest.raises(hs.errors.ParameterError) as error:
        check(name)
    assert (f"did you mean {meant!r}" in str(error.value)) is (meant is not None)
    assert "did you mean" not in str(error.value) or meant is not None


def test_progress_is_told() -> None:
    told: list[tuple[int, int]] = []
    check(SOME, tell=lambda done, total: told.append((done, total)))
    assert told == [(0, 2), (1, 2)]


def test_the_same_question_is_answered_once() -> None:
    asked = catalogue().claims[f"{SOME}/query-noise"].own
    assert asked is not None
    assert ask(asked) is ask(asked)


def test_words_have_the_condition_or_the_reason() -> None:
    by_id = {
        one.claim.id: one
        for one in check(
            "sense-and-sensitivity/section-5.2",
            "sense-and-sensitivity/equation-1.9/norm",
            "sense-and-sensitivity/table-2.3/nu5-7-median",
            "fed-alpha-cdp/table-8/adult-cyclic",
            "federated-f-dp/lemma-3.8",
        )
    }
    words = {id_: one.words for id_, one in by_id.items()}
    assert words == {
        "sense-and-sensitivity/section-5.2/variance": (
            "reproduces only with the standard deviation in the place of the variance"
        ),
        "sense-and-sensitivity/section-5.2/half-epsilon": (
            "reproduces: with much to spare, as the classical formula has for a small epsilon"
        ),
        "sense-and-sensitivity/equation-1.9/norm": (
            "statement invalid because it is the square of the norm of x, which is the same only "
            "for norm 1"
        ),
        "sense-and-sensitivity/table-2.3/nu5-7-median": (
            "consistent, as 45 % of all such numbers are"
        ),
        "fed-alpha-cdp/table-8/adult-cyclic": (
            "does not reproduce: one cycle spends it in round 9, and no number of cycles in round 7"
        ),
        "federated-f-dp/lemma-3.8": "reproduces: delta is p^2 times that of f",
    }


def test_answers_of_every_kind_have_one_form() -> None:
    certified = hs.Certified(1.0, 1.5, 2.0, quantity="epsilon", accountant="x")
    assert found(certified) == Found(1.0, 2.0, "proven", "epsilon")
    rough = hs.Approximate(1.5, quantity="epsilon", accountant="x")
    assert found(rough) == Found(1.5, 1.5, "approximation", "epsilon")
    assert found(3) == Found(3.0, 3.0, "exact")
    with pytest.raises(TypeError, match="answers with a number"):
        found("3")
