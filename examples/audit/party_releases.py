"""Rounds of many parties, and training loops, as audits run them."""

from __future__ import annotations

from typing import Any

import numpy as np
from audited import Audited, each

import hockeystick as hs
from hockeystick import release
from hockeystick.adapters.loop import Account, Sampler, noisy_sum
from hockeystick.audit import attacks
from hockeystick.mechanisms import GOPA, GossipAveraging, Graph, NoisyIterations, TokenWalk
from hockeystick.release.federated import ClientRounds, ClientTraining, noisy_update, sanitized

LONG = 9.0


def networks() -> list[Audited]:
    """Return rounds without a server: one party's value is at the one end or at the other."""
    gopa = GOPA(1.0, 2.0, Graph.complete(3))
    hub = Graph(4, [(0, 1), (1, 2), (1, 3)])
    gossip = GossipAveraging(1.0, hub, rounds=4, party=2, observers=[0])
    steps = NoisyIterations(1.5, 4, 1, step_size=0.1, smoothness=1)
    walk = TokenWalk(1.5, 4, "ring", distance=2, step_size=0.1, smoothness=1)
    covariance = np.eye(3) + 2.0**2 * (3 * np.eye(3) - 1)
    weights = np.linalg.inv(covariance)[0]

    def published(inside: bool) -> Any:
        found = release.gopa_round(gopa, [float(inside), 0.0, 0.0])
        return weights @ np.array(found.published)

    averaging = np.array([[3, 1, 0, 0], [1, 1, 1, 1], [0, 1, 3, 0], [0, 1, 0, 3]]) / 4
    rows = np.array([np.linalg.matrix_power(averaging, time)[1] for time in range(4)])
    told = np.linalg.pinv(rows @ rows.T) @ rows[:, 2]

    def observed(inside: bool) -> Any:
        found = release.gossip_average(gossip, [0.0, 0.0, float(inside), 0.0])
        return told @ np.array([float(seen[1]) for seen in found.seen])

    def gradient(inside: bool) -> Any:
        return lambda model, who: np.array([(-1.0 if inside else 1.0) if who == 0 else 0.0])

    def last(inside: bool) -> Any:
        return release.noisy_iterations(steps, [0.0], gradient(inside), lipschitz=1, radius=9)[0]

    def handed_on(inside: bool) -> Any:
        found = release.token_walk(
            walk, [0.0], gradient(inside), steps=2, visits=1, lipschitz=1, radius=9
        )
        return found.last[0]

    return [
        Audited("gopa_round", ("gopa_round",), gopa, each(published), 5_000),
        Audited("gossip_average", ("gossip_average",), gossip, each(observed), 5_000),
        Audited("noisy_iterations", ("noisy_iterations",), steps, each(last), 5_000),
        Audited("token_walk", ("token_walk",), walk, each(handed_on), 5_000),
    ]


def federations() -> list[Audited]:
    """Return federated rounds: a client's or a record's contribution is long, or 0."""
    rounds = hs.federated.FedSDP(
        noise_multiplier=0.8, total_clients=4, clients_per_round=2, rounds=2, sampling="poisson"
    )
    local = hs.federated.LocalTraining(
        examples=4, batch_size=2, noise_multiplier=2.0, local_steps=3
    )
    silo = hs.federated.PriFedSync(clients=local, rounds=1)
    open_rounds = hs.federated.FedSDP(
        noise_multiplier=1.0,
        total_clients=2,
        clients_per_round=2,
        rounds=1,
        sampling="revealed",
        adjacency="zero-out",
    )
    clusters = hs.federated.FederatedClustering(1.5, dimension=2, radius=2.0, rounds=1)

    def server(inside: bool) -> Any:
        run, seen = ClientRounds(rounds, size=1, norm=1.0), []
        for _ in range(rounds.rounds):
            cohort = run.draw()
            cohort.accept_all((one, [LONG * (inside and one == 0)]) for one in cohort.clients)
            seen.append(2 * cohort.release()[0])
        return attacks.canary_scores(np.array([seen]), noise_multiplier=0.8, rate=0.5)[0]

    def client(inside: bool) -> Any:
        data = np.zeros((4, 1))
        data[0] = LONG if inside else -LONG
        run = ClientTraining(silo, 4, norm=1.0)
        return run.train(np.zeros(1), lambda model, chosen: -data[chosen], learning_rate=1.0)[0]

    def update(inside: bool) -> Any:
        return noisy_update(open_rounds, [LONG * inside], norm=1.0)[0]

    def parameters(inside: bool) -> Any:
        end = np.array([1.0, 0.0])
        seen = sanitized(clusters, LONG * (end if inside else -end), center=[0.0, 0.0])
        return np.linalg.norm(seen + end) - np.linalg.norm(seen - end)

    return [
        Audited("ClientRounds", ("ClientRounds", "draw_clients"), rounds, each(server), 5_000),
        Audited("ClientTraining", ("ClientTraining",), silo, each(client), 5_000),
        Audited("noisy_update", ("noisy_update",), open_rounds, each(update)),
        Audited("sanitized", ("sanitized",), clusters, each(parameters), 10_000),
    ]


LOOP = hs.DPSGD(examples=8, batch_size=4, steps=3, noise_multiplier=1.0)


def of_steps(seen: Any) -> Any:
    """Return the score of what the steps of a run released of the record."""
    rate, noise = float(LOOP.sampling_rate), LOOP.noise_multiplier
    return attacks.canary_scores(np.array([seen]), noise_multiplier=noise, rate=rate)[0]


def plain_loop(inside: bool) -> Any:
    """Return the score of a run of a loop in numpy."""
    data = np.zeros((8 + inside, 1))
    data[8:] = LONG
    sampler, account, seen = Sampler(LOOP, len(data)), Account(LOOP), []
    for step in range(account.counted, account.limit):
        gradients = data[sampler.draw(step)]
        account.count()
        seen.append(noisy_sum(gradients, norm=1.0, noise_multiplier=LOOP.noise_multiplier)[0])
    return of_steps(seen)


def torch_model(inside: bool) -> tuple[Any, Any, Any]:
    """Return a model of one weight, its optimizer, and data whose gradients are their inputs."""
    import torch

    model = torch.nn.Linear(1, 1, bias=False)
    torch.nn.init.zeros_(model.weight)
    inputs = torch.zeros(8 + inside, 1)
    inputs[8:] = LONG
    data = torch.utils.data.TensorDataset(inputs, torch.zeros(len(inputs)))
    return model, torch.optim.SGD(model.parameters(), lr=1.0), data


def torch_loop(inside: bool) -> Any:
    """Return the score of a run of ``make_private``."""
    from hockeystick.adapters.torch import make_private

    model, optimizer, data = torch_model(inside)
    private, seen = make_private(model, optimizer, data, LOOP), []
    for batch in private.loader:
        before = model.weight.item()
        private.step(lambda outputs, labels: outputs.sum(), batch)
        seen.append(4 * (before - model.weight.item()))
    private.close()
    return of_steps(seen)


def opacus_loop(inside: bool) -> Any:
    """Return the score of a run of Opacus with hockeystick's engine."""
    import torch

    from hockeystick.adapters.opacus import PrivacyEngine

    model, optimizer, data = torch_model(inside)
    model, optimizer, loader = PrivacyEngine().make_private(
        module=model,
        optimizer=optimizer,
        data_loader=torch.utils.data.DataLoader(data, batch_size=4),
        noise_multiplier=LOOP.noise_multiplier,
        max_grad_norm=1.0,
    )
    seen: list[float] = []
    while len(seen) < LOOP.total_steps:
        for inputs, _ in loader:
            optimizer.zero_grad()
            model(inputs).sum().backward()
            before = model._module.weight.item()
            optimizer.step()
            size = optimizer.expected_batch_size  # Opacus divides by it
            seen.append(size * (before - model._module.weight.item()))
    return of_steps(seen[: LOOP.total_steps])


def loops() -> list[Audited]:
    """Return training loops: a record with a long gradient takes part, or does not."""
    return [
        Audited("a loop in numpy", ("adapters.loop",), LOOP, each(plain_loop), 5_000),
        Audited("make_private", ("adapters.torch",), LOOP, each(torch_loop), 2_000),
        Audited("Opacus, our engine", ("adapters.opacus",), LOOP, each(opacus_loop), 2_000),
    ]
