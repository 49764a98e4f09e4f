"""What a self-test may find, by name, what was noted on the way, and its result."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, final

from hockeystick._validate import WordEnum
from hockeystick.mechanisms import DPSGD
from hockeystick.numerics.numerals import jsonable


class Rule(WordEnum):
    """A rule that a private training loop keeps; its name is that of the violation."""

    SENSITIVITY = "sensitivity"
    MIXED = "examples-mixed"
    SCALE = "noise-scale-depends-on-data"
    NOISE_DEPENDS = "noise-depends-on-data"
    STATE = "state-depends-on-data"
    STEPS_DEPEND = "steps-depend-on-data"
    NOT_FINITE = "not-finite"
    FAILS = "fails-on-a-batch"
    COPIES = "record-at-several-places"
    NO_NOISE = "no-noise"
    SHARED = "noise-shared"
    REUSED = "noise-reused"
    REPEATS = "noise-repeats"
    TOO_SMALL = "noise-too-small"
    NOT_GAUSSIAN = "noise-not-gaussian"
    CORRELATED = "noise-correlated"
    COUNT = "steps-not-counted"
    LEFT_OUT = "batches-left-out"
    TWICE = "record-twice-in-a-batch"
    SIZE = "batch-size"
    EPOCH = "not-an-epoch"
    RATE = "rate-too-high"
    FIXED = "batches-of-one-size"
    NO_EMPTY = "no-empty-batches"
    SHUFFLED = "batches-avoid-one-another"
    BATCHES_REPEAT = "batches-repeat"


MEANING: Final[Mapping[Rule, str]] = MappingProxyType(
    {
        Rule.SENSITIVITY: "one record moves the sum by more clipping norms than the plan allows",
        Rule.MIXED: "what one record adds to the sum depends on the other records of its batch",
        Rule.SCALE: "the scale of noise or divisor depends on the data",
        Rule.NOISE_DEPENDS: "the same random numbers give other noise on neighbouring data",
        Rule.STATE: "what the next step starts from depends on the data beyond what was released",
        Rule.STEPS_DEPEND: "the number of releases depends on the data",
        Rule.NOT_FINITE: "a record makes what is released infinite or undefined",
        Rule.FAILS: "a step fails on a batch that the plan can draw",
        Rule.COPIES: "one record is at several places of the data, and is clipped at each",
        Rule.NO_NOISE: "coordinates are released without noise",
        Rule.SHARED: "several coordinates have the same noise",
        Rule.REUSED: "several steps have the same noise",
        Rule.REPEATS: "two runs have the same noise: whoever knows the seed can subtract it",
        Rule.TOO_SMALL: "the noise has less variance than the plan claims",
        Rule.NOT_GAUSSIAN: "the noise has not the distribution that the plan claims",
        Rule.CORRELATED: "the noise of steps or coordinates is correlated",
        Rule.COUNT: "more steps were released than counted",
        Rule.LEFT_OUT: "batches were drawn that no single release used",
        Rule.TWICE: "a batch has a record more than once",
        Rule.SIZE: "a batch has a size that the plan does not allow",
        Rule.EPOCH: "an epoch does not use each record once",
        Rule.RATE: "a record is drawn more often than the plan says",
        Rule.FIXED: "batches have one size, where the plan draws each record by itself",
        Rule.NO_EMPTY: "empty batches are missing",
        Rule.SHUFFLED: "batches have fewer records in common than independent ones",
        Rule.BATCHES_REPEAT: "batches have more records in common than independent ones",
    }
)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """A rule that a training loop was seen to break.

    Args:
        name: The rule's name, one of ``Rule``.
        found: What was measured.
        allowed: What the plan allows: the most for sensitivities and counts that are too large,
            the least for those that are too small.
        step: In which step of a replay, from 0; None where no single one is meant.
        where: On which neighbour, or in which parameter; "" where that does not matter.
        p_value: An upper bound on the probability of such data from a loop that keeps the rule, for
            this test alone; 0 where the verdict is certain.
    """

    name: str
    found: float
    allowed: float
    step: int | None = None
    where: str = ""
    p_value: float = 0.0

    @property
    def certain(self) -> bool:
        """Whether chance has no part in the verdict."""
        return self.p_value == 0

    def __str__(self) -> str:
        """Return the violation as one line."""
        places = [self.where] if self.where else []
        places += [] if self.step is None else [f"step {self.step}"]
        at = f" ({', '.join(places)})" if places else ""
        sure = "" if self.certain else f"; p < {self.p_value:.1e}"
        numbers = f"found {self.found:.6g}, allowed {self.allowed:.6g}{sure}"
        return f"{self.name}: {MEANING[Rule(self.name)]}{at}: {numbers}"

    def as_dict(self) -> dict[str, Any]:
        """Return the fields ready for JSON."""
        return {
            "name": self.name,
            "found": jsonable(self.found),
            "allowed": jsonable(self.allowed),
            "step": self.step,
            "where": self.where,
            "p_value": self.p_value,
        }


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SelfTest:
    """What a self-test found. No violation is no proof of privacy: it saw a few steps and records.

    Args:
        plan: What was claimed.
        violations: What was found, the certain ones first.
        confidence: The probability of at least which a loop that keeps all rules has no violation.
        tests: How many statistical tests share what is left of it.
        measured: Name and value of what was measured.
        assumptions: What the verdict rests on, as sentences.
    """

    plan: DPSGD
    violations: tuple[Violation, ...]
    confidence: float
    tests: int
    measured: tuple[tuple[str, float], ...]
    assumptions: tuple[str, ...]

    @property
    def consistent(self) -> bool:
        """Whether nothing was found."""
        return not self.violations

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the rules that were broken, each once."""
        return tuple(dict.fromkeys(one.name for one in self.violations))

    def __str__(self) -> str:
        """Return the result as a few lines."""
        measured = ", ".join(f"{name} {value:.6g}" for name, value in self.measured)
        sure = f"{self.tests} tests at confidence {self.confidence:g} together"
        if self.consistent:
            return f"no violation found of {self.plan}\n  {sure}; {measured}"
        lines = [f"{len(self.violations)} violations of {self.plan}"]
        lines += [f"  {one}" for one in self.violations]
        return "\n".join([*lines, f"  {sure}; {measured}"])

    def as_dict(self) -> dict[str, Any]:
        """Return the result ready for JSON."""
        return {
            "plan": str(self.plan),
            "consistent": self.consistent,
            "confidence": self.confidence,
            "tests": self.tests,
            "violations": [one.as_dict() for one in self.violations],
            "measured": {name: jsonable(value) for name, value in self.measured},
            "assumptions": list(self.assumptions),
        }

    def to_json(self) -> str:
        """Return the result as JSON."""
        return json.dumps(self.as_dict())


@final
class Notes:
    """Collects violations that are certain, and all statistical tests, failed or not."""

    __slots__ = ("_certain", "_measured", "_tests")

    def __init__(self) -> None:
        self._certain: list[Violation] = []
        self._tests: list[Violation] = []
        self._measured: dict[str, float] = {}

    def certain(
        self, rule: Rule, found: float, allowed: float, *, step: int | None = None, where: str = ""
    ) -> None:
        """Note a violation that no chance explains; of one rule in one place the worst is kept."""
        made = Violation(name=rule, found=found, allowed=allowed, step=step, where=where)
        for place, one in enumerate(self._certain):
            if one.name == rule and one.where == where:
                if not one.found >= found:
                    self._certain[place] = made
                return
        self._certain.append(made)

    def test(
        self, rule: Rule, p_value: float, found: float, allowed: float, where: str = ""
    ) -> None:
        """Note a test, with the probability of what it found from a loop that keeps the rule."""
        self._tests.append(
            Violation(name=rule, found=found, allowed=allowed, where=where, p_value=p_value)
        )

    def measure(self, name: str, value: float) -> None:
        """Note the largest of what was measured under a name."""
        self._measured[name] = max(self._measured.get(name, value), value)

    @property
    def tests(self) -> int:
        """The number of tests."""
        return len(self._tests)

    def violations(self, confidence: float) -> tuple[Violation, ...]:
        """Return what is certain, and which tests fail, by the Bonferroni correction for all."""
        level = (1 - confidence) / max(self.tests, 1)
        return (*self._certain, *(one for one in self._tests if one.p_value <= level))

    def measured(self) -> tuple[tuple[str, float], ...]:
        """Return what was measured."""
        return tuple(self._measured.items())
