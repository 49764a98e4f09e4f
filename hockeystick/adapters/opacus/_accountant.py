"""An accountant for Opacus, registered there."""

from __future__ import annotations

import math
import secrets
import struct
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final, final

from opacus import privacy_engine
from opacus.accountants import utils
from opacus.accountants.accountant import IAccountant
from opacus.accountants.registry import register_accountant

import hockeystick as hs
from hockeystick import _validate
from hockeystick._validate import PARAMETERS
from hockeystick.accountants.base import TOLERANCE
from hockeystick.adjacency import Adjacency
from hockeystick.calibration.session.accountant import Accountant
from hockeystick.errors import IncompatibleError, ParameterError
from hockeystick.mechanisms import Gaussian, PoissonSubsampled

NAME: Final = "hockeystick"
# Their states have one format: runs of Poisson-subsampled Gaussian steps.
_READABLE: Final = (NAME, "rdp", "prv", "gdp")
_AN_ENTRY: Final = "(noise_multiplier, sample_rate, steps)"
# torch draws its uniforms from the multiples of 2^-24, or of 2^-53 where float64 is the default.
_SINGLES: Final = 2**24
_DOUBLES: Final = 2**53


@final
class HockeystickAccountant(IAccountant):  # type: ignore[misc]  # theirs has no types
    """Opacus's accounting by proven intervals: epsilon is the upper end.

    ``PrivacyEngine`` of this module has it, and so has ``get_noise_multiplier(...,
    accountant="hockeystick")``. What is recorded is

        PoissonSubsampled(Gaussian(noise_multiplier), sample_rate) ** steps

    for each pair of the two, in ``history`` as their accountants have it (AISTATS 2022, "Optimal
    Accounting of Differential Privacy via Characteristic Function", theorem 11).

    Guarantees:
        No plan as recorded has a larger epsilon. A step that the engine records has the rate at
        which Opacus's sampler draws, ``drawn_rate``. Steps of Opacus's own engine, which does not
        tell which batches were left out or put together, are refused, and so are accumulated
        batches and adaptive clipping.

    Edge cases:
        Nothing recorded costs 0, no noise inf. ``len`` is the number of steps. An earlier state of
        the same accountant takes nothing back, and one that has recorded steps loads no other's.

    Example:
        >>> from hockeystick.adapters.opacus import HockeystickAccountant
        >>> accountant = HockeystickAccountant()
        >>> for _ in range(1000):
        ...     accountant.step(noise_multiplier=1.1, sample_rate=256 / 60_000)
        >>> len(accountant), accountant.history
        (1000, [(1.1, 0.004266666666666667, 1000)])
        >>> f"{accountant.get_epsilon(delta=1e-5):.6f}"
        '0.598685'
    """

    history: list[tuple[float, float, int]]
    run: str

    def __init__(self) -> None:
        super().__init__()
        self.run = secrets.token_hex(16)

    def step(self, *, noise_multiplier: float, sample_rate: float) -> None:
        noise, rate = _numbers(noise_multiplier, sample_rate)
        last = self.history[-1] if self.history else (noise, rate, 0)
        if (last[0], last[1]) == (noise, rate):
            self.history[-1:] = [(noise, rate, last[2] + 1)]
        else:
            self.history.append((noise, rate, 1))

    def get_epsilon(
        self,
        delta: float,
        *,
        adjacency: Adjacency | str = Adjacency.ADD_REMOVE,
        tolerance: float = TOLERANCE,
    ) -> float:
        """Return the proven upper end of epsilon, as narrow as ``tolerance`` asks."""
        at = _validate.one("delta", delta)
        return float(self.account(adjacency).epsilon(at, tolerance=tolerance).upper)

    def account(self, adjacency: Adjacency | str = Adjacency.ADD_REMOVE) -> Accountant:
        """Return what is recorded as a ``hs.Accountant``."""
        made = Accountant()
        for noise, rate, steps in map(_entry, self.history):
            made.step(PoissonSubsampled(Gaussian(noise), rate, adjacency), count=steps)
        return made

    def __len__(self) -> int:
        return sum(steps for _, _, steps in self.history)

    @classmethod
    def mechanism(cls) -> str:
        return NAME

    def get_optimizer_hook_fn(self, sample_rate: float) -> Callable[[Any], None]:
        """Return what Opacus's own engine has called before each step: it refuses the step."""

        def refuse(optimizer: Any) -> None:
            refuse_unaccountable(optimizer)
            raise IncompatibleError(
                "Opacus's own engine does not say how batches are drawn and which are left out; "
                "use PrivacyEngine of hockeystick.adapters.opacus"
            )

        return refuse

    def state_dict(self, destination: Any = None) -> Any:
        found = super().state_dict(destination)
        found["run"] = self.run
        return found

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Take over a state of this accountant or of Opacus's own where nothing is recorded yet.

        The rates of Opacus's own are those that the sampler was given: they are rounded up by
        ``drawn_rate``. An earlier state of this very accountant changes nothing. Of steps that
        another process did after the state was taken, a state does not know.

        Raises:
            ParameterError: If it is no such state; nothing changes then.
            IncompatibleError: If steps are recorded here that are not in it; nothing changes then.
        """
        if not isinstance(state_dict, Mapping) or not {"history", "mechanism"} <= set(state_dict):
            allowed = "an accountant's state, with a history and a mechanism"
            raise ParameterError("state_dict", state_dict, allowed)
        if state_dict["mechanism"] not in _READABLE:
            known = ", ".join(map(repr, _READABLE))
            raise ParameterError("mechanism", state_dict["mechanism"], f"one of {known}")
        entries = state_dict["history"]
        if not isinstance(entries, list | tuple):
            raise ParameterError("history", entries, f"a list of {_AN_ENTRY}")
        found = [_entry(entry) for entry in entries]
        if not self.history:
            theirs = state_dict["mechanism"] != NAME
            self.history = [
                (noise, drawn_rate(rate) if theirs else rate, steps) for noise, rate, steps in found
            ]
        elif state_dict.get("run") != self.run:
            raise IncompatibleError(
                f"{len(self)} steps are recorded here that the state does not have: loading it "
                "would forget them; load it into a new engine, before its first step"
            )


def drawn_rate(sample_rate: float) -> float:
    """Return the probability with which Opacus's sampler draws an example, or a little more.

    It draws where a float32 uniform number, a multiple of 2^-24, is below the rate as a float32:
    with probability ``ceil(2^24 float32(rate)) / 2^24``, up to 2^-24 (6e-8) above the rate. Where
    float64 is torch's default, so it is with 2^-53. This is the largest of both and the rate.

    Raises:
        ParameterError: If the rate is not in [0, 1].

    Example:
        >>> from hockeystick.adapters.opacus import drawn_rate
        >>> drawn_rate(1 / 4), f"{drawn_rate(1 / 235) * 235 - 1:.1e}"
        (0.25, '8.3e-06')
    """
    rate = _validate.real("sample_rate", sample_rate, PARAMETERS["rate"])
    single: float = struct.unpack("f", struct.pack("f", rate))[0]
    drawn = math.ceil(single * _SINGLES) / _SINGLES, math.ceil(rate * _DOUBLES) / _DOUBLES
    return max(rate, *drawn)


def _numbers(noise_multiplier: object, sample_rate: object) -> tuple[float, float]:
    noise = _validate.real("noise_multiplier", noise_multiplier)
    return noise, _validate.real("sample_rate", sample_rate, PARAMETERS["rate"])


def _entry(entry: object) -> tuple[float, float, int]:
    if not isinstance(entry, tuple | list) or len(entry) != 3:
        raise ParameterError("history", entry, f"made of {_AN_ENTRY}")
    noise, rate, steps = entry
    return (*_numbers(noise, rate), _validate.count("steps", steps))


def refuse_unaccountable(optimizer: Any) -> None:
    """Raise where an optimizer's step is no Gaussian mechanism on one Poisson sample."""
    if optimizer.accumulated_iterations != 1:
        raise IncompatibleError(
            f"{optimizer.accumulated_iterations} batches were accumulated for one step: an example "
            "may be in several, so that they are no Poisson sample; draw one larger batch, and "
            "split it by opacus.utils.batch_memory_manager.BatchMemoryManager"
        )
    # The first is their optimizer's that clips adaptively, the other set by their ghost clipping.
    if hasattr(optimizer, "target_unclipped_quantile") or hasattr(
        optimizer, "_adjusted_noise_multiplier"
    ):
        raise IncompatibleError(
            "adaptive clipping in Opacus divides the noisy count by the size of the batch, which "
            "has no noise, so that no account covers it; use a constant clipping norm"
        )


register_accountant(NAME, HockeystickAccountant, force=True)


_theirs = utils.get_noise_multiplier


def get_noise_multiplier(*, accountant: str = "rdp", **asked: Any) -> float:
    """Return the least noise multiplier that meets a target, as Opacus's function does.

    Importing this module puts it in the place of ``opacus.accountants.utils.get_noise_multiplier``.

    Args:
        accountant: "hockeystick" for ``hs.calibrate``; Opacus's own ones are asked by its function.
        **asked: ``target_epsilon``, ``target_delta``, ``sample_rate``, and ``steps`` or ``epochs``,
            which are ``epochs / sample_rate`` steps, rounded up, at the rate of ``drawn_rate``;
            also a relative ``tolerance`` (1e-9) in place of Opacus's, and ``adjacency``.

    Raises:
        InfeasibleError: If no finite noise meets the target.

    Example:
        >>> from hockeystick.adapters.opacus import get_noise_multiplier
        >>> target = {"target_epsilon": 0.01, "target_delta": 1e-5, "sample_rate": 0.01}
        >>> noise = get_noise_multiplier(**target, steps=1000, accountant="hockeystick")
        >>> print(f"{noise:.3f}")
        77.133
    """
    return _least(**asked) if accountant == NAME else _theirs(accountant=accountant, **asked)


def _least(
    *,
    target_epsilon: float,
    target_delta: float,
    sample_rate: float,
    epsilon_tolerance: float = 0.01,
    tolerance: float = 1e-9,
    **length: Any,
) -> float:
    given = hs.DPSGD(noise_multiplier=1.0, rate=sample_rate, **length)
    rate, steps = drawn_rate(sample_rate), given.total_steps
    plan = replace(given, rate=rate, steps=steps, epochs=None)
    target = hs.ApproxDP(target_epsilon, target_delta)
    return hs.calibrate(plan, "noise_multiplier", target, tolerance=tolerance).value


utils.get_noise_multiplier = privacy_engine.get_noise_multiplier = get_noise_multiplier
