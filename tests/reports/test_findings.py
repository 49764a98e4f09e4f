"""What a report says is what the library answers."""

import math
from dataclasses import replace

import pytest

import hockeystick as hs
from hockeystick.answers import document
from hockeystick.reports import Findings, Subject, investigate, words
from tests.reports.conftest import TRAINING

SHUFFLED = hs.mechanisms.ShuffledReports(users=1000, randomizer=hs.PureDP(epsilon=2))


def findings_of(plan: hs.Mechanism, delta: float) -> Findings:
    return investigate(Subject(plan=plan, delta=delta))


def test_the_headline_is_what_epsilon_answers(found: Findings) -> None:
    assert found.answer == hs.epsilon(TRAINING, delta=1e-5)


def test_the_curves_have_what_epsilon_and_delta_answer(found: Findings) -> None:
    assert 1e-5 in [one.at for one in found.by_delta]
    for point in found.by_delta[::5]:
        answer = hs.epsilon(TRAINING, delta=point.at)
        assert (point.lower, point.upper) == (answer.lower, answer.upper)
    for point in found.by_epsilon[::5]:
        answer = hs.delta(TRAINING, epsilon=point.at)
        assert (point.lower, point.upper) == (answer.lower, answer.upper)


def test_the_curves_fall_and_surround_the_headline(found: Findings) -> None:
    for points in (found.by_delta, found.by_epsilon):
        at = [one.at for one in points]
        uppers = [one.upper for one in points]
        assert at == sorted(set(at))
        assert uppers == sorted(uppers, reverse=True)
    assert found.by_epsilon[0].at == 0.0
    assert found.by_epsilon[-1].at > found.answer.upper
    assert found.by_delta[0].at < 1e-5 < found.by_delta[-1].at


def test_the_budget_ends_with_the_headline(found: Findings) -> None:
    assert found.course is not None
    assert found.course.unit == "epochs"
    assert [one.at for one in found.spent] == [1, 2, 3, 4, 5, 6, 7, 8]
    assert found.spent[-1].upper == pytest.approx(found.answer.upper, rel=1e-12)


def test_the_attack_is_what_the_trade_off_function_says(found: Findings) -> None:
    f = hs.tradeoff(TRAINING)
    attack = found.attack
    assert attack is not None
    assert attack.headline == (0.01, f.power(0.01))
    assert (attack.advantage, attack.bayes_error) == (f.advantage, f.bayes_error(0.5))
    assert attack.table[1] == pytest.approx((0.01, f.power(0.01), f(0.01)), rel=1e-12)
    for points, bounds in ((attack.misses, f.bounds), (attack.finds, f.power_bounds)):
        for point in points[::7]:
            assert (point.lower, point.upper) == pytest.approx(bounds(point.at), rel=1e-9)


def test_every_accountant_has_its_row(found: Findings) -> None:
    rows = hs.compare(TRAINING, delta=1e-5)
    assert [(row.accountant, row.kind, row.answer, row.reason) for row in found.rows] == [
        (row.accountant, row.kind, row.answer, row.reason) for row in rows
    ]


def test_each_question_is_told_of_once_and_what_is_under_way_before_it_begins() -> None:
    heard: list[tuple[int, int, str]] = []
    subject = Subject(plan=hs.Gaussian(4) ** 3, delta=1e-5)
    investigate(subject, lambda *told: heard.append(told))
    total = heard[0][1]
    numbers = [done for done, _, _ in heard]
    assert numbers == sorted(numbers)
    assert sorted(set(numbers)) == list(range(total + 1))
    assert {one[1] for one in heard} == {total}
    before = next(done for done, _, now in heard if now == "attacks")
    assert (before + 1, total, "attacks") in heard


def test_a_wide_answer_has_both_of_its_ends_and_fewer_points(found: Findings) -> None:
    wide = findings_of(SHUFFLED, 1e-6)
    assert wide.answer.accountant == "prv"
    assert len(wide.by_delta) < len(found.by_delta)
    assert any(one.upper > 1.05 * one.lower > 0.0 for one in wide.by_delta)


@pytest.mark.parametrize(
    ("plan", "delta", "upper"),
    [
        (hs.Gaussian(0), 1e-5, math.inf),
        (hs.Laplace(scale=1), 0.0, None),
        (hs.Gaussian(1) ** 0, 1e-5, 0.0),
        (hs.Gaussian(1), 1.0, 0.0),
        (hs.Gaussian(1), 0.0, math.inf),
        (hs.Gaussian(1), 1e-300, None),
    ],
)
def test_the_ends_of_the_scale_are_answered(
    plan: hs.Mechanism, delta: float, upper: float | None
) -> None:
    edge = findings_of(plan, delta)
    assert edge.answer.upper == hs.epsilon(plan, delta=delta).upper
    if upper is not None:
        assert edge.answer.upper == upper
    assert all(one.lower <= one.upper for one in (*edge.by_delta, *edge.by_epsilon))


def test_where_no_trade_off_function_is_known_it_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(plan: hs.Mechanism) -> hs.tradeoffs.TradeOff:
        raise hs.errors.UnsupportedError("f-dp", "the plan", "nobody knows")

    monkeypatch.setattr("hockeystick.reports.findings.tradeoff", unknown)
    without = findings_of(hs.Gaussian(4), 1e-5)
    assert without.attack is None
    assert without.no_attack.endswith("nobody knows")


def test_the_answer_is_a_document_that_the_verifier_is_asked_about_if_it_is_to_be(
    found: Findings,
) -> None:
    assert found.document == document(found.answer, TRAINING, delta=1e-5)
    assert found.verdict is None
    assert found.not_verified
    judged = investigate(replace(found.subject, plan=hs.Gaussian(4), verify=True))
    assert judged.verdict == hs.verify(judged.answer, hs.Gaussian(4), delta=1e-5)
    assert judged.not_verified == ""


def test_a_plan_that_has_no_form_in_json_has_no_document() -> None:
    found = findings_of(hs.FDP(hs.tradeoffs.tradeoff_of_deltas([(0.5, 0.1), (1.0, 0.01)])), 0.05)
    assert (found.document, found.verdict) == (None, None)
    assert "known to the program alone" in found.not_verified


def test_the_mu_that_sums_it_up_is_what_the_library_answers(found: Findings) -> None:
    assert found.attack is not None
    assert found.attack.gaussian == hs.accountants.gaussian_summary(TRAINING)


def test_a_budget_is_decided_and_people_with_several_examples_are_told_of() -> None:
    plan = hs.DPSGD(examples=10_000, batch_size=100, epochs=1, noise_multiplier=1.0)
    found = investigate(Subject(plan=plan, delta=1e-3, budget=0.01))
    assert str(found.decision) == "misses"
    assert [one.about for one in found.cautions] == ["delta"]
    costs = [found.answer.upper, *(one.answer.upper for one in found.groups if one.answer)]
    assert len(costs) == 4
    assert costs == sorted(costs)
    told = words.told(found)
    assert told.budget == "Misses the budget: epsilon at most 0.01 at delta = 0.001."
    assert not told.is_met


def test_a_group_of_which_nothing_is_known_says_why() -> None:
    plan = hs.DPSGD(
        examples=1_000,
        batch_size=100,
        steps=1,
        noise_multiplier=1.0,
        clipping="batch",
    )
    found = investigate(Subject(plan=plan, delta=1e-5))
    assert all(one.answer is None and one.reason for one in found.groups)
    assert words.told(found).groups[0][1] == "not known"
