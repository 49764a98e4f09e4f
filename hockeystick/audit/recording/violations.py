"""What a self-test may find, by name, what was noted on the way, and its result."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Self, final

from hockeystick._validate import WordEnum
from hockeystick.mechanisms import DPSGD
from hockeystick.numerics.numerals import jsonable


class Rule(WordEnum):
    """A rule that a private training loop keeps; its name is that of the violation."""

    meaning: str

    def __new__(cls, name: str, meaning: str) -> Self:
        made = str.__new__(cls, name)
        made._value_, made.meaning = name, meaning
        return made

    SENSITIVITY = "sensitivity", "one record moves the sum by more clipping norms than allowed"
    MIXED = "examples-mixed", "what one record adds depends on the others of its batch"
    SCALE = "noise-scale-depends-on-data", "the scale of noise or divisor depends on the data"
    NOISE_DEPENDS = "noise-depends-on-data", "the same random numbers give neighbours other noise"
    STATE = "state-depends-on-data", "the next step starts from data beyond what was released"
    STEPS_DEPEND = "steps-depend-on-data", "the number of releases depends on the data"
    NOT_FINITE = "not-finite", "a record makes what is released infinite or undefined"
    FAILS = "fails-on-a-batch", "a step fails on a batch that the plan can draw"
    COPIES = "record-at-several-places", "one record is at several places, clipped at each"
    NO_NOISE = "no-noise", "coordinates are released without noise"
    SHARED = "noise-shared", "several coordinates have the same noise"
    REUSED = "noise-reused", "several steps have the same noise"
    REPEATS = "noise-repeats", "two runs have the same noise: who knows the seed subtracts it"
    TOO_SMALL = "noise-too-small", "the noise has less variance than the plan claims"
    NOT_GAUSSIAN = "noise-not-gaussian", "the noise has not the distribution that the plan claims"
    CORRELATED = "noise-correlated", "the noise of steps or coordinates is correlated"
    COUNT = "steps-not-counted", "more steps were released than counted"
    LEFT_OUT = "batches-left-out", "batches were drawn that no single release used"
    TWICE = "record-twice-in-a-batch", "a batch has a record more than once"
    SIZE = "batch-size", "a batch has a size that the plan does not allow"
    EPOCH = "not-an-epoch", "an epoch does not use each record once"
    RATE = "rate-too-high", "a record is drawn more often than the plan says"
    FIXED = "batches-of-one-size", "batches have one size, where records are drawn one by one"
    NO_EMPTY = "no-empty-batches", "empty batches are missing"
    SHUFFLED = "batches-avoid-one-another", "batches have less in common than independent ones"
    BATCHES_REPEAT = "batches-repeat", "batches have more in common than independent ones"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """A rule that a training loop was seen to break.

    Args:
        name: One of ``Rule``.
        found: What was measured.
        allowed: The most that the plan allows, or the least of what is too small.
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
        places = [self.where] if self.where else []
        places += [] if self.step is None else [f"step {self.step}"]
        at = f" ({', '.join(places)})" if places else ""
        sure = "" if self.certain else f"; p < {self.p_value:.1e}"
        numbers = f"found {self.found:.6g}, allowed {self.allowed:.6g}{sure}"
        meaning = next(one.meaning for one in Rule if one == self.name)
        return f"{self.name}: {meaning}{at}: {numbers}"

    def as_dict(self) -> dict[str, Any]:
        """Return the fields ready for JSON."""
        numbers = {"found": jsonable(self.found), "allowed": jsonable(self.allowed)}
        return {**asdict(self), "name": str(self.name), **numbers}


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SelfTest:
    """What a self-test found. No violation is no proof of privacy: it saw a few steps and records.

    Args:
        plan: What was claimed.
        violations: What was found, the certain ones first.
        confidence: That of no violation in a loop that keeps all rules.
        tests: How many statistical tests share what is left of it.
        measured: Name and value of what was measured.
        assumptions: What the verdict rests on.
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


@final
class Notes:
    """Collects violations that are certain, and all statistical tests, failed or not."""

    __slots__ = ("_certain", "measured", "tests")

    def __init__(self) -> None:
        self._certain: list[Violation] = []
        self.tests: list[Violation] = []
        self.measured: dict[str, float] = {}

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
        self.tests.append(
            Violation(name=rule, found=found, allowed=allowed, where=where, p_value=p_value)
        )

    def measure(self, name: str, value: float) -> None:
        """Note the largest of what was measured under a name."""
        self.measured[name] = max(self.measured.get(name, value), value)

    def violations(self, confidence: float) -> tuple[Violation, ...]:
        """Return what is certain, and which tests fail, by the Bonferroni correction for all."""
        level = (1 - confidence) / max(len(self.tests), 1)
        return (*self._certain, *(one for one in self.tests if one.p_value <= level))
