"""How a classifier treats groups of people: rates by group, and the largest differences."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final, final

import numpy as np

from hockeystick import _validate
from hockeystick._validate import whole_numbers
from hockeystick.errors import ParameterError
from hockeystick.release._values import integers
from hockeystick.release.samplers.bits import Floats, Integers

_GROUPS: Final = whole_numbers("G", 1, (2, 1000))


@final
@dataclass(frozen=True, slots=True, init=False, eq=False)
class GroupFairness:
    """Rates of a classifier's predictions for groups, or for clients, and how far they differ.

    Of counts of records by group, label and prediction, of shape (groups, 2, 2). With prediction
    Y', label Y and group S, the differences are the largest less the least over the groups of

    - ``P(Y' = 1 | S)``: demographic parity;
    - ``P(Y' = 1 | Y = 1, S)``: equal opportunity;
    - ``P(Y' = 1 | Y = y, S)``, the larger of y = 0 and y = 1: equalized odds;
    - ``P(Y' = Y | S)``: accuracy.

    Not private where the records are not public: release ``GroupFairness.count(...)`` with noise
    first, by ``geometric`` or ``discrete_gaussian``; one record is in one cell (two cells,
    ``entries=2``, under replace-one). Counts below 0 count as 0. A rate of a group without such
    records is nan, and left out of the difference, which is nan with fewer than two groups. For
    several classes give ``of(predictions == labels, ones, clients)`` (Dwork et al. 2012; Hardt,
    Price and Srebro 2016; Galli, "Sense and Sensitivity" (PhD thesis), definitions 5 to 7 and
    equation 2.11).

    Example:
        >>> import hockeystick as hs
        >>> given = {"predictions": [1, 1, 0, 1], "labels": [1, 1, 0, 0], "groups": [0, 0, 1, 1]}
        >>> hs.release.GroupFairness.of(**given).demographic_parity
        0.5
    """

    counts: Integers

    def __init__(self, counts: Any) -> None:
        known = np.maximum(integers("counts", counts), 0)
        if known.ndim != 3 or known.shape[1:] != (2, 2):
            allowed = "of shape (groups, 2, 2): by group, label and prediction"
            raise ParameterError("counts", f"an array of shape {known.shape}", allowed)
        known.flags.writeable = False
        object.__setattr__(self, "counts", known)

    @classmethod
    def of(cls, predictions: Any, labels: Any, groups: Any) -> GroupFairness:
        """Return the read-out of records, as ``count`` counts them."""
        return cls(cls.count(predictions, labels, groups))

    @staticmethod
    def count(predictions: Any, labels: Any, groups: Any, number: int | None = None) -> Integers:
        """Return the records by group, label and prediction, of shape (groups, 2, 2).

        Predictions and labels are 0 or 1, groups integers >= 0. Number says how many groups there
        are; by default up to the largest that occurs, a fact about the records.
        """
        given = {"predictions": predictions, "labels": labels, "groups": groups}
        rows = {name: _row(name, values) for name, values in given.items()}
        if len({len(row) for row in rows.values()}) != 1:
            sizes = [len(row) for row in rows.values()]
            raise ParameterError("predictions, labels, groups", sizes, "as many of each")
        for name in ("predictions", "labels"):
            if len(rows[name]) and int(rows[name].max()) > 1:
                raise ParameterError(name, "another number", "0 or 1 for each record")
        whose = rows["groups"]
        occurring = int(whose.max(initial=-1)) + 1
        size = occurring if number is None else _validate.count("number", number, _GROUPS)
        if size < occurring:
            raise ParameterError("groups", "a larger one", f"integers from 0 to {size - 1}")
        found = np.zeros((size, 2, 2), dtype=np.int64)
        np.add.at(found, (whose, rows["labels"], rows["predictions"]), 1)
        return found

    @property
    def positive_rates(self) -> Floats:
        """``P(Y' = 1 | S)`` of each group."""
        return _shares(self.counts[:, :, 1].sum(axis=1), self.counts.sum(axis=(1, 2)))

    @property
    def true_positive_rates(self) -> Floats:
        """``P(Y' = 1 | Y = 1, S)`` of each group."""
        return _shares(self.counts[:, 1, 1], self.counts[:, 1].sum(axis=1))

    @property
    def false_positive_rates(self) -> Floats:
        """``P(Y' = 1 | Y = 0, S)`` of each group."""
        return _shares(self.counts[:, 0, 1], self.counts[:, 0].sum(axis=1))

    @property
    def accuracies(self) -> Floats:
        """``P(Y' = Y | S)`` of each group."""
        right = self.counts[:, 0, 0] + self.counts[:, 1, 1]
        return _shares(right, self.counts.sum(axis=(1, 2)))

    @property
    def demographic_parity(self) -> float:
        """The difference of the rates of positive predictions."""
        return _difference(self.positive_rates)

    @property
    def equal_opportunity(self) -> float:
        """The difference of the true positive rates."""
        return _difference(self.true_positive_rates)

    @property
    def equalized_odds(self) -> float:
        """The larger of the differences of true and of false positive rates."""
        return float(np.fmax(self.equal_opportunity, _difference(self.false_positive_rates)))

    @property
    def accuracy_difference(self) -> float:
        """The difference of the accuracies."""
        return _difference(self.accuracies)


def _row(name: str, values: Any) -> Integers:
    """Return a row of integers >= 0, yes and no included, or raise."""
    array = np.asarray(values)
    found = integers(name, array.astype(np.int64) if array.dtype.kind == "b" else array)
    if found.ndim != 1 or bool((found < 0).any()):
        raise ParameterError(name, f"an array of shape {found.shape}", "a row of integers >= 0")
    return found


def _shares(part: Integers, whole: Integers) -> Floats:
    """Return quotients, nan where there is nothing to divide by."""
    found: Floats = np.full(len(whole), np.nan)
    np.divide(part, whole, out=found, where=whole > 0)
    return found


def _difference(rates: Floats) -> float:
    """Return the largest rate less the least, nan with fewer than two."""
    known = rates[~np.isnan(rates)]
    return float(known.max() - known.min()) if len(known) > 1 else math.nan
