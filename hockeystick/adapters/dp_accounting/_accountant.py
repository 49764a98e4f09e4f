"""An accountant for dp-accounting."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, final

from dp_accounting import dp_event
from dp_accounting.privacy_accountant import NeighboringRelation, PrivacyAccountant

from hockeystick import _validate
from hockeystick.accountants import best_order
from hockeystick.accountants.base import TOLERANCE, composition_of
from hockeystick.adapters.dp_accounting._events import RELATIONS, parts_of, read, refuse_unnamed
from hockeystick.calibration.session.accountant import Accountant
from hockeystick.errors import HockeystickError, ParameterError
from hockeystick.mechanisms import Repeated

_NO_ORDERS: Final = " (no orders are given: the best of all real ones is taken)"


@final
class HockeystickAccountant(PrivacyAccountant):  # type: ignore[misc]  # theirs has no types
    """An accountant for dp-accounting whose answers are the upper ends of proven intervals.

    They are those of ``hs.Accountant``, of the mechanisms that ``from_event`` reads the events as.
    ``compose`` says why an event without a counterpart or an account is not supported.

    Args:
        neighboring_relation: Which data sets are neighbours, as dp-accounting means it. None for
            ``ADD_OR_REMOVE_ONE``, under which samples of a fixed size are not supported then.
        tolerance: The relative width that is asked of the interval, from 1e-10 to 0.1.

    Raises:
        ParameterError: If the relation is none.

    Example:
        >>> import dp_accounting
        >>> from hockeystick.adapters.dp_accounting import HockeystickAccountant
        >>> event = dp_accounting.PoissonSampledDpEvent(0.01, dp_accounting.GaussianDpEvent(1.1))
        >>> accountant = HockeystickAccountant().compose(event, 1000)
        >>> f"{accountant.get_epsilon(target_delta=1e-5):.6f}"
        '1.515362'
    """

    def __init__(
        self, neighboring_relation: NeighboringRelation | None = None, tolerance: float = TOLERANCE
    ) -> None:
        self._is_named = neighboring_relation is not None
        meant = neighboring_relation if self._is_named else NeighboringRelation.ADD_OR_REMOVE_ONE
        if not isinstance(meant, NeighboringRelation) or meant not in RELATIONS:
            raise ParameterError("neighboring_relation", meant, _allowed(meant))
        super().__init__(meant)
        self._adjacency = RELATIONS[meant]
        self._tolerance = tolerance
        self._account = Accountant()

    @property
    def account(self) -> Accountant:
        """What is composed as an ``hs.Accountant``."""
        return self._account

    def get_epsilon(self, target_delta: float) -> float:
        """Return the proven upper end of epsilon."""
        at = _validate.one("delta", target_delta)
        return float(self._account.epsilon(at, tolerance=self._tolerance).upper)

    def get_epsilon_and_optimal_order(self, target_delta: float) -> tuple[float, float]:
        """Return the epsilon that accountant "rdp" proves, and the best order, as RdpAccountant.

        ``get_epsilon`` is at most that: it does not stop at Renyi divergences.
        """
        at = _validate.one("delta", target_delta)
        found = self._account.epsilon(at, accountant="rdp", tolerance=self._tolerance)
        return float(found.upper), best_order(self._account.plan, at)

    def get_delta(self, target_epsilon: float) -> float:
        """Return the proven upper end of delta."""
        at = _validate.one("epsilon", target_epsilon)
        return float(self._account.delta(at, tolerance=self._tolerance).upper)

    def _maybe_compose(self, event: dp_event.DpEvent, count: int, do_compose: bool) -> Any:
        try:
            runs = [self._run(part, times) for part, times in parts_of(event, count)]
        except HockeystickError as error:
            return self.CompositionErrorDetails(invalid_event=event, error_message=str(error))
        for run in runs if do_compose else ():
            self._account.step(run)
        return None

    def _run(self, event: dp_event.DpEvent, count: int) -> Repeated:
        if not self._is_named:
            refuse_unnamed(event)
        mechanism = read(event, self._adjacency)
        composition_of(mechanism, "auto")
        return mechanism**count


def _allowed(given: object) -> str:
    has_orders = isinstance(given, Sequence) and not isinstance(given, str)
    return "a NeighboringRelation of dp_accounting" + (_NO_ORDERS if has_orders else "")
