"""Running sums by tree aggregation, exact in floats."""

from __future__ import annotations

import math
from threading import Lock
from typing import TYPE_CHECKING, Any, final

import numpy as np

from hockeystick import _validate
from hockeystick.errors import IncompatibleError, ParameterError
from hockeystick.mechanisms.streams.tree_aggregation import TreeAggregation
from hockeystick.release._values import MOST, numbers, of_kind
from hockeystick.release.charging import Charged, ChargedRun, book, checked_charge
from hockeystick.release.noise._grid import grid_of
from hockeystick.release.samplers import Bits, rounded_gaussian, secret_bits

if TYPE_CHECKING:
    from numpy.typing import NDArray

_SIZE = _validate.whole_numbers("d", 1, (1, 10**7))


def tree_aggregation(
    mechanism: TreeAggregation,
    size: int,
    sensitivity: float,
    *,
    charge: Charged | None = None,
    bits: Bits = secret_bits,
) -> RunningSums:
    """Return a run that takes rows one by one and returns their noisy sum so far.

    After t rows it is their sum plus one noise for each 1 in the binary digits of t: the noise of
    the node of the tree over the rounds that holds those rows. With S the sensitivity, z the noise
    multiplier, d the size of a row, and g a power of two of at most ``2^-20 S``,

        M(D)_t = g (sum of round(row / g) + sum over the nodes of round(N)),
        N ~ N(0, s^2 I) for each node, s >= z (S / g + ceil(sqrt(d))).

    Guarantees:
        That of the mechanism, which is charged once, here, for all rows; later rows may depend on
        earlier sums. Rows are rounded to integers, in which node sums are exact; rounding moves the
        L2 distance of a leaf's rows on neighbouring data sets by at most ``g sqrt(d)``, to which
        the noise is scaled, and a node's sum plus ``round(N)`` is a function of the sum plus N, as
        with ``gaussian``. What is released is a function of the noisy nodes: the other nodes of
        the tree are not drawn, as no sum needs them.

    Edge cases:
        Noise multiplier 0 returns the sums of rows on the grid. No leaves: the run has ended.

    Args:
        mechanism: Tree aggregation, of a finite noise multiplier.
        size: The number d of entries of each row, an integer from 1 to 10^15.
        sensitivity: How far a row moves in L2 between neighbouring data sets, in its own unit, the
            only one that does: the clipping norm, twice that under replace-one. A finite number
            > 0. Clipping is the caller's.
        charge: ``Accountant``, ``Filter``, ``Ledger`` or another with ``step(mechanism)``, which is
            charged before the noise is drawn.
        bits: The source of random 64-bit words; another than the operating system's is for tests.

    Returns:
        The run; give it rows with ``add``.

    Raises:
        ParameterError: If an argument is outside its domain; nothing is charged then.
        BudgetExhausted: If the filter refuses; nothing is drawn then.

    References:
        Dwork, Naor, Pitassi and Rothblum, "Differential Privacy under Continual Observation",
        2010; Kairouz, McMahan, Song, Thakkar, Thakurta and Xu 2021, without the refinement of
        Honaker 2015.

    Example:
        >>> import hockeystick as hs
        >>> tree = hs.mechanisms.TreeAggregation(noise_multiplier=5, leaves=100)
        >>> run = hs.release.tree_aggregation(tree, size=2, sensitivity=1)
        >>> [run.add(row).shape for row in ([0.5, 0.5], [1, 0], [0, 0])]
        [(2,), (2,), (2,)]
    """
    return RunningSums(of_kind(mechanism, TreeAggregation), size, sensitivity, charge, bits)


@final
class RunningSums(ChargedRun):
    """A run of tree aggregation: made by ``tree_aggregation``.

    Several threads may add rows. It cannot be copied or pickled, nor gone on with in a forked
    process: noise would be used twice.
    """

    __slots__ = ("_bits", "_grid", "_lock", "_mechanism", "_nodes", "_rows", "_total")

    def __init__(
        self,
        mechanism: TreeAggregation,
        size: int,
        sensitivity: float,
        charge: Charged | None,
        bits: Bits,
    ) -> None:
        super().__init__()
        entries = _validate.count("size", size, _SIZE)
        moved = math.isqrt(entries - 1) + 1
        self._grid = grid_of(mechanism, mechanism.noise_multiplier, sensitivity, moved)
        self._mechanism, self._bits, self._lock, self._rows = mechanism, bits, Lock(), 0
        self._total = np.zeros(entries, dtype=np.int64)
        # The noise of the node that ends with the last row, by its height.
        self._nodes: dict[int, NDArray[np.int64]] = {}
        book(checked_charge(charge), mechanism)

    @property
    def rows(self) -> int:
        """How many rows have been added."""
        return self._rows

    def add(self, row: Any) -> NDArray[np.float64]:
        """Add a row, and return the noisy sum of all rows so far.

        Args:
            row: The next leaf's d numbers, the sum of its examples' clipped contributions.

        Returns:
            An array of d floats.

        Raises:
            IncompatibleError: If there are as many rows already as the mechanism has leaves, or
                this process was forked from the run's.
            ParameterError: If it is no row of d finite numbers, or the sum gets too large.
            OSError: If the operating system has no random bits to give; the row is not added then.
        """
        self._check_process()
        given = numbers("row", row)
        if given.shape != self._total.shape:
            allowed = f"a row of {self._total.size:,} numbers"
            raise ParameterError("row", f"an array of shape {given.shape}", allowed)
        steps = self._grid.steps("row", given)
        with self._lock:
            if self._rows == self._mechanism.leaves:
                raise IncompatibleError(
                    f"the tree is full: its description has {self._rows:,} leaves; begin another "
                    "one, which is charged for itself"
                )
            total = self._total + steps
            if bool(((total > MOST) | (total < -MOST)).any()):
                raise ParameterError("row", "a larger one", "such that sums stay below 2^62 steps")
            height = _trailing_zeros(self._rows + 1)
            noise = self._noise()
            self._nodes = {h: one for h, one in self._nodes.items() if h > height}
            self._nodes[height] = noise
            self._rows, self._total = self._rows + 1, total
            return self._grid.floats(total + sum(self._nodes.values()))

    def _noise(self) -> NDArray[np.int64]:
        """Return fresh noise for a node."""
        if self._mechanism.noise_multiplier == 0.0:
            return np.zeros_like(self._total)
        return rounded_gaussian(self._grid.scale, self._total.size, bits=self._bits)


def _trailing_zeros(number: int) -> int:
    """Return how often a number > 0 is divisible by 2: the height of the node that ends there."""
    return (number & -number).bit_length() - 1
