"""Digits rebuilt from gradients, before and after clipping, noise, and noise that falls.

    pip install 'hockeystick[torch,plot]' scikit-learn
    python examples/audit/leakage.py --folder .

Wei, Liu, Zhou, Chow and Wu, "Securing Distributed SGD against Gradient Leakage Threats", 2023,
section 3: the server reads a client's update (type 0), somebody at the client reads it before it is
sent (type 1), or reads the gradient of a single record in a local step (type 2). The attack looks
for pixels whose gradient is nearest to what was read; it knows model, labels and clipping norm.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from click import echo
from scipy.optimize import minimize

import hockeystick as hs
from hockeystick.audit import attacks

PIXELS, HIDDEN, CLASSES = 64, 32, 10
NORM, LOCAL_STEPS, LEARNING_RATE = 1.0, 2, 0.5
ITERATIONS = 300  # as in the paper
DELTA = 1e-4
NOISES = (0.0, 0.001, 0.01, 0.03, 0.1, 0.3, 1.0)
# With so little noise pictures show something: far less than a plan would have.
FAINT, DIM = 0.01, 0.05
CANDIDATES = 100
ROUNDS, SHOWN_ROUNDS = 25, (0, 6, 12, 18, 24)
CONSTANT = 0.5
END = 4.85 / 15.0  # how far the paper's noise falls
SCHEDULES: Mapping[str, Any] = {
    "constant": None,
    "linear": hs.schedules.Linear(END),
    "staircase": hs.schedules.Staircase(END, stairs=5),
    "exponential": hs.schedules.Exponential(END),
    "cyclic": hs.schedules.Cyclic(floor=END, cycles=2),
}


@dataclass(frozen=True)
class Batch:
    """A client's records: pixels in [0, 1], a row for each, and their labels."""

    pixels: Any
    labels: Any

    def alone(self, record: int) -> Batch:
        """Return one of the records."""
        return Batch(self.pixels[record : record + 1], self.labels[record : record + 1])


@cache
def weights() -> Any:
    """Return the global model's parameters in one row: one hidden layer, drawn at random."""
    random = np.random.default_rng(3)
    parts = [
        random.standard_normal(HIDDEN * PIXELS) / np.sqrt(PIXELS),
        np.zeros(HIDDEN),
        random.standard_normal(CLASSES * HIDDEN) / np.sqrt(HIDDEN),
        np.zeros(CLASSES),
    ]
    return torch.as_tensor(np.concatenate(parts))


def losses(parameters: Any, pixels: Any, labels: Any) -> Any:
    """Return each record's cross-entropy."""
    sizes = (HIDDEN * PIXELS, HIDDEN, CLASSES * HIDDEN, CLASSES)
    first, first_bias, second, second_bias = parameters.split(sizes)
    hidden = torch.sigmoid(4 * (pixels @ first.view(HIDDEN, PIXELS).T + first_bias))
    logits = hidden @ second.view(CLASSES, HIDDEN).T + second_bias
    return torch.nn.functional.cross_entropy(logits, labels, reduction="none")


def gradients(parameters: Any, pixels: Any, labels: Any) -> Any:
    """Return each record's gradient, a row for each, which can be differentiated by the pixels."""
    one = torch.func.grad(lambda own, row, label: losses(own, row[None], label[None])[0])
    return torch.func.vmap(one, in_dims=(None, 0, 0))(parameters, pixels, labels)


def clipped(rows: Any) -> Any:
    """Return rows of length at most ``NORM``."""
    lengths = rows.norm(dim=-1, keepdim=True)
    return rows * (NORM / lengths.clamp_min(NORM))


@dataclass(frozen=True)
class System:
    """What a client's training releases, and where its noise is added.

    Args:
        name: Its name.
        noise: The noise multiplier.
        clips_steps: Whether each record's gradient is clipped and each step noised (Fed-CDP).
        clips_update: Whether the update is clipped and noised (Fed-SDP).
        noised_at_client: For Fed-SDP, whether the client does that, or the server.
    """

    name: str
    noise: float = 0.0
    clips_steps: bool = False
    clips_update: bool = False
    noised_at_client: bool = False

    def gradient(self, pixels: Any, labels: Any) -> Any:
        """Return the gradient of one record as a local step takes it, before noise: type 2."""
        (found,) = gradients(weights(), pixels, labels)
        return clipped(found) if self.clips_steps else found

    def update(self, pixels: Any, labels: Any, random: Any = None) -> Any:
        """Return what local training sends, before noise on the update, which types 0 and 1 read.

        Noise of local steps is added where a generator is given.
        """
        start = parameters = weights()
        for _ in range(LOCAL_STEPS):
            rows = gradients(parameters, pixels, labels)
            if self.clips_steps:
                rows = clipped(rows)
            total = rows.sum(dim=0)
            if self.clips_steps and random is not None:
                total = total + _noise(random, self.noise)
            parameters = parameters - LEARNING_RATE / len(labels) * total
        return start - parameters

    def seen(self, kind: int, batch: Batch, random: Any) -> tuple[Callable[..., Any], Any]:
        """Return what an attacker of a type models without noise, and what it really reads."""
        pixels, labels = torch.as_tensor(batch.pixels), torch.as_tensor(batch.labels)
        if kind == 2:
            noise = self.noise if self.clips_steps else 0.0
            return self.gradient, self.gradient(pixels, labels) + _noise(random, noise)
        found = self.update(pixels, labels, random)
        if not self.clips_update or (kind == 1 and not self.noised_at_client):
            return self.update, found
        return self._clipped_update, clipped(found) + _noise(random, self.noise)

    def _clipped_update(self, pixels: Any, labels: Any) -> Any:
        """Return the update as Fed-SDP clips it."""
        return clipped(self.update(pixels, labels))


def _noise(random: Any, noise_multiplier: float) -> Any:
    """Return noise on a vector of length at most ``NORM``."""
    return torch.as_tensor(NORM * noise_multiplier * random.standard_normal(len(weights())))


def systems(noise: float) -> list[System]:
    """Return training without privacy, and the three systems that the paper compares."""
    return [
        System("without privacy"),
        System("Fed-SDP, server", noise, clips_update=True),
        System("Fed-SDP, client", noise, clips_update=True, noised_at_client=True),
        System("Fed-CDP", noise, clips_steps=True),
    ]


def rebuilt(model: Callable[..., Any], observed: Any, labels: Any, seed: int = 0) -> Any:
    """Return pixels in [0, 1] whose gradient or update is nearest to what was read, by L-BFGS."""
    known = torch.as_tensor(labels)
    scale = float(observed.square().sum())

    def distance(flat: Any) -> tuple[float, Any]:
        pixels = torch.tensor(flat.reshape(-1, PIXELS), requires_grad=True)
        apart = (model(pixels, known) - observed).square().sum() / scale
        (slope,) = torch.autograd.grad(apart, pixels)
        return float(apart.detach()), slope.numpy().ravel()

    start = np.random.default_rng(seed).uniform(0.2, 0.4, len(labels) * PIXELS)
    options = {"maxiter": ITERATIONS, "ftol": 1e-15, "gtol": 1e-12}
    limits = [(0.0, 1.0)] * len(start)
    done = minimize(distance, start, jac=True, method="L-BFGS-B", bounds=limits, options=options)
    return done.x.reshape(-1, PIXELS)


def first_layer(gradient: Any) -> Any:
    """Return the input that the first layer's part of a gradient gives away."""
    parts = gradient[: HIDDEN * PIXELS].reshape(HIDDEN, PIXELS)
    return attacks.first_layer_input(parts, gradient[HIDDEN * PIXELS :][:HIDDEN])


def rmse(found: Any, truth: Any) -> float:
    """Return the root of the mean square of the pixels' errors."""
    return float(np.sqrt(np.mean((np.clip(found, 0, 1) - truth) ** 2)))


def digits(count: int, seed: int = 0) -> Batch:
    """Return digits, the first ten of ten classes."""
    from sklearn.datasets import load_digits

    images, labels = load_digits(return_X_y=True)
    order = np.random.default_rng(seed).permutation(len(images))
    firsts = [next(place for place in order if labels[place] == one) for one in range(CLASSES)]
    chosen = [*firsts, *(place for place in order if place not in firsts)][:count]
    return Batch(images[chosen] / 16, labels[chosen])


def of_types(noise: float, seed: int = 0) -> dict[str, list[tuple[Any, float]]]:
    """Return for each system the pictures and errors of types 0, 1 and 2, of three records."""
    batch, found = digits(3), {}
    for system in systems(noise):
        pictures = []
        for kind in (0, 1):
            model, seen = system.seen(kind, batch, np.random.default_rng(seed))
            pictures.append(rebuilt(model, seen, batch.labels))
        alone = []
        for record in range(3):
            own = batch.alone(record)
            model, seen = system.seen(2, own, np.random.default_rng(seed + record))
            alone.append(rebuilt(model, seen, own.labels))
        pictures.append(np.concatenate(alone))
        found[system.name] = [(one, rmse(one, batch.pixels)) for one in pictures]
    return found


def of_noises(record: int = 3, seed: int = 0) -> list[tuple[float, Any, Any]]:
    """Return for each noise the picture from one gradient, by search and off the first layer."""
    batch, found = digits(CLASSES).alone(record), []
    for noise in NOISES:
        system = System("Fed-CDP", noise, clips_steps=True)
        model, seen = system.seen(2, batch, np.random.default_rng(seed))
        found.append((noise, rebuilt(model, seen, batch.labels)[0], first_layer(seen.numpy())))
    return found


@cache
def candidates() -> Any:
    """Return the clipped gradients of all candidates, in coordinates of the space they span.

    Noise at right angles to all of them tells nothing of which it was.
    """
    batch = digits(CANDIDATES)
    rows = gradients(weights(), torch.as_tensor(batch.pixels), torch.as_tensor(batch.labels))
    return np.linalg.qr(clipped(rows).numpy().T, mode="r").T


def named(noise: float, seed: int = 0, repeats: int = 50) -> float:
    """Return how often the record of one noisy gradient is named among all candidates."""
    random, known = np.random.default_rng(seed), candidates()
    truth = np.tile(np.arange(CANDIDATES), repeats)
    seen = known[truth] + noise * NORM * random.standard_normal((len(truth), CANDIDATES))
    return float((attacks.nearest_candidate(seen, known) == truth).mean())


def most_named(noise: float) -> float:
    """Return the proven most: ``1 - f(1/N)``, f the certified trade-off function of a gradient."""
    f = hs.tradeoff(hs.Gaussian(noise)) if noise > 0 else None
    return 1.0 if f is None else float(f.power(1 / CANDIDATES))


def decays(constant: float) -> dict[str, Any]:
    """Return the noise multiplier of each round, by schedules that cost the same altogether."""
    found = {}
    for name, schedule in SCHEDULES.items():
        factors = np.ones(ROUNDS) if schedule is None else np.asarray(schedule.factors(ROUNDS))
        found[name] = constant * factors * np.sqrt(np.mean(factors**-2.0))
    return found


def rounds_named() -> dict[str, tuple[Any, Any]]:
    """Return for each schedule how often each round names the record, and the proven most."""
    return {
        name: (
            np.array([named(float(noise), seed=index) for index, noise in enumerate(noises)]),
            np.array([most_named(float(noise)) for noise in noises]),
        )
        for name, noises in decays(CONSTANT).items()
    }


def of_decays(seed: int = 0) -> dict[str, list[tuple[float, Any]]]:
    """Return for each schedule the noise and the picture of some rounds, at little noise."""
    batch, found = digits(CLASSES).alone(3), {}
    for name, noises in decays(DIM).items():
        pictures = []
        for index in SHOWN_ROUNDS:
            system = System("Fed-CDP", float(noises[index]), clips_steps=True)
            model, seen = system.seen(2, batch, np.random.default_rng(seed + index))
            pictures.append((system.noise, rebuilt(model, seen, batch.labels)[0]))
        found[name] = pictures
    return found


def main() -> None:
    """Print what the attacks rebuild and name, and draw it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--folder", help="where to write leakage-*.png; nothing is drawn without")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    types, faint = of_types(1.0), of_types(FAINT)
    for noise, each in ((1.0, types), (FAINT, faint)):
        echo(f"RMSE of three rebuilt digits, noise multiplier {noise:g} (types 0, 1, 2):")
        for name, told in each.items():
            echo(f"  {name:<18}" + "".join(f"{error:8.3f}" for _, error in told))
    noises = of_noises()
    echo(f"one gradient: noise, epsilon at {DELTA:g}, named of {CANDIDATES}, proven most")
    for noise, _, _ in noises:
        epsilon = hs.epsilon(hs.Gaussian(noise), DELTA).upper
        echo(f"  {noise:<8g}{epsilon:14.4g}{named(noise):10.3f}{most_named(noise):10.3f}")
    echo(f"named of {CANDIDATES} in the first and the last of {ROUNDS} rounds, and proven most:")
    by_round = rounds_named()
    for name, (shares, bounds) in by_round.items():
        releases = hs.mechanisms.GaussianSequence(tuple(decays(CONSTANT)[name]), rate=1.0)
        told = f"{shares[0]:.3f} <= {bounds[0]:.3f}, {shares[-1]:.3f} <= {bounds[-1]:.3f}"
        # With the same gradient in every round, all of them tell what one of this noise does.
        together = named(float(np.sum(decays(CONSTANT)[name] ** -2.0) ** -0.5))
        told += f"; by all rounds together {together:.3f}"
        echo(f"  {name:<12} {told}; epsilon {hs.epsilon(releases, DELTA).upper:.4f}")
    if asked.folder:
        from pictures import draw_decays, draw_noises, draw_types

        folder = Path(asked.folder)
        draw_types(digits(3), types, faint, FAINT, str(folder / "leakage-types.png"))
        draw_noises(digits(CLASSES).alone(3), noises, str(folder / "leakage-noise.png"))
        draw_decays(
            digits(CLASSES).alone(3), of_decays(), by_round, str(folder / "leakage-decays.png")
        )


if __name__ == "__main__":
    main()
