"""Names that others use lead to the public one."""

import re
from collections.abc import Callable
from typing import Any

import pytest

import hockeystick as hs
from hockeystick._synonyms import SYNONYMS, meant
from hockeystick.io import parse_plan
from hockeystick.io.vocabulary import ENCODERS, RELEASES

# As type checkers refuse these calls themselves.
ANYTHING: Any = hs


def test_a_synonym_is_no_public_name_and_stands_for_one() -> None:
    public = {name.lower() for name in RELEASES}
    of_encoders = {f"Encoder.{kind}" for kind in ENCODERS}
    assert set(SYNONYMS.values()) <= {*RELEASES, "FDP"} | of_encoders
    assert not public & SYNONYMS.keys()


@pytest.mark.parametrize(
    ("name", "here"),
    [
        ("GaussianMechanism", "Gaussian"),
        ("LaplaceMechanism", "Laplace"),
        ("DiscreteGaussianMechanism", "DiscreteGaussian"),
        ("kRR", "RandomizedResponse"),
        ("RR", "RandomizedResponse"),
        ("SubsampledGaussian", "PoissonSubsampled"),
        ("DPFedAvg", "federated.FedSDP"),
        ("DPFTRL", "mechanisms.TreeAggregation"),
        ("zCDP", "ZCDP"),
        ("EpsilonDelta", "ApproxDP"),
        ("RDP", "RenyiDP"),
        ("Renyi", "RenyiDP"),
        ("epsilom", "epsilon"),
        ("Skelam", "mechanisms.Skellam"),
    ],
)
def test_the_usual_names_of_the_field_are_found_in_the_package(name: str, here: str) -> None:
    with pytest.raises(AttributeError) as error:
        getattr(hs, name)
    said = f"module 'hockeystick' has no attribute {name!r} (did you mean hockeystick.{here}?)"
    assert str(error.value) == said
    place, _, last = here.rpartition(".")
    assert hasattr(getattr(hs, place) if place else hs, last)


def test_they_are_found_in_calls_and_rooms() -> None:
    for text, here in (("DP_FedAvg(1)", "FedSDP"), ("RDP({2: 1})", "RenyiDP")):
        with pytest.raises(hs.errors.PlanFileError, match=f"did you mean '{here}'"):
            parse_plan(text)
    with pytest.raises(AttributeError, match=r"did you mean hockeystick.mechanisms.FedSDP\?"):
        getattr(hs.mechanisms, "FedAvg")  # noqa: B009
    assert meant("DP-FTRL", RELEASES) == "TreeAggregation"
    assert meant("zebra", RELEASES) is None
    assert meant("banded", ("banded_inverse", "square_root", "tree")) == "square_root"


def test_parameters_are_found_by_the_names_that_others_have_for_them() -> None:
    for text, said in (
        ("DPSGD(num_examples=9)", r"unknown parameter 'num_examples' .*did you mean 'examples'"),
        ("PoissonSubsampled(Gaussian(1), sampling_probability=1)", "did you mean 'rate'"),
        ("DiscreteLaplace(parameter=0.1)", "scale = 1 / parameter, so 1 / 0.1"),
        ("TreeAggregation(10, 1000, max_participations=4)", r"mechanisms\.Encoder\.tree\(leaves"),
        ("FedSDP(rate=0.01)", "the rate is clients_per_round / total_clients"),
        ("MatrixFactorization(4, Encoder.square_root(99, bandwidth=3))", "did you mean 'bands'"),
        ("TreeAggregation(10, rounds=1000)", "did you mean 'leaves'"),
        ("TreeAggregation(10, 1000, epochs=4)", r"\*\* is for trees that begin anew"),
    ):
        with pytest.raises(hs.errors.PlanFileError, match=said):
            parse_plan(text)
    with pytest.raises(hs.errors.ParameterError, match="did you mean 'examples'"):
        hs.calibrate(hs.DPSGD, "epochs", hs.ApproxDP(1, 1e-5), n=60_000)


def test_without_replacement_is_never_taken_for_with_it() -> None:
    samplings = ["fixed-size", "with-replacement", "poisson"]
    for name in ("without_replacement", "WithoutReplacement", "sample w/o replacement", "withoutt"):
        assert meant(name, samplings) != "with-replacement"
        assert meant(name, RELEASES) != "WithReplacementSubsampled"
    assert meant("WithoutReplacement", RELEASES) == "FixedSizeSubsampled"
    assert meant("with-replacment", samplings) == "with-replacement"


def test_names_of_other_libraries_lead_to_the_call_that_does_the_same() -> None:
    package, accountant = hs, hs.Accountant()
    for where, name, said in (
        (package, "compute_dp_sgd_privacy", r"; use hockeystick\.epsilon\(.*DPSGD\("),
        (package, "apply_dp_sgd_analysis", r"; use hockeystick\.epsilon\(.*DPSGD\("),
        (package, "compute_noise", r"; use hockeystick\.calibrate\("),
        (package, "GaussianSumQuery", r"; use hockeystick\.Gaussian\(noise_multiplier=stddev / l2"),
        (package, "calibrate_dp_mechanism", r"; use hockeystick\.calibrate\("),
        (package, "PLDAccountant", r"or in a loop hockeystick\.Accountant\(\)"),
        (package, "PrivacyLossDistribution", r"discrete_tradeoff\(p, q\)\) for .*from_pld\(pld\)$"),
        (package, "NoOpDpEvent", r"; use mechanism \*\* 0, which releases nothing$"),
        (package, "from_dp_event", r"; use hockeystick\.adapters\.dp_accounting\.from_event\("),
        (package, "GaussianDpEvent", r"hockeystick\.Gaussian\? An event itself .*\.from_event\("),
        (package, "NeighboringRelation", r"; use adjacency='add-remove', .* or 'zero-out'"),
        (
            package,
            "PrivacyEngine",
            r"; use hockeystick\.adapters\.opacus\.PrivacyEngine\(\) in place",
        ),
        (hs.accountants, "RDPAccountant", r"; use hockeystick\.epsilon\(plan, delta\), or in a lo"),
        (hs.accountants, "PRVAccountant", r"or in a loop hockeystick\.Accountant\(\)$"),
        (hs.accountants, "epsilo", r"\(did you mean hockeystick\.accountants\.epsilon\?\)"),
        (package, "group", r"; use plan\.for_group\(size\)"),
        (hs.privacy_loss, "from_two_probability_mass_functions", r"discrete_tradeoff\(p, q\)"),
        (hs.adapters, "tensorflow", r"; it has dp_accounting, flower, loop, opacus"),
        (hs.notions, "zCDP", r"did you mean hockeystick\.notions\.ZCDP"),
        (hs.notions, "Gausian", r"did you mean hockeystick\.Gaussian"),
        (hs.mechanisms, "PureDp", r"did you mean hockeystick\.PureDP"),
        (accountant, "compose", r"; use step\(mechanism, count\)"),
        (accountant, "get_epsilon", r"; use epsilon\(delta\)"),
    ):
        with pytest.raises(AttributeError, match=said):
            getattr(where, name)
    with pytest.raises(TypeError, match=r"epsilon\(delta, accountant='rdp'\)"):
        ANYTHING.Accountant(orders=[2, 4])
    accountant.step(hs.Gaussian(5), 3)
    assert accountant.plan == hs.Gaussian(5) ** 3


def test_accountants_notions_and_neighbours_are_found_however_they_are_written() -> None:
    plan = hs.Gaussian(2)
    assert hs.epsilon(plan, 1e-5, accountant="Closed_Form").accountant == "closed-form"
    assert hs.convert(plan, "zCDP") == hs.convert(plan, hs.ZCDP)
    assert hs.convert(plan, "RDP", orders=2) == hs.convert(plan, hs.RenyiDP, orders=2)
    with pytest.raises(hs.errors.ParameterError, match=r"got 'pld' \(did you mean 'prv'\?\)"):
        hs.epsilon(plan, 1e-5, accountant="pld")
    with pytest.raises(hs.errors.ParameterError, match=r"\(did you mean 'replace-one'\?\)"):
        hs.PoissonSubsampled(plan, 0.1, adjacency="replace_one")


def test_a_text_with_times_or_plus_says_how_to_repeat_and_compose() -> None:
    for text, said in (
        ("DiscreteGaussian(2.5)*7", r"repeat a mechanism with \*\*"),
        ("Gaussian(1) + Gaussian(2)", "compose with @"),
        ("[Gaussian(1), Gaussian(2)]", "compose with @"),
    ):
        with pytest.raises(hs.errors.PlanFileError, match=said):
            parse_plan(text)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (lambda: ANYTHING.epsilon(ANYTHING.Gaussian(1), 1e-5, group=4), "plan.for_group(4)"),
        (
            lambda: ANYTHING.epsilon(ANYTHING.Gaussian(1), target_delta=1e-5),
            "did you mean 'delta'?",
        ),
        (lambda: ANYTHING.DPSGD(target_epsilon=2), "ApproxDP(2, delta)"),
        (lambda: ANYTHING.RandomizedResponse(probability=0.75), "math.log(0.75 / (1 - 0.75))"),
        (
            lambda: ANYTHING.Parallel(
                ANYTHING.Gaussian(1), ANYTHING.Gaussian(2), ANYTHING.Gaussian(3)
            ),
            "'region')",
        ),
        (lambda: ANYTHING.FDP([0.5, 0.5], [0.3, 0.7]), "discrete_tradeoff(p, q)"),
        (lambda: ANYTHING.rdp(ANYTHING.Gaussian(1)), "orders=[2, 4, 8]) for the divergences"),
        (lambda: ANYTHING.RenyiDP([2, 4]), "are convert(plan, RenyiDP, orders="),
        (lambda: ANYTHING.Gaussian(1).get_epsilon(1e-5), "; use hockeystick.epsilon(plan, delta)"),
        (lambda: ANYTHING.Gaussian(1).self_compose(3), "; use plan ** count"),
        (lambda: ANYTHING.Gaussian(1).rho, "; use hockeystick.convert(plan, hockeystick.ZCDP).rho"),
        (lambda: ANYTHING.Laplace(1).mu, "; use hockeystick.convert(plan, hockeystick.GDP).mu"),
        (lambda: ANYTHING.GDP(1).tau, "; use hockeystick.convert(plan, hockeystick.RenyiDP, ord"),
        (lambda: ANYTHING.Gaussian(1).epsilon, "; use hockeystick.epsilon(plan, delta)"),
        (lambda: ANYTHING.Gaussian(1).delta, "; use hockeystick.delta(plan, epsilon)"),
        (lambda: ANYTHING.Gaussian(1).compose(3), "; use a @ b"),
        (lambda: ANYTHING.Adjacency("ADD_OR_REMOVE_ONE"), "did you mean 'add-remove'?"),
        (lambda: ANYTHING.DPSGD(neighboring_relation=1), 'adjacency="add-remove"'),
        (lambda: ANYTHING.Accountant(neighboring_relation=1), "as in DPSGD(adjacency=...)"),
        (lambda: ANYTHING.Accountant(accountant="rdp"), "epsilon(delta, accountant='rdp')"),
        (lambda: ANYTHING.Accountant("rdp"), "write Accountant(), then"),
        (lambda: ANYTHING.tradeoff(ANYTHING.Gaussian(1), 0.05), "write tradeoff(plan)(alpha)"),
        (lambda: ANYTHING.tradeoff(ANYTHING.Gaussian(1), alpha=0.05), "tradeoff(plan)(0.05)"),
        (
            lambda: ANYTHING.calibrate(ANYTHING.DPSGD, "noise_multiplier", 2, 1e-5),
            "ApproxDP(epsilon=2, delta=1e-5)): the target is one guarantee",
        ),
        (
            lambda: ANYTHING.calibrate(ANYTHING.Gaussian, "noise_multiplier", 2),
            "ApproxDP(2, delta=1e-5)",
        ),
        (lambda: ANYTHING.solve(1), "; use hockeystick.calibrate("),
        (
            lambda: ANYTHING.conversions.lower_ends(ANYTHING.Gaussian(1), ANYTHING.ZCDP),
            "such as convert(x, hs.ZCDP)",
        ),
        (lambda: ANYTHING.mechanisms.ShuffledReports(3, 9), "such as RandomizedResponse("),
        (lambda: ANYTHING.Shuffle(3), "ShuffledReports(randomizer, users)"),
        (
            lambda: ANYTHING.release.discrete_laplace(3),
            "did you mean hockeystick.release.geometric",
        ),
        (lambda: ANYTHING.release.discrete_gaussian(3, sigma=2), "DiscreteGaussian(sigma=2)"),
        (lambda: ANYTHING.release.laplace(3, 1), "laplace(Laplace(scale), value, sensitivity"),
        (lambda: ANYTHING.Ledger(budget=0.5), "write Ledger('ledger.db', 'census', budget="),
        (lambda: ANYTHING.calibration.Filter(0.5), "write ZCDP(rho=0.5)"),
        (lambda: ANYTHING.calibration.Filter("ZCDP(0.5)"), "without quotes"),
        (lambda: ANYTHING.Geometric(0.1), "DiscreteLaplace(scale=sensitivity / epsilon)"),
        (lambda: ANYTHING.Geometric(0.1), "alpha is DiscreteLaplace(-1 / ln(alpha))"),
        # Two numbers that one has the place of: either alone would be another mechanism.
        (
            lambda: ANYTHING.Gaussian(sigma=5, sensitivity=1.5),
            "is the standard deviation over the sensitivity, so 5 / 1.5)",
        ),
        (lambda: ANYTHING.Gaussian(sensitivity=1.5, std=5), "sensitivity, so 5 / 1.5)"),
        (lambda: ANYTHING.Gaussian(sigma=5), "sigma over the sensitivity, so 5 at sensitivity 1)"),
        (lambda: ANYTHING.Laplace(scale=5, sensitivity=1.5), "the sensitivity, so 5 / 1.5)"),
        (
            lambda: ANYTHING.mechanisms.DiscreteLaplace(epsilon=0.5, sensitivity=2),
            "scale = sensitivity / epsilon, so 2 / 0.5)",
        ),
        (lambda: ANYTHING.mechanisms.MixtureOfGaussians, "GaussianMixture"),
        (
            lambda: ANYTHING.epsilon(ANYTHING.Gaussian(1), 1e-5).get_epsilon(1e-6),
            "float(answer); at another delta, hockeystick.epsilon(plan, delta)",
        ),
        (
            lambda: ANYTHING.delta(ANYTHING.Gaussian(1), 1).get_delta(2),
            "float(answer); at another epsilon, hockeystick.delta(plan, epsilon)",
        ),
        (
            lambda: ANYTHING.epsilon(ANYTHING.Gaussian(1), 1e-5).epsilon,
            "its number is answer.upper",
        ),
    ],
)
def test_what_newcomers_write_is_told_what_to_write(wrong: Callable[[], Any], said: str) -> None:
    with pytest.raises((TypeError, AttributeError, ValueError), match=re.escape(said)):
        wrong()
