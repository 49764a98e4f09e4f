"""What was noted on the way: certain violations, and tests whose chance is shared at the end."""

from __future__ import annotations

from typing import final

from hockeystick.audit.recording.violations import Rule, Violation


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
