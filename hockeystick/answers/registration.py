"""A plan's entry for OpenDP's registry of deployments, with blanks for what only people know.

Keys and words: ``schemas/deployments-schema.yaml`` of deployments-registry-data, July 2026.
"""

from __future__ import annotations

import json
import math
from importlib import resources
from typing import Final

from hockeystick import _validate
from hockeystick._version import __version__
from hockeystick.answers.cautions import cautions
from hockeystick.answers.wording import in_words, protected, steps_rules
from hockeystick.mechanisms import RandomizedResponse, ShuffledReports, assumptions_of, federated
from hockeystick.mechanisms.base import Composed, Mechanism, Repeated
from hockeystick.mechanisms.local.reports import RAPPOR, UnaryEncoding
from hockeystick.numerics.numerals import at_most, interval, plain
from hockeystick.results import Certified

BLANK: Final = "to be filled in: "
# By the topics of NIST SP 800-226 (2025) that the registry has no field for.
_MODELS: Final = "one of Local, Central, Shuffle, Federated, Varies"
_BESIDES: Final = (
    "how the data are collected, and to whom they are exposed before anything is protected",
    "how useful the output is, for whom, and whether the noise biases it against small groups",
)
_LOCAL: Final = (RandomizedResponse, UnaryEncoding, RAPPOR)
_FEDERATED: Final = tuple(
    one for one in vars(federated).values() if isinstance(one, type) and issubclass(one, Mechanism)
)


def registration(
    answer: Certified,
    plan: Mechanism,
    *,
    delta: float,
    title: str | None = None,
    source: str | None = None,
    notes: str | None = None,
) -> str:
    """Return an entry of the registry of deployments.

    Guarantees:
        The text, of a file ``deployments/NAME.yaml``, is YAML with all keys of the registry's
        schema and no other ones, for a draft of tier 3. Epsilon is the proven upper end, rounded
        up. What is not known, or such an end, is a text that begins with "to be filled in".

    Args:
        answer: Epsilon at that delta, as ``epsilon`` returned it.
        plan: The mechanism or plan that it is of.
        delta: Where it was asked for.
        title: What the data product is called.
        source: Where the plan's numbers come from.
        notes: What a reader should know.

    References:
        NIST SP 800-226, "Guidelines for Evaluating Differential Privacy Guarantees", 2025, for the
        questions that any such claim raises.

    Example:
        >>> import hockeystick as hs
        >>> plan = hs.DPSGD(examples=60_000, batch_size=256, epochs=15, noise_multiplier=1.1)
        >>> answer = hs.epsilon(plan, delta=1e-5)
        >>> text = hs.answers.registration(answer, plan, delta=1e-5, title="My classifier")
        >>> print(text[text.index("    privacy_parameters:") :][:67])
            privacy_parameters:
              epsilon: 1.13388
              delta: 1.0e-05
    """
    at = _validate.real("delta", delta)
    lower, upper = interval(answer.lower, answer.upper)
    proven = f"Epsilon is proven to lie in [{lower}, {upper}] at delta = {plain(at)}."
    how = f'Composed by the accountant "{answer.accountant}" of hockeystick {__version__}.'
    words, unknown = in_words(plan), _quoted(f"{BLANK}nothing is proven of epsilon")
    template = resources.files("hockeystick.answers") / "templates" / "registration.yaml"
    return template.read_text("utf-8").format(
        name=_value(title or f"{BLANK}what the data product is called"),
        variant=_value("Pure DP" if at == 0.0 else "Approximate DP"),
        unit=_value(_unit(plan)),
        protected=_value(
            protected(plan), f"{BLANK}the same in terms of the columns and rows of the data"
        ),
        epsilon=_number(at_most(answer.upper)) if answer.upper < math.inf else unknown,
        delta="" if at == 0.0 else f"      delta: {_number(plain(at))}\n",
        proven=_value(proven, *(f"Caution: {x.text}" for x in cautions(answer, plan, delta=at))),
        model=_value(_model_name(plan) or f"{BLANK}{_MODELS}"),
        composition=_value(*words, *steps_rules(plan), how),
        mechanisms=_value(
            *words,
            *(f"Must hold: {one}" for one in assumptions_of(plan)),
            f"{BLANK}the library and its version; what is done against floating-point errors and "
            "timing; who may see the data; where the code is",
        ),
        sources=_value(source or f"{BLANK}where the deployment is described"),
        notes=_value(*([notes] if notes else []), *(BLANK + one for one in _BESIDES)),
    )


def _unit(plan: Mechanism) -> str:
    asked = "what that is, such as a person, a household or a visit, and how many one person has"
    if (several := getattr(plan, "examples_per_user", 1)) > 1:
        return f"All of one user's examples, of which there are at most {several}"
    is_report = _model_name(plan) in ("Local", "Shuffle")
    one = "one person's report" if is_report else f"one {getattr(plan, 'unit', 'example')}"
    return f"{one.capitalize()}; {BLANK}{asked}"


def _model_name(plan: Mechanism) -> str | None:
    if isinstance(plan, Composed):
        named = {_model_name(part) for part in plan.parts}
        return named.pop() if len(named) == 1 else None
    if isinstance(plan, Repeated):
        return _model_name(plan.inner)
    models = {"Local": _LOCAL, "Shuffle": (ShuffledReports,), "Federated": _FEDERATED}
    return next((name for name, kinds in models.items() if isinstance(plan, kinds)), None)


def _number(digits: str) -> str:
    """Return a number in YAML: with a point, without which 1e-05 is a text."""
    mantissa, mark, exponent = digits.partition("e")
    point = "" if "." in mantissa or not mark else ".0"
    return f"{mantissa}{point}{mark}{exponent}"


def _value(*texts: str) -> str:
    """Return texts as one value of YAML: a block, a line for each, or else in quotes."""
    lines = "\n".join(texts).split("\n")
    if len(lines) > 1 and all(one and one.isprintable() and one == one.strip() for one in lines):
        return "\n".join(["|-", *(f"      {line}" for line in lines)])
    return _quoted("\n".join(lines))


def _quoted(text: str) -> str:
    """Return a text in quotes; what is no visible letter, which JSON may leave, is escaped."""
    return "".join(
        letter if letter.isprintable() else f"\\U{ord(letter):08x}"
        for letter in json.dumps(text, ensure_ascii=False)
    )
