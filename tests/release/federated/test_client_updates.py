"""Fed-SDP's rounds: who is drawn, how far one client moves the sum, how much noise, what counts."""

import itertools
import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

import hockeystick as hs
from hockeystick.errors import IncompatibleError, ParameterError
from hockeystick.release.federated import ClientRounds, draw_clients, noisy_update
from tests.release.bits import seeded


def planned(sampling: str = "poisson", **changes: Any) -> hs.federated.FedSDP:
    """Return a plan of few clients."""
    settings: dict[str, Any] = {
        "noise_multiplier": 2.0,
        "total_clients": 6,
        "clients_per_round": 2,
        "rounds": 3,
        "sampling": sampling,
        "adjacency": "zero-out",
    }
    return hs.federated.FedSDP(**(settings | changes))


@pytest.mark.parametrize("sampling", ["poisson", "fixed-size", "revealed"])
def test_each_client_is_drawn_as_often_as_the_plan_says(sampling: str) -> None:
    plan, bits, draws = planned(sampling), seeded(3), 3000
    cohorts = [draw_clients(plan, bits=bits) for _ in range(draws)]
    counts = np.bincount(np.concatenate(cohorts), minlength=6)
    assert np.abs(counts / draws - 1 / 3).max() < 4.5 * math.sqrt(2 / 9 / draws)
    sizes = np.bincount([len(one) for one in cohorts], minlength=7)
    if sampling == "poisson":
        expected = np.asarray(stats.binom.pmf(np.arange(7), 6, 1 / 3)) * draws
        assert stats.chisquare(sizes, expected).pvalue > 1e-4
    else:
        assert sizes[2] == draws
        pairs = {tuple(one.tolist()) for one in cohorts}
        assert pairs == set(itertools.combinations(range(6), 2))


def _sum_of(plan: hs.federated.FedSDP, updates: list[list[float]], *, norm: float) -> Any:
    """Return a round's sum where the updates are those of the first clients that are drawn."""
    cohort = ClientRounds(plan, size=2, norm=norm, bits=seeded(1)).draw()
    for client, update in zip(cohort.clients, updates, strict=False):
        cohort.accept(client, update)
    return cohort.release() * plan.clients_per_round


def test_a_client_moves_the_sum_by_the_clipping_norm_and_no_further() -> None:
    """Without noise, so that the distance is seen; the same bits draw the same cohort."""
    plan = planned("fixed-size", noise_multiplier=0.0)
    still = _sum_of(plan, [[0.1, 0.2]], norm=0.5)
    for update in ([1e9, 0.0], [-3.0, 4.0], [0.5, 0.0]):
        moved = _sum_of(plan, [[0.1, 0.2], update], norm=0.5) - still
        assert 0.4999 < np.linalg.norm(moved) <= 0.5
    opposite = [_sum_of(plan, [[0.1, 0.2], [x, 0.0]], norm=0.5) for x in (9.0, -9.0)]
    assert 0.999 < np.linalg.norm(opposite[0] - opposite[1]) <= 1.0


@pytest.mark.parametrize("answering", [True, False])
def test_the_noise_is_the_plans_on_the_sum_whoever_answers(answering: bool) -> None:
    plan = planned(noise_multiplier=1.5)
    cohort = ClientRounds(plan, size=20_000, norm=0.5, bits=seeded(2)).draw()
    for client in cohort.clients if answering else ():
        cohort.accept(client, np.zeros(20_000))
    noise = cohort.release() * plan.clients_per_round / (1.5 * 0.5)
    assert stats.kstest(noise, "norm").pvalue > 1e-4
    assert noise.std() == pytest.approx(1, abs=0.02)


def test_noise_at_the_clients_is_the_whole_rounds_for_each() -> None:
    plan = planned("revealed", noise_multiplier=1.5)
    message = noisy_update(plan, np.zeros(20_000), norm=0.5, bits=seeded(5))
    assert stats.kstest(message / 0.75, "norm").pvalue > 1e-4
    assert message.std() == pytest.approx(0.75, rel=0.02)
    cohort = ClientRounds(plan, size=2, norm=0.5, noise_at="clients").draw()
    for client in cohort.clients:
        cohort.accept(client, [8.0, -4.0])
    assert cohort.release().tolist() == [8.0, -4.0]


def test_noise_at_the_clients_is_refused_where_the_plan_counts_on_secrecy() -> None:
    for sampling in ("poisson", "fixed-size"):
        with pytest.raises(IncompatibleError, match="sees whose message"):
            ClientRounds(planned(sampling), size=2, norm=1.0, noise_at="clients")
        with pytest.raises(IncompatibleError, match="sees whose message"):
            noisy_update(planned(sampling), [1.0], norm=1.0)
    everybody = planned(clients_per_round=6)
    assert ClientRounds(everybody, size=2, norm=1.0, noise_at="clients").draw().clients


UPDATES: Any = [
    ([1.0, math.nan], "NaN or infinity"),
    ([math.inf, 1.0], "NaN or infinity"),
    ([1.0, 2.0, 3.0], r"shape \(3,\)"),
    ([[1.0, 2.0]], r"shape \(1, 2\)"),
    (["a", "b"], "a row of 2 finite numbers"),
    ([1 + 2j, 0], "complex"),
    (None, "object"),
    ([[1.0], [1.0, 2.0]], "list"),
]


def test_a_wrong_update_is_refused_and_the_round_goes_on() -> None:
    plan = planned(clients_per_round=6, noise_multiplier=0.0)
    cohort = ClientRounds(plan, size=2, norm=10.0).draw()
    cohort.accept(0, [3.0, 0.0])
    for update, told in UPDATES:
        with pytest.raises(ParameterError, match=told):
            cohort.accept(1, update)
    assert cohort.answered == (0,)
    cohort.accept(1, [0.0, 3.0])
    assert (cohort.release() * 6).round(3).tolist() == [3.0, 3.0]


def test_a_second_answer_a_stranger_and_a_late_answer_count_nothing() -> None:
    plan = planned("fixed-size", noise_multiplier=0.0)
    cohort = ClientRounds(plan, size=1, norm=10.0).draw()
    one, other = cohort.clients
    stranger = next(client for client in range(6) if client not in cohort.clients)
    refused = cohort.accept_all(
        [(one, [1.0]), (one, [5.0]), (stranger, [7.0]), (other, [math.nan]), (99, [1.0])]
    )
    assert {client: text.split(";")[0] for client, text in refused.items()} == {
        one: "client must be one that has not answered in this round",
        stranger: "client must be one that was drawn for this round",
        other: "update must be a row of 1 finite numbers",
        99: "client must be one that was drawn for this round",
    }
    assert (cohort.release() * 2).round(3).tolist() == [1.0]
    with pytest.raises(IncompatibleError, match="has been released"):
        cohort.accept(other, [1.0])
    with pytest.raises(IncompatibleError, match="has been released"):
        cohort.release()


NUMBERS: Any = [np.array([0, 1]), np.array(0), [0], None, "0", 0.0, True, {}]
PAIRS: Any = [None, 3, "ab", [3], [(0,)], [(0, [1.0], 2)], np.array(0.0)]


def test_what_are_no_answers_of_clients_is_refused_and_none_is_taken() -> None:
    cohort = ClientRounds(planned("fixed-size"), size=1, norm=10.0).draw()
    first = cohort.clients[0]
    for client in NUMBERS:
        with pytest.raises(ParameterError, match=r"^client must be one that was drawn"):
            cohort.accept(client, [1.0])
    for answers in (*PAIRS, *([(first, [1.0]), (client, [1.0])] for client in NUMBERS)):
        with pytest.raises(ParameterError, match=r"^answers must be pairs of a client's number"):
            cohort.accept_all(answers)
    assert cohort.answered == ()
    assert cohort.accept_all((one, [1.0]) for one in np.array(cohort.clients)) == {}
    assert cohort.answered == cohort.clients


class Scalar:
    """A number as arrays of some libraries have it: equal ones are different keys."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __index__(self) -> int:
        return self.number

    def __eq__(self, other: object) -> bool:
        return other == self.number

    __hash__ = object.__hash__


def test_a_client_counts_once_whatever_type_says_its_number() -> None:
    plan = planned("fixed-size", noise_multiplier=0.0)
    cohort = ClientRounds(plan, size=1, norm=1.0).draw()
    one, other = cohort.clients
    alike: list[Any] = [Scalar(one), one, np.int64(one)]
    strangers: list[Any] = [float(other), str(other), None]
    cohort.accept(alike[0], [1.0])
    for again in alike:
        with pytest.raises(ParameterError, match="has not answered"):
            cohort.accept(again, [1.0])
    for stranger in strangers:
        with pytest.raises(ParameterError, match="was drawn"):
            cohort.accept(stranger, [1.0])
    assert cohort.answered == (one,)
    assert (cohort.release() * 2).round(3).tolist() == [1.0]


def test_a_round_counts_when_it_is_drawn_and_there_are_no_more_than_planned() -> None:
    plan = planned()
    run = ClientRounds(plan, size=1, norm=1.0)
    assert hs.epsilon(run.released, 1e-6).upper == 0
    for done in range(1, 4):
        run.draw()
        assert run.counted == done
        assert run.released.rounds == done
    assert run.released == plan
    with pytest.raises(IncompatibleError, match="3 rounds have begun"):
        run.draw()


def test_by_coins_any_number_of_clients_may_be_there() -> None:
    """Each is drawn with the plan's rate, whatever their number, and the divisor is the plan's."""
    run = ClientRounds(planned(rounds=900), size=1, norm=1.0, bits=seeded(4))
    assert run.draw(0).clients == ()
    counts = np.bincount(np.concatenate([run.draw(9).clients for _ in range(899)]).astype(int))
    assert len(counts) == 9
    assert np.abs(counts / 899 - 1 / 3).max() < 4.5 * math.sqrt(2 / 9 / 899)


def test_sets_of_one_size_are_of_the_plans_clients_and_nothing_is_counted_for_others() -> None:
    for plan in (planned("fixed-size", adjacency="add-remove"), planned("revealed")):
        run = ClientRounds(plan, size=1, norm=1.0)
        with pytest.raises(ParameterError, match="clients must be the plan's number, 6"):
            run.draw(7)
        assert run.counted == 0


def test_the_size_is_said_once_by_the_run_or_by_each_round() -> None:
    run = ClientRounds(planned(clients_per_round=6), None, norm=1.0)
    with pytest.raises(ParameterError, match="size"):
        run.draw()
    assert run.counted == 0
    for size in (2, 5):
        cohort = run.draw(size=size)
        with pytest.raises(ParameterError, match=f"a row of {size} finite numbers"):
            cohort.accept(0, np.zeros(size + 1))
        assert cohort.release().shape == (size,)
    with pytest.raises(ParameterError, match="size must be that of the run, 3"):
        ClientRounds(planned(), 3, norm=1.0).draw(size=4)


GAUSSIAN: Any = hs.Gaussian(1.0)
SETTINGS: list[tuple[Any, str]] = [
    (lambda: ClientRounds(planned(), size=1, norm=0.0), "norm"),
    (lambda: ClientRounds(planned(noise_multiplier=math.inf), 1, 1.0), "noise_multiplier"),
    (lambda: ClientRounds(GAUSSIAN, size=1, norm=1.0), "plan"),
    (lambda: ClientRounds(planned(), size=0, norm=1.0), "size"),
    (lambda: ClientRounds(planned(), size=1, norm=1.0, noise_at="nobody"), "noise_at"),
    (lambda: draw_clients(GAUSSIAN), "plan"),
]


@pytest.mark.parametrize(("ask", "name"), SETTINGS)
def test_bad_settings_are_told(ask: Any, name: str) -> None:
    with pytest.raises(ParameterError, match=f"^{name} must be"):
        ask()
