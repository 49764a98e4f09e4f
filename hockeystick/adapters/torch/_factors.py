"""Gradients of linear layers and embeddings in factors, without a matrix for each example.

Let an example have inputs ``a_t`` of a linear layer and gradients ``g_t`` of its outputs, at places
t of a text, say. Its gradient by the weight is ``sum_t g_t a_t^T``, of squared length
``sum_(s,t) (g_s . g_t) (a_s . a_t)``, and a sum of clipped ones is one product of two matrices
(Goodfellow 2015; Li, Tramer, Liang and Hashimoto 2022; Bu, Wang, Zha and Karypis 2023). Of an
embedding ``a_t`` has a single one, at what is looked up.

The gradients of the outputs are those by zeros that are added to them, in the pass of each example
alone: no example is in another one's factors.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, final

import torch
from torch import nn

Tensors = dict[str, Any]
Call = tuple[str, int]  # of a layer's name, and at which of its calls
# Times the root of the number of products, what rounding takes off a squared length, relative to
# the square of the sum of all places' lengths, which may nearly cancel.
_ROUNDING: Final = 2.0**-21
# In single precision a sum of so many squares is right to six digits; one of 10^8 stops growing.
_BLOCK: Final = 1024
# Squares of what is far below this vanish in single precision.
_TINY: Final = 1e-10
# Of no smaller length than the square of its inverse are rows made longer, so that 0 stays 0.
_MOST: Final = 1e30
# Gradients by both ways differ by no more, relative to the largest entry.
_ALIKE: Final = 1e-3


class LayerDiffersError(Exception):
    """A layer, of this name, is used in another way than for the first example."""


@final
@dataclass(frozen=True, slots=True)
class Rows:
    """Each example's gradient by a parameter, as a row."""

    rows: Any

    @property
    def shape(self) -> Any:
        return self.rows.shape[1:]

    @property
    def matrix(self) -> Any:
        return self.rows.reshape(len(self.rows), self.shape.numel())

    def lengths(self, limit: float) -> Any:
        """Return lengths in double precision, of blocks in the rows' own, for a clipping norm."""
        rows = self.matrix
        if limit < _TINY:
            return length(rows)
        width = rows.shape[1]
        whole = width - width % _BLOCK
        if whole == 0:
            found = torch.linalg.vector_norm(rows, dim=-1).double()
        else:
            blocks = torch.linalg.vector_norm(rows[:, :whole].unflatten(1, (-1, _BLOCK)), dim=-1)
            rest = torch.linalg.vector_norm(rows[:, whole:], dim=-1).unsqueeze(1)
            found = length(torch.cat([blocks.double(), rest.double()], dim=1))
        if not bool(torch.isfinite(found).all()):  # squares of 10^19 are infinite in single
            largest = rows.abs().amax(dim=1).double().clamp(min=1.0)
            found = largest * length(rows.double() / largest.unsqueeze(1))
        return found

    def kept(self, which: Any) -> Rows:
        """Return the same with 0 in place of the examples that are not kept."""
        return Rows(torch.where(which.unsqueeze(1), self.matrix, 0.0).view_as(self.rows))

    def summed(self, weights: Any) -> Any:
        rows = self.matrix
        return (weights.to(rows.dtype) @ rows).view(-1, *self.shape)


@final
@dataclass(frozen=True, slots=True)
class Outer:
    """Each example's gradient ``sum_t s_t g_t a_t^T`` by a weight, of vectors a and g of length 1.

    What one example has decides nothing about another: not how its own lengths are computed either.
    """

    inputs: Any
    outputs: Any
    sizes: Any

    @classmethod
    def of(cls, inputs: Any, outputs: Any) -> Outer:
        lengths = length(inputs), length(outputs)
        return cls(_unit(inputs, lengths[0]), _unit(outputs, lengths[1]), math.prod(lengths))

    @property
    def shape(self) -> Any:
        return torch.Size((self.outputs.shape[2], self.inputs.shape[2]))

    def lengths(self, limit: float) -> Any:
        """Return no smaller lengths, and infinite ones where a number of the gradient is."""
        most = self.sizes.sum(dim=1)
        if self.sizes.shape[1] == 1:
            found = most
        else:
            a, g = self.inputs, self.outputs
            cosines = ((a @ a.mT) * (g @ g.mT)).double()
            squares = (self.sizes.unsqueeze(1) @ cosines @ self.sizes.unsqueeze(2)).flatten()
            rounding = _ROUNDING * math.sqrt(sum(self.shape)) * most.square()
            found = (squares.clamp(min=0.0) + rounding).sqrt()
        for example in torch.nonzero(~(most < torch.finfo(self.outputs.dtype).max)).flatten():
            a, g = (one[example].double() for one in (self.inputs, self.outputs))
            row = ((g * self.sizes[example].unsqueeze(1)).T @ a).to(self.outputs.dtype)
            if not bool(torch.isfinite(row).all()):
                found[example] = math.inf
        return found

    def kept(self, which: Any) -> Outer:
        sizes = torch.where(which.unsqueeze(1), self.sizes, 0.0)
        return Outer(_kept(self.inputs, which), _kept(self.outputs, which), sizes)

    def summed(self, weights: Any) -> Any:
        inputs = self.inputs.flatten(0, 1)
        return torch.stack(
            [_times(self.outputs, one.unsqueeze(1) * self.sizes).T @ inputs for one in weights]
        )


@final
@dataclass(frozen=True, slots=True)
class LookedUp:
    """Each example's gradient by an embedding of some entries: which it looks up, and its g."""

    places: Any
    outputs: Any
    entries: int

    @property
    def shape(self) -> Any:
        return torch.Size((self.entries, self.outputs.shape[2]))

    def lengths(self, limit: float) -> Any:
        examples = torch.arange(len(self.places), device=self.places.device).unsqueeze(1)
        keys = examples * self.entries + self.places
        found, rows = torch.unique(keys, return_inverse=True)
        sums = self.outputs.new_zeros((len(found), self.outputs.shape[2]), dtype=torch.float64)
        sums.index_add_(0, rows.flatten(), self.outputs.flatten(0, 1).double())
        squares = sums.new_zeros(len(self.places))
        return squares.index_add_(0, found // self.entries, sums.square().sum(dim=1)).sqrt()

    def kept(self, which: Any) -> LookedUp:
        return replace(self, outputs=_kept(self.outputs, which))

    def summed(self, weights: Any) -> Any:
        zeros, at = self.outputs.new_zeros(self.shape), self.places.flatten()
        each = (one.unsqueeze(1).expand_as(self.places) for one in weights)
        return torch.stack([zeros.index_add(0, at, _times(self.outputs, one)) for one in each])


Part = Rows | Outer | LookedUp


def length(rows: Any) -> Any:
    return torch.linalg.vector_norm(rows, dim=-1, dtype=torch.float64)


def _unit(rows: Any, lengths: Any) -> Any:
    """Return rows over their lengths, and of 0 where they are 0."""
    scales = lengths.rsqrt().clamp(max=_MOST).unsqueeze(2).to(rows.dtype)
    return (rows * scales).mul_(scales)  # half of it twice, which single precision holds


def _kept(rows: Any, which: Any) -> Any:
    return torch.where(which.view(-1, 1, 1), rows, 0.0)


def _times(outputs: Any, weights: Any) -> Any:
    return (outputs * weights.unsqueeze(2).to(outputs.dtype)).flatten(0, 1)


@final
class Layers:
    """The layers whose gradients are taken in factors, by what is added to each call's output."""

    def __init__(self, model: Any) -> None:
        self._named = dict(model.named_modules())
        self.probes: dict[Call, Any] = {}
        self.whole = False  # whether one pass back finds the probes of all examples

    @contextmanager
    def watched(self, probes: Mapping[Call, Any] | None) -> Iterator[dict[Call, Any]]:
        """Add probes to what layers return, and give the inputs of each call.

        Without probes, give inputs and outputs of each layer that there is a rule for.
        """
        seen: dict[Call, Any] = {}
        ruled = (name for name, one in self._named.items() if _has_rule(one))
        names = dict.fromkeys(ruled if probes is None else (name for name, _ in probes))
        for name in names:
            self._named[name].forward = partial(self._forward, name, seen, probes)
        try:
            yield seen
        finally:
            for name in names:
                del self._named[name].forward
        for call in probes or ():
            if call not in seen:
                raise LayerDiffersError(call[0])

    def _forward(
        self, name: str, seen: dict[Call, Any], probes: Mapping[Call, Any] | None, given: Any
    ) -> Any:
        """Return a layer's output, of which its own parameters get no gradient, and a probe."""
        layer, call = self._named[name], (name, sum(name == other for other, _ in seen))
        if isinstance(layer, nn.Embedding):
            found = nn.functional.embedding(given, layer.weight.detach(), layer.padding_idx)
        else:
            bias = None if layer.bias is None else layer.bias.detach()
            found = nn.functional.linear(given, layer.weight.detach(), bias)
        if probes is None:
            seen[call] = given, found
            return found
        if call not in probes or probes[call].shape != found.shape:
            raise LayerDiffersError(name)
        seen[call] = given
        return found + probes[call]

    def choose(self, seen: Mapping[Call, Any], trained: Tensors) -> None:
        """Choose the layers for which factors cost less than a matrix for each example."""
        found = (one for part in self._named.values() for one in part._parameters.values())
        owners = Counter(map(id, found))
        for name in dict.fromkeys(name for name, _ in seen):
            layer, calls = self._named[name], [call for call in seen if call[0] == name]
            alone = all(owners[id(one)] == 1 for one in layer.parameters())
            inner = any(_is_inner(one) for call in calls for one in seen[call])
            flat = any(seen[call][1].dim() < 3 or not seen[call][1].numel() for call in calls)
            if inner or flat or not alone or inside(name, "weight") not in trained:
                continue
            places = sum(math.prod(seen[call][1].shape[1:-1]) for call in calls)
            if isinstance(layer, nn.Embedding) or places**2 <= layer.weight.numel():
                self.probes |= {call: torch.zeros_like(seen[call][1][0]) for call in calls}

    def drop(self, name: str) -> None:
        self.probes = {call: one for call, one in self.probes.items() if call[0] != name}

    def entries(self, params: Tensors) -> int:
        """Return how many numbers the gradients of one example are held in."""
        found = {name: value.numel() for name, value in params.items()}
        places = Counter[str]()
        for (name, _), probe in self.probes.items():
            places[name] += probe.numel() // probe.shape[-1]
        for name, count in places.items():
            found[inside(name, "weight")] = count * (sum(self._named[name].weight.shape) + count)
        return sum(found.values())

    def parts(self, found: Tensors, probed: Sequence[Any], seen: Sequence[Any]) -> dict[str, Part]:
        """Return gradients in rows, and those of the chosen layers in factors."""
        parts = dict[str, Part](zip(found, map(Rows, found.values()), strict=True))
        for name in dict.fromkeys(name for name, _ in self.probes):
            layer, weight, bias = self._named[name], inside(name, "weight"), inside(name, "bias")
            if weight not in found:  # it is trained no more
                raise LayerDiffersError(name)
            own = [place for place, call in enumerate(self.probes) if call[0] == name]
            outputs = _places([probed[place] for place in own]).to(found[weight].dtype)
            inputs = [seen[place] for place in own]
            used = any(_is_used(found[one]) for one in (weight, bias) if one in found)
            if used or any(map(_is_inner, inputs)):
                raise LayerDiffersError(name)
            if isinstance(layer, nn.Embedding):
                looked = torch.cat([one.flatten(1) for one in inputs], dim=1)
                if layer.padding_idx is not None:
                    outputs = torch.where((looked != layer.padding_idx).unsqueeze(2), outputs, 0.0)
                parts[weight] = LookedUp(looked, outputs, layer.num_embeddings)
                continue
            parts[weight] = Outer.of(_places(inputs).to(outputs.dtype), outputs)
            if bias in found:
                parts[bias] = Rows(outputs.sum(dim=1))
        return parts


def _places(calls: list[Any]) -> Any:
    return torch.cat([one.flatten(1, -2) for one in calls], dim=1)


def inside(name: str, parameter: str) -> str:
    return f"{name}.{parameter}" if name else parameter


def _has_rule(layer: Any) -> bool:
    if "forward" in layer.__dict__ or "weight" not in layer._parameters:
        return False
    by_row = type(layer) is nn.Embedding and not layer.scale_grad_by_freq
    return by_row or (type(layer) is nn.Linear and "bias" in layer._parameters)


def _is_inner(tensor: Any) -> bool:
    """Return whether a tensor is of a gradient inside the loss, which a weight is used in twice."""
    return bool(torch._C._functorch.is_functorch_wrapped_tensor(tensor))


def _is_used(gradient: Any) -> bool:
    """Return whether a parameter is used outside its layer: else its gradient is one zero."""
    return bool(gradient[:1].any()) or (len(gradient) > 1 and gradient.stride(0) != 0)


def are_alike(one: Part, other: Part) -> bool:
    found, expected = (part.summed(torch.ones(1, 1)) for part in (one, other))
    return bool(((found - expected).abs() <= _ALIKE * expected.abs().max()).all())
