"""What each example's gradient is clipped to, and sums of clipped gradients a few at a time.

A second query of a step's batch is released with noise of its own, and the gradients' noise is
raised until both together cost what the plan's ``noise_multiplier`` does: in units of their
sensitivities both are one Gaussian release, ``z^-2 = z_gradients^-2 + z_query^-2``. So the account
of the plan holds as it is, whatever the sampling.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, fields
from functools import lru_cache
from operator import itemgetter
from typing import Any, Final, final
from unittest.mock import patch

import torch
from torch import nn
from torch.func import functional_call, grad_and_value, vmap
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.utils import parametrize
from torch.utils import _pytree as trees

import hockeystick as hs
from hockeystick import _validate
from hockeystick._validate import Domain
from hockeystick.adapters.torch._noise import Real
from hockeystick.adjacency import Adjacency
from hockeystick.calibration import clipping_noise, joint_noise
from hockeystick.errors import IncompatibleError, ParameterError
from hockeystick.mechanisms.sampling.poisson import Clipping

Tensors = dict[str, Any]
_OPEN: Final[dict[str, Any]] = {"high": math.inf, "low_open": True, "high_open": True}
_DOMAINS: Final = {
    "norm": Domain(symbol="C", low=1e-24, high=math.inf, high_open=True, typical=(0.1, 10)),
    "quantile": Domain(symbol="gamma", low=0, high=1, typical=(0.1, 0.9)),
    "rate": Domain(symbol="eta", low=0, high=1, typical=(0.001, 0.5)),
    "bit_noise": Domain(symbol="sigma", low=0, typical=(1, 100), **_OPEN),
    "inflation": Domain(symbol="r", low=1, typical=(1.001, 1.5), **_OPEN),
}
_bits_noise: Final = lru_cache(maxsize=1024)(clipping_noise)
_directions_noise: Final = lru_cache(maxsize=1024)(joint_noise)
# A norm that follows noisy answers stays within this factor of the first one.
_REACH: Final = 1e6


LossFn = Callable[..., Any]
Examples = tuple[Any, ...]
# In single precision a sum of so many squares is right to six digits; one of 10^8 stops growing.
_BLOCK: Final = 1024
_ON_CPU: Final = 2**25
_ELSEWHERE: Final = 2**30
_FEWEST: Final = 8
# Squares of what is far below this vanish in single precision.
_TINY: Final = 1e-10
# Words of what torch says where it takes no gradients of examples one by one.
_OF_TORCH_FUNC: Final = ("torch.func", "functorch", "vmap", "transform", "data pointer")
_RECURRENT: Final = (nn.RNNBase, nn.RNNCellBase)
_BY_VALUES: Final = (
    "the model or loss_fn decides by the values of a tensor (if, .item(), a packed sequence): "
    "single gradients are taken of all examples at once; use torch.where, or masks"
)
_NOT_TAKEN: Final = (
    "the model or loss_fn does what torch.func takes no single gradients of, such as activation "
    "checkpointing, an autograd.Function without setup_context, or a write in place"
)
_CACHED: Final = "private.step runs outside torch.nn.utils.parametrize.cached(): gradients get lost"
_TAKEN_OUT: Final = (
    "loss_fn uses parameters of the model that were taken out of it before, whose gradient is "
    "lost: read them from the model inside loss_fn, or detach() them"
)
_READ_ONLY: Final = (
    "free of buffers, weights and modules that its forward sets: they keep of examples what no "
    "noise hides; set them between steps, or by eval() of the layer"
)


class Clip:
    """A rule for the clipping norm; what it releases is paid for out of the plan's own noise."""

    __slots__ = ()
    norm: float
    per_layer: bool = False

    def __post_init__(self) -> None:
        for name in {one.name for one in fields(self)} & _DOMAINS.keys():  # type: ignore[arg-type]
            found = _validate.real(name, getattr(self, name), _DOMAINS[name])
            object.__setattr__(self, name, found)

    def check(self, plan: hs.DPSGD) -> None:
        """Raise where the plan has no clipping that it could follow."""
        name = type(self).__name__
        if not isinstance(self, Constant) and plan.clipping is not Clipping.INDIVIDUAL:
            raise IncompatibleError(f"{name} is of single gradients; use Constant for batches")
        if isinstance(self, Quantile) and plan.adjacency is Adjacency.ZERO_OUT:
            raise IncompatibleError("a zeroed example moves its bit by 1, not 1/2; use add-remove")

    def noises(self, noise_multiplier: float) -> tuple[float, float]:
        """Return the noise of gradients in clipping norms, and of the second query's sum."""
        return noise_multiplier, 0.0

    def units(self, whole: float) -> float:
        """Return how many units of its sum are 1 in the second query, whole in a clipping norm."""
        return whole

    def query(self, lengths: Any, norm: float) -> tuple[Any, Tensors]:
        """Return rows of zeros and ones, whom the sum and the second query have, or the latter."""
        return torch.ones_like(lengths).unsqueeze(0), {}

    def learned(self, norm: float, memory: Tensors, gradients: Tensors, answers: Tensors) -> float:
        """Return the next norm, from noisy means alone; what it needs later goes to memory."""
        return norm

    def _moved(self, norm: float, exponent: float) -> float:
        moved = norm * math.exp(min(max(exponent, -1.0), 1.0))
        return min(max(moved, self.norm / _REACH), self.norm * _REACH)


@final
@dataclass(frozen=True, slots=True)
class Constant(Clip):
    """One clipping norm C >= 1e-24 throughout, for the whole gradient or shared out to the layers.

    ``per_layer`` clips the gradient of each of L layers (modules with parameters of their own) to
    ``C/sqrt(L)``, so that an example's whole gradient is within C.

    Example:
        >>> from hockeystick.adapters.torch import Constant
        >>> Constant(1.0, per_layer=True)
        Constant(norm=1.0, per_layer=True)
    """

    norm: float
    per_layer: bool = field(default=False, kw_only=True)


@final
@dataclass(frozen=True, slots=True)
class Quantile(Clip):
    """A clipping norm that follows a quantile of the gradients' lengths, by a noisy count.

    Each step releases beside the gradients ``sum of (1[length <= C] - 1/2) + N(0, bit_noise^2)``
    of the same batch, of sensitivity 1/2, and sets, from C = norm on,

        C <- C exp(-rate (noisy share - quantile)),    noisy share = noisy sum/expected size + 1/2.

    The gradients' noise is ``hs.calibration.clipping_noise(z, bit_noise)`` in place of z, so that
    the plan's account holds. ``hs.release.QuantileClipping`` is the same for rows of numpy.

    Raises:
        ParameterError: Unless norm >= 1e-24, quantile and rate are in [0, 1], and bit_noise is a
            finite number > 0, above half of the plan's noise multiplier.

    References:
        Andrew, Thakkar, McMahan and Ramaswamy, "Differentially Private Learning with Adaptive
        Clipping", NeurIPS 2021, theorem 1 and algorithm 1.

    Example:
        >>> from hockeystick.adapters.torch import Quantile
        >>> Quantile(1.0, bit_noise=5.0)
        Quantile(norm=1.0, quantile=0.5, rate=0.2, bit_noise=5.0)
    """

    norm: float
    quantile: float = field(default=0.5, kw_only=True)
    rate: float = field(default=0.2, kw_only=True)
    bit_noise: float = field(kw_only=True)

    def noises(self, noise_multiplier: float) -> tuple[float, float]:
        return _bits_noise(noise_multiplier, self.bit_noise), self.bit_noise

    def units(self, whole: float) -> float:
        return 2.0

    def query(self, lengths: Any, norm: float) -> tuple[Any, Tensors]:
        bits = (lengths <= norm).double().mul(2).sub(1).sum()
        return torch.ones_like(lengths).unsqueeze(0), {"bits": bits}

    def learned(self, norm: float, memory: Tensors, gradients: Tensors, answers: Tensors) -> float:
        share = float(answers["bits"]) + 0.5
        return self._moved(norm, -self.rate * (share - self.quantile))


@final
@dataclass(frozen=True, slots=True)
class Online(Clip):
    """OSO-DPSGD: a clipping norm that goes where the loss falls, by a second noisy query.

    Each step releases g, the gradients, and ``q = sum of g_i/|g_i| over those longer than C``, of
    the same batch and of sensitivity 1. From C = norm on, with the q of the step before,

        C <- C exp(rate sign(g . q_before)).

    The plan's account holds: g gets inflation times the plan's noise multiplier z, and q gets
    ``(1 - inflation^-2)^(-1/2) z`` (``hs.calibration.joint_noise``). It is derived for SGD;
    ``hs.release.OnlineClipping`` is the same for rows of numpy.

    Raises:
        ParameterError: Unless norm >= 1e-24, rate is in [0, 1] and inflation is above 1.

    References:
        Galli, Palamidessi and Cucinotta, "Online Sensitivity Optimization in Differentially Private
        Learning", AAAI 2024. A thesis that lists it as algorithm 3 noises q with the gradients'
        multiplier in line 13, which is less than its account assumes.

    Example:
        >>> from hockeystick.adapters.torch import Online
        >>> Online(1.0)
        Online(norm=1.0, rate=0.0025, inflation=1.01)
    """

    norm: float
    rate: float = field(default=0.0025, kw_only=True)
    inflation: float = field(default=1.01, kw_only=True)

    def noises(self, noise_multiplier: float) -> tuple[float, float]:
        found = _directions_noise(noise_multiplier, inflation=self.inflation)
        return found.gradient, found.query

    def query(self, lengths: Any, norm: float) -> tuple[Any, Tensors]:
        return torch.stack([torch.ones_like(lengths), (lengths > norm).to(lengths)]), {}

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


# Sums of clipped gradients, of each example or of whole batches.


def clipped_sum(
    gradients: Tensors, norm: float, arithmetic: Real, clip: Clip
) -> tuple[Tensors, Tensors]:
    """Return the sum of clipped gradients in rows, and that of the second query.

    Each group, of all parameters or a layer's, is clipped to ``norm / sqrt(number of groups)``.
    """
    sums: Tensors = {}
    queried: Tensors = {}
    groups: dict[str, list[str]] = {}
    for name in gradients:
        groups.setdefault(name.rpartition(".")[0] if clip.per_layer else "", []).append(name)
    for names in groups.values():
        given = [gradients[name] for name in names]
        parts = [one.reshape(len(one), math.prod(one.shape[1:])) for one in given]
        limit = norm / math.sqrt(len(groups))
        lengths = _length(torch.stack([_lengths(part, limit) for part in parts], dim=1))
        weights, more = clip.query(lengths, norm)
        found = arithmetic.sums(parts, lengths, norm, len(groups), weights)
        for name, rows in zip(names, found, strict=True):
            sums[name] = rows[0].reshape(gradients[name].shape[1:])
            if len(rows) > 1:
                queried[name] = rows[1].reshape(gradients[name].shape[1:])
        queried |= more
    return sums, queried


def _lengths(rows: Any, limit: float) -> Any:
    """Return the length of each row in double precision, of blocks in the rows' own."""
    if limit < _TINY:
        return _length(rows.double())
    width = rows.shape[1]
    whole = width - width % _BLOCK
    if whole == 0:
        found = _length(rows).double()
    else:
        blocks = _length(rows[:, :whole].unflatten(1, (-1, _BLOCK))).double()
        found = _length(torch.cat([blocks, _length(rows[:, whole:]).double().unsqueeze(1)], dim=1))
    if not bool(torch.isfinite(found).all()):  # squares of 10^19 are infinite in single precision
        largest = rows.abs().amax(dim=1).double().clamp(min=1.0)
        found = largest * _length(rows.double() / largest.unsqueeze(1))
    return found


def _length(rows: Any) -> Any:
    return torch.linalg.vector_norm(rows, dim=-1)


def individual(
    model: Any, loss_fn: LossFn, params: Tensors, kept: Tensors, chunk: Examples, by_batch: bool
) -> tuple[Tensors, Any]:
    """Return the examples' gradients by the parameters in rows, and the sum of their losses.

    Or the gradient of that sum alone. Nothing of a microbatch is there for the next one.
    """
    if not chunk:
        rows = () if by_batch else (0,)
        return {name: value.new_zeros((*rows, *value.shape)) for name, value in params.items()}, 0.0
    own = [one for one in model.parameters() if one.requires_grad]
    modules = [*model.modules(), *(loss_fn.modules() if isinstance(loss_fn, nn.Module) else ())]
    places = (None, None, *(0 for _ in chunk))
    loss = _loss(model, loss_fn)
    each = vmap(loss if by_batch else grad_and_value(loss), places, randomness="different")
    total = grad_and_value(lambda *both: each(*both, *chunk).sum())
    with _untouched(modules, params | kept), torch.enable_grad(), _single_gradients(model):
        found, losses = total(params, kept) if by_batch else each(params, kept, *chunk)
        if losses.requires_grad:  # by a way that no gradient was taken along
            past = torch.autograd.grad(losses.sum(), own, allow_unused=True)
            if any(one is not None for one in past):
                raise IncompatibleError(_TAKEN_OUT)
    return {name: one.detach() for name, one in found.items()}, losses.detach().sum()


def sensible(params: Tensors) -> int:
    """Return how many examples' gradients are computed at once where nobody says.

    No data decide it. A CPU is fastest where gradients fit its cache, and no fewer than 8.
    """
    gradient = sum(value.numel() * value.element_size() for value in params.values())
    on_cpu = next(iter(params.values())).device.type == "cpu"
    return int(max((_ON_CPU if on_cpu else _ELSEWHERE) // max(gradient, 1), _FEWEST))


def chunks(examples: Examples, size: int | None) -> Iterator[Examples]:
    """Return copies of the examples in blocks, which a forward may write to; one of no examples."""
    count = len(trees.tree_leaves(examples)[0]) if examples else 1
    for start in range(0, count, size or count):
        block = slice(start, start + (size or count))
        yield trees.tree_map(torch.clone, trees.tree_map(itemgetter(block), examples))


class _WithLoss(nn.Module):  # type: ignore[misc]  # torch may have no types
    """A model with its loss, which finds the parameters that are differentiated in the model."""

    def __init__(self, model: Any, loss_fn: LossFn) -> None:
        super().__init__()
        self.model, self._loss_fn = model, (loss_fn,)

    def forward(self, given: Any, *targets: Any) -> Any:
        named = given if isinstance(given, dict) else {}
        places = () if isinstance(given, dict) else given if isinstance(given, tuple) else (given,)
        found = self._loss_fn[0](self.model(*places, **named), *targets)
        if not isinstance(found, torch.Tensor) or found.is_complex():
            raise ParameterError("loss_fn", type(found).__name__, "one that returns a real tensor")
        return found.sum()


def _loss(model: Any, loss_fn: LossFn) -> Callable[..., Any]:
    """Return the loss of one example as a function of the parameters and other tensors."""
    together = _WithLoss(model, loss_fn)

    def loss(params: Tensors, kept: Tensors, *example: Any) -> Any:
        one = trees.tree_map(lambda part: part.unsqueeze(0), example)
        given = {f"model.{name}": value for name, value in (params | kept).items()}
        before = dict(given)
        found = functional_call(together, given, one)
        for name, value in before.items():
            if given[name] is not value:  # functional_call says here what was put in its place
                raise ParameterError("model", name.removeprefix("model."), _READ_ONLY)
        return found

    return loss


@contextmanager
def _untouched(modules: list[Any], given: Tensors) -> Iterator[None]:
    """Put back what modules keep as it was before a microbatch; raise if tensors were written.

    What goes on from one microbatch to the next lets an example move the gradients of others, or
    tells how many there are.
    """
    before = [(one, _kept(one)) for one in modules]
    versions = [one._version for one in given.values()]
    try:
        yield
    finally:
        changed = [
            f"{kind[1:-1]} {name} of {type(module).__name__}"
            for module, (_, held) in before
            for kind in ("_buffers", "_parameters", "_modules")
            for name in held[kind].keys() | getattr(module, kind).keys()
            if held[kind].get(name) is not getattr(module, kind).get(name)
        ]
        for module, (attributes, held) in before:
            module.__dict__.clear()
            module.__dict__.update(attributes)
            for name, contents in held.items():
                own = attributes[name]
                own.clear()
                (own.extend if isinstance(own, list) else own.update)(contents)
        written = zip(given.items(), versions, strict=True)
        changed += [name for (name, one), version in written if one._version != version]
        if changed:
            raise ParameterError("model", changed[0], _READ_ONLY)


def _kept(module: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    own = dict(module.__dict__)
    holders = {name: one for name, one in own.items() if isinstance(one, dict | list | set)}
    return own, {name: one.copy() for name, one in holders.items()}


# What lets the gradients of single examples be taken of layers that were not made for it.


@contextmanager
def _single_gradients(model: Any) -> Iterator[None]:
    """Compute each layer of a model in a way that is known for an example alone; or raise."""
    if parametrize._cache_enabled:
        raise IncompatibleError(_CACHED)
    with ExitStack() as stack:
        stack.enter_context(sdpa_kernel(SDPBackend.MATH))  # the fused kernels have no such rule
        masks: Any = sys.modules.get("transformers.masking_utils")
        if hasattr(masks, "is_tracing"):  # as in a trace, where nobody reads the masks' values
            stack.enter_context(patch.object(masks, "is_tracing", lambda tensor=None: True))
        recurrent = [one for one in model.modules() if isinstance(one, _RECURRENT)]
        for module in recurrent:
            hook = module.register_forward_pre_hook(_first_state, with_kwargs=True)
            stack.callback(hook.remove)
        if recurrent:  # those of oneDNN have no rule for single examples
            enabled, *_ = torch.backends.mkldnn.set_flags(_enabled=False)
            stack.callback(torch.backends.mkldnn.set_flags, _enabled=enabled)
        try:
            yield
        except RuntimeError as error:
            said = str(error)
            if "data-dependent control flow" in said:
                raise IncompatibleError(_BY_VALUES) from error
            if not any(word in said for word in _OF_TORCH_FUNC):
                raise
            raise IncompatibleError(f"{_NOT_TAKEN}: {said.splitlines()[0]}") from error


def _first_state(module: Any, given: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """Return a recurrent layer's arguments with a state of zeros, which examples do not share."""
    rows, *state = (*given, *(named[name] for name in ("input", "hx") if name in named))
    if isinstance(rows, nn.utils.rnn.PackedSequence):
        raise IncompatibleError(_BY_VALUES)
    if state and state[0] is not None:
        return None
    if isinstance(module, nn.RNNCellBase):
        sizes, size = tuple(rows.shape[:-1]), module.hidden_size
    else:
        batch = () if rows.dim() == 2 else (rows.shape[0 if module.batch_first else 1],)
        sizes = (module.num_layers * (2 if module.bidirectional else 1), *batch)
        size = module.proj_size or module.hidden_size
    hidden = rows.new_zeros(*sizes, size)
    cells = rows.new_zeros(*sizes, module.hidden_size)
    return (rows, (hidden, cells) if isinstance(module, nn.LSTM | nn.LSTMCell) else hidden), {}
