"""What each example's gradient is clipped to, and what is released beside the gradients for it."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar, Final, final

import torch

import hockeystick as hs
from hockeystick import _validate
from hockeystick._validate import Domain
from hockeystick.adjacency import Adjacency
from hockeystick.errors import IncompatibleError, ParameterError
from hockeystick.mechanisms.sampling.poisson import Clipping

Tensors = dict[str, Any]
_DOMAINS: Final = {
    "norm": Domain(symbol="C", low=1e-24, high=math.inf, high_open=True, typical=(0.1, 10)),
    "quantile": Domain(symbol="gamma", low=0, high=1, typical=(0.1, 0.9)),
    "rate": Domain(symbol="eta", low=0, high=1, typical=(0.001, 0.5)),
    "bit_noise": Domain(
        symbol="sigma", low=0, high=math.inf, low_open=True, high_open=True, typical=(1, 100)
    ),
    "inflation": Domain(
        symbol="r", low=1, high=math.inf, low_open=True, high_open=True, typical=(1.001, 1.5)
    ),
}
# A norm that follows noisy answers stays within this factor of the first one.
_REACH: Final = 1e6


class Clip(ABC):
    """A rule for the clipping norm; what it releases is paid for out of the plan's own noise.

    A second query of a step's batch is released with noise of its own, and the gradients' noise
    is raised until both together cost what the plan's ``noise_multiplier`` does: in units of their
    sensitivities both are one Gaussian release, ``z^-2 = z_gradients^-2 + z_query^-2``. So the
    account of the plan holds as it is, whatever the sampling.
    """

    __slots__ = ()
    norm: float
    per_layer: bool = False
    # Whether the second query is the largest of what examples have, and not their sum.
    largest: ClassVar[bool] = False

    def __post_init__(self) -> None:
        for name in {one.name for one in fields(self)} & _DOMAINS.keys():  # type: ignore[arg-type]
            found = _validate.real(name, getattr(self, name), _DOMAINS[name])
            object.__setattr__(self, name, found)

    def check(self, plan: hs.DPSGD, budget: hs.ApproxDP | None) -> None:
        """Raise where the plan has no noise for this or no clipping that it could follow."""
        if plan.clipping is not Clipping.INDIVIDUAL:
            raise IncompatibleError(
                f"{type(self).__name__} follows the lengths of single gradients; use Constant "
                "where whole batches are clipped"
            )
        for noise_multiplier in extremes(plan):
            self.multiplier(noise_multiplier)

    def accounted(self, plan: hs.DPSGD) -> hs.DPSGD:
        return plan

    def multiplier(self, noise_multiplier: float) -> float:
        return noise_multiplier

    def noise(self, noise_multiplier: float) -> float:
        """Return the standard deviation of the noise on the second query's sum."""
        return 0.0

    def units(self, whole: float) -> float:
        """Return how many units of its sum are 1 in the second query, whole in a clipping norm."""
        return 1.0

    def blank(self, gradients: Tensors) -> Tensors:
        """Return the second query's sum over no example."""
        return {}

    def weights(self, lengths: Any, norm: float) -> Any:
        """Return zeros and ones: the first row for the sum, others for sums of the second query."""
        return torch.ones_like(lengths).unsqueeze(0)

    def counted(self, lengths: Any, norm: float) -> Tensors:
        """Return the second query's sum over examples with such lengths before clipping."""
        return {}

    def joined(self, first: Tensors, second: Tensors) -> Tensors:
        """Return the second query's sum over two microbatches."""
        if self.largest:
            return {name: torch.maximum(first[name], second[name]) for name in first}
        return joined(first, second)

    def share(self, norm: float, queried: Tensors) -> float:
        """Return which part of the clipping norm the gradients' noise is a multiple of."""
        return 1.0

    @abstractmethod
    def learned(self, norm: float, memory: Tensors, gradients: Tensors, answers: Tensors) -> float:
        """Return the next norm, from what was released alone; what it needs later goes to memory.

        The gradients and answers are noisy sums over the expected size of a batch.
        """

    def _moved(self, norm: float, exponent: float) -> float:
        """Return a norm times exp of an exponent, within reach of the first one."""
        moved = norm * math.exp(min(max(exponent, -1.0), 1.0))
        return min(max(moved, self.norm / _REACH), self.norm * _REACH)


@final
@dataclass(frozen=True, slots=True)
class Constant(Clip):
    """One clipping norm C >= 1e-24 throughout, for the whole gradient or shared out to the layers.

    ``per_layer`` clips the gradient of each of L layers (modules with parameters of their own) to
    ``C/sqrt(L)``, so that an example's whole gradient is within C.

    Raises:
        ParameterError: If the norm is no such number.

    Example:
        >>> from hockeystick.adapters.torch import Constant
        >>> Constant(1.0, per_layer=True)
        Constant(norm=1.0, per_layer=True)
    """

    norm: float
    per_layer: bool = field(default=False, kw_only=True)

    def check(self, plan: hs.DPSGD, budget: hs.ApproxDP | None) -> None:
        pass

    def learned(self, norm: float, memory: Tensors, gradients: Tensors, answers: Tensors) -> float:
        return norm


@final
@dataclass(frozen=True, slots=True)
class Quantile(Clip):
    """A clipping norm that follows a quantile of the gradients' lengths, by a noisy count.

    Each step releases beside the gradients ``sum of (1[length <= C] - 1/2) + N(0, bit_noise^2)``
    of the same batch, whose sensitivity is 1/2 where a gradient's is C, and sets, from C = norm on,

        C <- C exp(-rate (noisy share - quantile)),    noisy share = noisy sum/expected size + 1/2.

    The plan's account holds: the gradients get ``hs.calibration.clipping_noise(z, bit_noise)``
    in place of z. ``hs.release.QuantileClipping`` is the same rule for rows of numpy.

    Raises:
        ParameterError: Unless norm >= 1e-24, quantile and rate are in [0, 1], and bit_noise is a
            finite number > 0, above half of the plan's noise multiplier.

    References:
        Andrew, Thakkar, McMahan and Ramaswamy, "Differentially Private Learning with Adaptive
        Clipping", NeurIPS 2021, theorem 1 and algorithm 1.

    Example:
        >>> from hockeystick.adapters.torch import Quantile
        >>> print(f"{Quantile(1.0, bit_noise=5.0).multiplier(1.0):.6f}")
        1.005038
    """

    norm: float
    quantile: float = field(default=0.5, kw_only=True)
    rate: float = field(default=0.2, kw_only=True)
    bit_noise: float = field(kw_only=True)

    def check(self, plan: hs.DPSGD, budget: hs.ApproxDP | None) -> None:
        if plan.adjacency is Adjacency.ZERO_OUT:
            raise IncompatibleError(
                "Quantile counts lengths: an example that is zeroed has length 0 and moves its bit "
                "by 1, not by 1/2; use add-remove"
            )
        Clip.check(self, plan, budget)

    def multiplier(self, noise_multiplier: float) -> float:
        return hs.calibration.clipping_noise(noise_multiplier, self.bit_noise)

    def noise(self, noise_multiplier: float) -> float:
        return self.bit_noise

    def units(self, whole: float) -> float:
        return 2.0

    def blank(self, gradients: Tensors) -> Tensors:
        first = next(iter(gradients.values()))
        return {"bits": torch.zeros((), dtype=torch.float64, device=first.device)}

    def counted(self, lengths: Any, norm: float) -> Tensors:
        return {"bits": (lengths <= norm).double().mul(2).sub(1).sum()}

    def learned(self, norm: float, memory: Tensors, gradients: Tensors, answers: Tensors) -> float:
        share = float(answers["bits"]) + 0.5
        return self._moved(norm, -self.rate * (share - self.quantile))


@final
@dataclass(frozen=True, slots=True)
class Online(Clip):
    """OSO-DPSGD: a clipping norm that goes where the loss falls, by a second noisy query.

    Each step releases g, the gradients, and ``q = sum of g_i/|g_i| over those longer than C``, of
    the same batch; q's sensitivity is 1 where that of g is C. From C = norm on, with the q of the
    step before,

        C <- C exp(rate sign(g . q_before)).

    The plan's account holds: g gets inflation times the plan's noise multiplier z, and q gets
    ``(1 - inflation^-2)^(-1/2) z`` (``hs.calibration.joint_noise``). The rule is derived for SGD;
    ``hs.release.OnlineClipping`` is the same for rows of numpy.

    Raises:
        ParameterError: Unless norm >= 1e-24, rate is in [0, 1] and inflation is above 1.

    References:
        Galli, Palamidessi and Cucinotta, "Online Sensitivity Optimization in Differentially Private
        Learning", AAAI 2024. A thesis that lists it as algorithm 3 noises q with the gradients'
        multiplier in line 13, which is less than its account assumes.

    Example:
        >>> from hockeystick.adapters.torch import Online
        >>> print(f"{Online(1.0).multiplier(2.0):.2f} {Online(1.0).noise(2.0):.4f}")
        2.02 14.2480
    """

    norm: float
    rate: float = field(default=0.0025, kw_only=True)
    inflation: float = field(default=1.01, kw_only=True)

    def multiplier(self, noise_multiplier: float) -> float:
        return hs.calibration.joint_noise(noise_multiplier, inflation=self.inflation).gradient

    def noise(self, noise_multiplier: float) -> float:
        return hs.calibration.joint_noise(noise_multiplier, inflation=self.inflation).query

    def units(self, whole: float) -> float:
        return whole

    def blank(self, gradients: Tensors) -> Tensors:
        return {name: torch.zeros_like(value) for name, value in gradients.items()}

    def weights(self, lengths: Any, norm: float) -> Any:
        return torch.stack([torch.ones_like(lengths), (lengths > norm).to(lengths)])

    def learned(self, norm: float, memory: Tensors, gradients: Tensors, answers: Tensors) -> float:
        before = dict(memory)
        memory.clear()
        memory.update(answers)
        if before.keys() != gradients.keys():  # the first step, or one that trains something else
            return norm
        product = sum(
            float(torch.sum(one * before[name].to(one))) for name, one in gradients.items()
        )
        return self._moved(norm, math.copysign(self.rate, product) if product else 0.0)


@final
@dataclass(frozen=True, slots=True)
class LargestNorm(Clip):
    """The "l2-max sensitivity" of Fed-alphaCDP, which is not private: its epsilon is infinite.

    Gradients are clipped to C >= 1e-24, and noised by the plan's noise multiplier times the largest
    length that is left in the batch, ``S = max of min(|g_i|, C)``. S is read off the private batch:
    where an example alone has a gradient, S is 0 without it. So ``private.plan`` has an inf-DP
    release beside the training, ``private.spent`` is inf from the start, and a budget is refused.
    Who has read this says ``not_private=True``. ``Quantile`` follows the lengths at a finite price.

    Raises:
        ParameterError: If the norm is no such number, or ``not_private`` is not True.

    References:
        Wei, Liu, Zhou, Chow and Wu, "Securing Distributed SGD against Gradient Leakage Threats",
        IEEE TPDS 2023, section 5: sensitivity is a maximum over all pairs of neighbours, where that
        paper takes one over the batch at hand.

    Example:
        >>> from hockeystick.adapters.torch import LargestNorm
        >>> LargestNorm(1.0, not_private=True)
        LargestNorm(norm=1.0)
    """

    norm: float
    not_private: bool = field(default=False, kw_only=True, repr=False)
    largest: ClassVar[bool] = True

    def __post_init__(self) -> None:
        Clip.__post_init__(self)
        if self.not_private is not True:
            reason = "noise whose scale is the largest norm of the private batch has epsilon = inf"
            raise ParameterError("not_private", self.not_private, f"True: {reason}")

    def check(self, plan: hs.DPSGD, budget: hs.ApproxDP | None) -> None:
        Clip.check(self, plan, budget)
        if budget is not None:
            raise IncompatibleError(
                f"LargestNorm has epsilon = inf, which is not within {budget}; use Quantile"
            )

    def accounted(self, plan: hs.DPSGD) -> hs.DPSGD:
        return not_accounted(plan)

    def blank(self, gradients: Tensors) -> Tensors:
        first = next(iter(gradients.values()))
        return {"longest": torch.zeros((), dtype=torch.float64, device=first.device)}

    def counted(self, lengths: Any, norm: float) -> Tensors:
        finite = torch.where(torch.isfinite(lengths), lengths, 0.0)
        return {"longest": finite.max().clamp(max=norm)}

    def share(self, norm: float, queried: Tensors) -> float:
        return float(queried["longest"]) / norm

    def learned(self, norm: float, memory: Tensors, gradients: Tensors, answers: Tensors) -> float:
        return norm


def not_accounted(plan: hs.DPSGD) -> hs.DPSGD:
    """Return a plan beside a release that nothing is known of, so that epsilon is inf."""
    unknown = hs.PureDP(math.inf)
    return replace(plan, extra=unknown if plan.extra is None else plan.extra @ unknown)


def joined(first: Tensors, second: Tensors) -> Tensors:
    """Return the sums of two parts, the first of which may be of nothing yet."""
    return {name: first[name] + value if first else value for name, value in second.items()}


def extremes(plan: hs.DPSGD) -> tuple[float, ...]:
    """Return the least and the largest noise multiplier."""
    if plan.schedule is None or plan.total_steps == 0:
        return (plan.noise_multiplier,)
    noises = plan.noise_multipliers
    return float(noises.min()), float(noises.max())
