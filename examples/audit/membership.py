"""Membership inference against trainings without privacy and with a series of noises, on digits.

    pip install 'hockeystick[plot]' scikit-learn
    python examples/audit/membership.py --figure membership.png

For each noise the adversary trains shadow models, and attacks models that were trained with exact
noise. An attack has scores for all records of all models; the lower bound of epsilon is from one
record of each model alone, a mislabelled one that is fixed beforehand, so that its trials are
independent. Two more attacks see every step, and look for the gradient of a canary.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from click import echo
from trainings import (
    MISLABELLED,
    Recipe,
    Records,
    Trained,
    accuracy,
    digits,
    features,
    losses,
    release,
    simulate,
    without_privacy,
)

import hockeystick as hs
from hockeystick import audit
from hockeystick.audit import attacks

DELTA, CONFIDENCE = 1e-3, 0.95
TRAINING = Recipe(steps=10, learning_rate=6.0, norm=1.0)
NOISES = (1.5, 2.5, 5.0, 10.0, 20.0)
SHADOWS, COPIES = 256, 10
DEVIATIONS = (0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2)


@dataclass(frozen=True)
class Found:
    """What one attack found in the trainings of one setting.

    Args:
        attack: Its name.
        scores_in: Its scores of all pairs of a model and a record that took part.
        scores_out: Those of records that did not.
        trials_in: Scores of one record of each model, where it took part: independent trials.
        trials_out: The same where it did not.
    """

    attack: str
    scores_in: Any
    scores_out: Any
    trials_in: Any
    trials_out: Any

    @property
    def bound(self) -> float:
        """The lower bound of epsilon that the trials prove, at ``DELTA`` and ``CONFIDENCE``."""
        found = audit.lower_epsilon(
            self.trials_in, self.trials_out, delta=DELTA, confidence=CONFIDENCE
        )
        return float(found.value)

    @property
    def estimate(self) -> float:
        """The largest ``ln((TPR - delta)/FPR)`` of the same trials: an estimate, and no bound.

        With delta 0 it is equation (4.4) of the thesis that introduces noisy neighbours.
        """
        curve = attacks.roc(self.trials_in, self.trials_out)
        some = (curve.fpr > 0) & (curve.tpr > DELTA)
        return float(np.log((curve.tpr[some] - DELTA) / curve.fpr[some]).max())


@dataclass(frozen=True)
class Attacked:
    """The attacks on one setting, and what was proven of it.

    Args:
        noise: The noise multiplier; None without privacy.
        certified: The proven upper end of epsilon at ``DELTA``; inf without privacy.
        curve: The proven trade-off function; None without privacy.
        accuracy: The share of test digits that the models read rightly.
        found: What each attack found.
        scan: The AUC of noisy neighbours at each of ``DEVIATIONS``, on shadow models.
    """

    noise: float | None
    certified: float
    curve: hs.tradeoffs.TradeOff | None
    accuracy: float
    found: tuple[Found, ...]
    scan: Any


def attack(recipe: Recipe, records: Records, targets: int, seed: int) -> Attacked:
    """Return what all attacks find in trainings by one recipe."""
    private = recipe.norm is not None
    shadow = simulate(recipe, records, SHADOWS, seed)
    train = release if private else simulate
    target = train(recipe, records, targets, seed + 1)
    scan = neighbour_scan(shadow, records)
    found = [
        _split(name, scores, target.included)
        for name, scores in membership_scores(shadow, target, records, scan)
    ]
    if private:
        found += canary_attacks(recipe, target)
    plan = recipe.plan
    return Attacked(
        recipe.noise_multiplier if private else None,
        hs.epsilon(plan, DELTA).upper if private else np.inf,
        hs.tradeoff(plan) if private else None,
        accuracy(target.weights[:50], records),
        tuple(found),
        scan,
    )


def membership_scores(
    shadow: Trained, target: Trained, records: Records, scan: Any
) -> Iterator[tuple[str, Any]]:
    """Yield the attacks on the last weights: each record's score by each target model."""
    at = losses(target.weights, records.pixels, records.labels)
    yield "loss threshold", attacks.loss_scores(at)
    known, seen = (gaps(one, records) for one in (shadow, target))
    yield "LiRA, online", attacks.lira_online(seen, known, shadow.included)
    yield "LiRA, offline", attacks.lira_offline(seen, known, shadow.included)
    near = neighbour_losses(target, records, DEVIATIONS[int(np.argmax(scan))])
    yield "noisy neighbours", attacks.neighbour_scores(at, near)


def gaps(trained: Trained, records: Records) -> Any:
    """Return the logits' gap of each record by each model."""
    return attacks.logit_gaps(features(records.pixels) @ trained.weights, records.labels)


def neighbour_losses(trained: Trained, records: Records, deviation: float) -> Any:
    """Return the losses near each record, shape (copies, models, records)."""
    near = attacks.noisy_neighbours(records.pixels, deviation, copies=COPIES, seed=0)
    return np.stack([losses(trained.weights, one, records.labels) for one in near])


def neighbour_scan(shadow: Trained, records: Records) -> Any:
    """Return the AUC of each noise level on some of the adversary's own models."""
    few = Trained(shadow.weights[:16], shadow.included[:16], None, None)
    at = losses(few.weights, records.pixels, records.labels)
    near = np.stack([neighbour_losses(few, records, one) for one in DEVIATIONS])
    flat = near.reshape(*near.shape[:2], at.size)
    return attacks.deviation_scan(at.ravel(), flat, few.included.ravel())


def canary_attacks(recipe: Recipe, target: Trained) -> list[Found]:
    """Return the attacks that see every step: the best test for each canary's gradient."""
    scores = attacks.canary_scores(target.projections, noise_multiplier=recipe.noise_multiplier)
    names = ("canary, one weight", "canary, random direction")
    return [
        Found(name, one[taken], one[~taken], one[taken], one[~taken])
        for name, one, taken in zip(names, scores.T, target.canaries.T, strict=True)
    ]


def _split(name: str, scores: Any, included: Any) -> Found:
    """Return an attack's scores by truth: all, and those of one mislabelled record per model."""
    models = np.arange(len(scores))
    one = models % MISLABELLED
    trial, truth = scores[models, one], included[models, one]
    return Found(name, scores[included], scores[~included], trial[truth], trial[~truth])


def table(attacked: Attacked) -> Iterator[str]:
    """Yield the lines that tell of one setting."""
    noise = "without privacy" if attacked.noise is None else f"noise multiplier {attacked.noise:g}"
    yield f"{noise}: epsilon {attacked.certified:.4g} certified at delta {DELTA:g}; accuracy " + (
        f"{attacked.accuracy:.3f}"
    )
    header = ("AUC", "TPR at 1e-2", "at 1e-3", "epsilon >=", "estimate")
    yield f"  {'':<26}" + "".join(f"{name:>13}" for name in header)
    for one in attacked.found:
        pair = one.scores_in, one.scores_out
        rates = [attacks.auc(*pair), *(attacks.tpr_at(*pair, fpr=rate) for rate in (1e-2, 1e-3))]
        told = [*rates, one.bound, one.estimate]
        yield f"  {one.attack:<26}" + "".join(f"{value:>13.3f}" for value in told)
    if attacked.curve is not None:
        names = ", ".join(refuting(attacked, attacked.curve))
        yield f"  the account is refuted by: {names or 'none'}"
    peak = DEVIATIONS[int(np.argmax(attacked.scan))]
    aucs = ", ".join(f"{value:.3f}" for value in attacked.scan)
    yield f"  noisy neighbours' AUC on shadow models: {aucs}; largest at {peak:g}"


def refuting(attacked: Attacked, claimed: hs.Mechanism | hs.tradeoffs.TradeOff) -> list[str]:
    """Return the attacks whose trials contradict a claim, each at ``CONFIDENCE``."""
    return [
        one.attack
        for one in attacked.found
        if isinstance(
            audit.falsify(claimed, one.trials_in, one.trials_out, confidence=CONFIDENCE),
            audit.Refuted,
        )
    ]


def run(noises: tuple[float, ...], targets: int, seed: int) -> list[Attacked]:
    """Attack trainings without privacy and with each noise."""
    records = digits(seed)
    recipes = [without_privacy(TRAINING)]
    recipes += [
        Recipe(TRAINING.steps, TRAINING.learning_rate, TRAINING.norm, noise) for noise in noises
    ]
    return [attack(one, records, targets, seed + 10 * place) for place, one in enumerate(recipes)]


def main() -> None:
    """Print a table for each noise, and draw what was found beside what was proven."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--targets", type=int, default=400, help="models attacked at each noise")
    parser.add_argument("--seed", type=int, default=0, help="of data, coins and noise")
    parser.add_argument("--figure", help="a file to draw to, that ends in .png, .svg or .pdf")
    asked = parser.parse_args()
    found = run(NOISES, asked.targets, asked.seed)
    for one in found:
        for line in table(one):
            echo(line)
    if asked.figure:
        from pictures import draw_membership

        draw_membership(found, asked.figure)


if __name__ == "__main__":
    main()
