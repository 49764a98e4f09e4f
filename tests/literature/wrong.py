"""One changed parameter for each statement, or two: it makes a true one false, a false one true.

By the claim's id, or by what the ids of a table's rows begin with: which way is changed, and how.
"""

from typing import Any, Final

Change = dict[str, dict[str, Any]]


def _own(**parameters: Any) -> Change:
    return {"own": parameters}


def _truth(**parameters: Any) -> Change:
    return {"certified": parameters}


CHANGES: Final[dict[str, Change]] = {
    "federated-f-dp/lemma-3.8": _truth(client_rate=0.2),
    "federated-f-dp/theorem-1": _truth(rounds=1),
    "federated-f-dp/theorem-1-strong": _truth(rounds=50),
    "federated-f-dp/theorem-2/bound": _truth(batch_size=20),
    "federated-f-dp/theorem-2/convergence": _truth(examples=200),
    "federated-f-dp/theorem-2/limit-as-a-bound": _own(noise_multiplier=0.5),
    "federated-f-dp/theorem-2/strong": _truth(rounds=14_000),
    "fed-alpha-cdp/section-7.4/same-rounds": _truth(end=1.0),
    "fed-alpha-cdp/section-5.2/largest-norm": _truth(other_norms=4.0),
    "fed-alpha-cdp/section-6/per-client": _truth(noise_multiplier=3.0),
    "fed-alpha-cdp/section-6/global-sampling": _truth(client_rate=0.05),
    "fed-alpha-cdp/theorem-5": _truth(epsilon=2.0),
    "fed-alpha-cdp/theorem-1": _truth(sensitivity=2.0),
    "fed-alpha-cdp/theorem-2": _truth(delta=0.02),
    "fed-alpha-cdp/theorem-3": _truth(blocks=2),
    "considerations/section-3.2/loss": _truth(delta=1e-6),
    "considerations/section-3.2/advanced-composition": _truth(runs=60),
    "considerations/section-3.2/groups": _truth(epsilon=2.0),
    "considerations/section-3.3/renyi": _own(order=0.0),
    "considerations/section-3.3/tail": _truth(excess=1.0),
    "considerations/section-3.3/composition": _truth(runs=60),
    "considerations/section-3.3/groups": _truth(size=5),
    "considerations/section-3.3/truncated-tail": _truth(excess=1.0),
    "considerations/section-4/tradeoff": {"own": {"alpha": 0.2}, "certified": {"alpha": 0.95}},
    "considerations/equation-6": _truth(mu=1.1),
    "considerations/section-4.4/tight": _truth(epsilon=0.5),
    "considerations/section-4.5/limit": _truth(examples=200),
    "considerations/section-4.5/limit-to-those-who-see-batches": {
        "own": {"epsilon": 0.0},
        "certified": {"epsilon": 0.0},
    },
    "considerations/section-4.5/noise": _truth(share=0.4),
    "considerations/section-4.6/groups": _truth(size=4),
    "considerations/section-4.7/upper": _truth(noise_multiplier=2.0),
    "considerations/section-4.7/lower": _truth(noise_multiplier=9.0),
    "considerations/section-4.7/root-of-epochs": _truth(epochs=20),
    "considerations/section-4.7/zcdp": _truth(shuffled=False),
    "considerations/section-4.7/groups": _truth(noise_multiplier=0.5),
    "considerations/section-4.7/groups-zcdp": _truth(noise_multiplier=0.5),
    "considerations/section-5.2/last-epoch": _truth(epochs=9),
    "privacy-preserving-ml/privacy-loss/tail": _truth(delta=1e-6),
    "privacy-preserving-ml/composition/simple": _truth(delta=0.02),
    "privacy-preserving-ml/composition/advanced": _truth(runs=90),
    "privacy-preserving-ml/composition/doubled-root": _truth(epsilon=3.0),
    "privacy-preserving-ml/gaussian-mechanism": _truth(epsilon=10.0),
    "privacy-preserving-ml/gaussian-error/example-statement": _truth(bound=60.0),
    "privacy-preserving-ml/gaussian-error/theorem": _truth(failure=1e-4),
    "privacy-preserving-ml/amplification/theorem": _truth(batch_size=11),
    "privacy-preserving-ml/amplification/delta": _truth(batch_size=11),
    "privacy-preserving-ml/amplification/linear": _truth(batch_size=20),
    "privacy-preserving-ml/dp-sgd": _truth(share=0.02, examples=10, steps=100),
    "privacy-preserving-ml/dp-sgd-proof/step": _truth(examples=60),
    "privacy-preserving-ml/dp-sgd-proof/sampled-step": _truth(examples=10_000, steps=100),
    "privacy-preserving-ml/local/definition": _truth(shift=1),
    "privacy-preserving-ml/local/k-rr": _truth(epsilon=2.0),
    "privacy-preserving-ml/local/k-rr-error": _truth(share=0.3),
    "privacy-preserving-ml/local/average": _truth(epsilon=10.0),
    "privacy-preserving-ml/local/histogram-sensitivity": _truth(replaced=True),
    "privacy-preserving-ml/network-dp/definition": _truth(shift=100),
    "sense-and-sensitivity/theorem-1": _truth(sensitivity=2.0),
    "sense-and-sensitivity/equation-1.9/norm": _own(radius=4.0),
    "sense-and-sensitivity/equation-1.9/noise": _truth(radius=2.0),
    "sense-and-sensitivity/lemma-2": _truth(epsilon=0.8),
    "sense-and-sensitivity/lemma-2-privacy": _truth(distance=3.0),
    "sense-and-sensitivity/section-2.4/mean-norm": _truth(dimension=12),
    "sense-and-sensitivity/lemma-4": _truth(dimension=12),
    "sense-and-sensitivity/theorem-3": _truth(distances=(3.0, 1.0)),
    "sense-and-sensitivity/section-2.4/private-radius": _truth(distance=3.0),
    "sense-and-sensitivity/proposition-1": _truth(algorithm=True),
    "sense-and-sensitivity/algorithm-3": _truth(algorithm=True),
    "sense-and-sensitivity/section-5.2/half-epsilon": _truth(sensitivity=2.0),
    "sense-and-sensitivity/section-5.3/twice-epsilon": _truth(noise_multiplier=6.0),
}
# Figures that the own method never comes to: a budget that it does spend.
REACHED: Final[Change] = _own(epsilon=0.05)
