"""The verdict of each claim, so that a change is seen.

That of the longest name that begins its id.
"""

from typing import Final

from tests.claims import Verdict

_YES, _FITTED, _ONLY, _NO, _INVALID, _OPEN = Verdict
_BY_NAME: Final = {
    "federated-f-dp": _YES,
    "federated-f-dp/theorem-1": _INVALID,
    "federated-f-dp/theorem-1-strong": _INVALID,
    "federated-f-dp/theorem-2/limit-as-a-bound": _INVALID,
    "fed-alpha-cdp": _ONLY,
    "fed-alpha-cdp/table-6/fed-cdp/cancer": _NO,
    "fed-alpha-cdp/table-8": _NO,
    "fed-alpha-cdp/table-8/lfw-cyclic": _ONLY,
    "fed-alpha-cdp/section-7.4/same-rounds": _YES,
    "fed-alpha-cdp/table-11/zcdp": _YES,
    "fed-alpha-cdp/table-11/rounds": _NO,
    "fed-alpha-cdp/section-5.2/largest-norm": _INVALID,
    "fed-alpha-cdp/section-6/global-sampling": _INVALID,
    "fed-alpha-cdp/theorem-1": _YES,
    "fed-alpha-cdp/theorem-2": _YES,
    "considerations": _YES,
    "considerations/section-3.2/loss": _INVALID,
    "considerations/section-3.2/groups": _ONLY,
    "considerations/section-3.3/renyi": _INVALID,
    "considerations/section-4/tradeoff": _INVALID,
    "considerations/section-4.4": _OPEN,
    "considerations/section-4.5/limit-to-those-who-see-batches": _INVALID,
    "considerations/section-4.7": _ONLY,
    "considerations/section-4.7/upper": _YES,
    "considerations/section-4.7/lower": _YES,
    "privacy-preserving-ml": _ONLY,
    "privacy-preserving-ml/privacy-loss/rule-of-thumb": _YES,
    "privacy-preserving-ml/privacy-loss/tail": _INVALID,
    "privacy-preserving-ml/composition/simple": _YES,
    "privacy-preserving-ml/composition/advanced": _YES,
    "privacy-preserving-ml/gaussian-error/example-statement": _INVALID,
    "privacy-preserving-ml/gaussian-error/theorem": _INVALID,
    "privacy-preserving-ml/amplification": _YES,
    "privacy-preserving-ml/dp-sgd-proof/step": _YES,
    "privacy-preserving-ml/local/definition": _INVALID,
    "privacy-preserving-ml/local/k-rr": _YES,
    "sense-and-sensitivity": _YES,
    "sense-and-sensitivity/equation-1.9/norm": _INVALID,
    "sense-and-sensitivity/equation-1.9/noise": _ONLY,
    "sense-and-sensitivity/section-2.4/private-radius": _INVALID,
    "sense-and-sensitivity/section-2.5/six-rounds": _FITTED,
    "sense-and-sensitivity/table-2.3": _FITTED,
    "sense-and-sensitivity/algorithm-3": _ONLY,
    "sense-and-sensitivity/section-5.2/variance": _ONLY,
    "sense-and-sensitivity/section-5.3": _ONLY,
}


def pinned(id_: str) -> Verdict:
    """Return the verdict that a claim has."""
    names = [name for name in _BY_NAME if id_ == name or id_.startswith(f"{name}/")]
    return _BY_NAME[max(names, key=len)]
