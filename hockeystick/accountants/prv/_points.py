"""The step of the lattice and the offset of each loss, chosen so that atoms lie on points."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from hockeystick.accountants.prv._discretise import cover
from hockeystick.accountants.prv._truncation import NO_TRUNCATION, Truncation
from hockeystick.accountants.prv.lattice import Part

if TYPE_CHECKING:
    from hockeystick.kernels.series import Array
    from hockeystick.privacy_loss import CellLoss

# The distance from a multiple of the spacing, over the spacing, up to which an atom is at it.
_NEAR: Final = 1e-9
# Atoms closer together than this share of their span are not put on a common lattice.
_CLOSEST: Final = 1e-7
# Atoms of less than exp(-this) of the largest tilted mass do not determine the offset.
_NEGLIGIBLE: Final = 50.0


def natural_step(terms: Sequence[tuple[CellLoss, int]]) -> float | None:
    """Return the step of a lattice that holds all losses exactly, each from its own offset on."""
    spacings = []
    for loss, _ in terms:
        atoms = loss.atoms().loss
        if not is_atomic(loss):
            return None
        if atoms.size > 1:
            span, gap = float(atoms[-1] - atoms[0]), float(np.diff(atoms).min())
            if gap <= _CLOSEST * span:
                return None
            spacings.append(span / round(span / gap))
    if not spacings:
        return None
    step = min(spacings)
    whole = all(_multiples(loss.atoms().loss, step) for loss, _ in terms)
    return step if whole else None


def parts_for(
    terms: Sequence[tuple[CellLoss, int]],
    tilt: float,
    step: float,
    log_least: tuple[float, float],
    truncation: Truncation = NO_TRUNCATION,
) -> list[Part]:
    """Return each loss on a lattice of at most this step, whose points hold its heaviest atoms."""
    heavy = [(_heavy_atoms(loss, tilt), count) for loss, count in terms]
    spans = [(atoms[-1] - atoms[0], count) for atoms, count in heavy if len(atoms) > 1]
    span = max(spans, key=lambda one: one[1])[0] if spans else 0.0
    if span > step:
        step = span / math.ceil(span / step - _NEAR)
    parts = []
    for (loss, count), (atoms, _) in zip(terms, heavy, strict=True):
        offset, value = atoms[0] if atoms else 0.0, truncation.cgf_estimate(loss, tilt).value
        parts.append(Part(loss, count, cover(loss, offset, step, tilt, log_least, value)))
    return parts


def is_atomic(loss: CellLoss) -> bool:
    """Return whether a loss has atoms only."""
    return bool(loss.cells(np.array([-math.inf, math.inf])).log_p[0] == -math.inf)


def _multiples(values: Array, step: float) -> bool:
    """Return whether values differ by multiples of a step."""
    position = (values - values[0]) / step
    return bool(np.all(np.abs(position - np.round(position)) <= _NEAR))


def _heavy_atoms(loss: CellLoss, tilt: float) -> list[float]:
    """Return the two atoms that weigh most once tilted, ascending; fewer if there are fewer."""
    atoms = loss.atoms()
    exponent = atoms.log_p + tilt * atoms.loss
    order = np.argsort(-exponent)[:2]
    kept = [k for k in order if exponent[k] > exponent.max() - _NEGLIGIBLE]
    return sorted(float(atoms.loss[k]) for k in kept)
