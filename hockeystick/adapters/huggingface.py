"""Hugging Face's trainers with private steps: ``Trainer``, and those derived from it, as TRL's.

A trainer keeps its own loop, optimizer, schedule, logs and checkpoints. Its batches are drawn as
the plan says, its gradients are clipped example by example, and its optimizer's steps are counted
and noised.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, final

import hockeystick as hs
from hockeystick import _validate
from hockeystick.adapters import missing
from hockeystick.errors import IncompatibleError, ParameterError

try:
    import torch
    from transformers import Trainer

    from hockeystick.adapters.torch import Loading, make_private
    from hockeystick.adapters.torch._batches import Batch, without_rows
    from hockeystick.adapters.torch._own_loop import Batches
except ModuleNotFoundError as _error:
    raise missing(_error, "transformers", "huggingface") from _error

__all__ = ["PrivateSteps", "PrivateTrainer"]

_NOT_PRIVATE: Final = ("loss", "train_loss", "grad_norm")
_SPENT: Final = "privacy.json"
_USUAL: Final[Mapping[str, Any]] = {
    "gradient_accumulation_steps": 1,
    "fp16": False,
    "bf16": False,
    "label_smoothing_factor": 0.0,
}


class PrivateSteps:
    """What makes a trainer's steps private: ``class Mine(PrivateSteps, SFTTrainer)``.

    The loss of an example is the ``loss`` that the model returns for it alone. Logs have "epsilon"
    of the steps that ran in the place of losses, which are not private, and each checkpoint has it
    in "privacy.json". What is evaluated is not private either.

    Args:
        *given: As for the trainer, and so are the named ones that are not listed here.
        plan: How batches are drawn, clipped and noised, and for how many steps, which takes the
            place of the trainer's batch size, epochs and steps.
        delta: Where the logged epsilon holds, in [0, 1].
        pad_to: As in ``Loading``: the length that texts are padded or cut to.
        **options: ``clipping``, ``arithmetic``, ``microbatch``, ``counting`` and ``not_private`` as
            for ``make_private``, and the trainer's.

    Raises:
        ParameterError: If the trainer's arguments accumulate gradients, smooth labels, or compute
            in 16 bits.
        IncompatibleError: If a run is resumed from a trainer's checkpoint, whose steps are counted
            by its journal alone.
    """

    def __init__(
        self, *given: Any, plan: hs.DPSGD, delta: float, pad_to: int | None = None, **options: Any
    ) -> None:
        self.plan: hs.DPSGD = plan
        self.delta: float = _validate.one("delta", delta)
        self._pad_to = pad_to
        own = ("clipping", "arithmetic", "microbatch", "counting", "not_private")
        self._how: dict[str, Any] = {name: options.pop(name) for name in own if name in options}
        self.private: Any = None  # until it trains
        super().__init__(*given, **options)
        arguments: Any = self.args  # type: ignore[attr-defined]  # the trainer's
        for name, allowed in _USUAL.items():
            if getattr(arguments, name) != allowed:
                raise ParameterError(name, getattr(arguments, name), repr(allowed))

    def get_train_dataloader(self) -> Any:
        trainer: Any = self
        trainer.args.num_train_epochs, trainer.args.max_steps = 1, -1  # the plan has all steps
        trainer.create_optimizer()
        loading = Loading(
            collate=trainer._get_collator_with_removed_columns(trainer.data_collator, "training"),
            pad_to=self._pad_to,
            num_workers=trainer.args.dataloader_num_workers,
        )
        given = trainer.model, trainer.optimizer, trainer.train_dataset, self.plan
        self.private = make_private(*given, loading=loading, **self._how)
        return Batches(self.private, self._give)

    def _give(self, batch: Batch) -> Any:
        self._batch = batch
        return (batch.examples or without_rows(self.private.loader.one_example()))[0]

    def training_step(self, model: Any, *given: Any, **named: Any) -> Any:
        """Take the gradients of the batch given last; the optimizer's step releases them."""
        model.train()
        self.private._sum(lambda output: output["loss"], self._batch)
        return torch.zeros((), device=next(model.parameters()).device)

    def _load_from_checkpoint(self, *given: Any, **named: Any) -> None:
        raise IncompatibleError("a private run goes on by counting=, not by resume_from_checkpoint")

    def log(self, logs: dict[str, float], *given: Any) -> None:
        if self.private is not None:
            logs = {name: value for name, value in logs.items() if name not in _NOT_PRIVATE}
            logs |= {"epsilon": self.private.spent(self.delta).upper, "delta": self.delta}
        super().log(logs, *given)  # type: ignore[misc]  # the trainer's

    def _save_checkpoint(self, *given: Any, **named: Any) -> None:
        trainer: Any = super()
        trainer._save_checkpoint(*given, **named)
        state, arguments = self.state, self.args  # type: ignore[attr-defined]  # the trainer's
        folder = Path(arguments.output_dir) / f"checkpoint-{state.global_step}"
        if self.private is not None and folder.is_dir():
            spent = self.private.spent(self.delta).as_dict() | {"plan": str(self.private.plan)}
            (folder / _SPENT).write_text(json.dumps(spent, indent=2) + "\n")


@final
class PrivateTrainer(PrivateSteps, Trainer):  # type: ignore[misc]  # theirs may have no types
    """``Trainer`` with private steps; see ``PrivateSteps``.

    Example:
        >>> import hockeystick as hs
        >>> import transformers
        >>> from hockeystick.adapters.huggingface import PrivateTrainer
        >>> sizes = {"vocab_size": 9, "n_positions": 4, "n_embd": 4, "n_layer": 1, "n_head": 1}
        >>> model = transformers.GPT2LMHeadModel(transformers.GPT2Config(**sizes))
        >>> texts = [{"input_ids": [1, 2, 3], "labels": [1, 2, 3]} for _ in range(40)]
        >>> arguments = transformers.TrainingArguments(
        ...     "/tmp/trained", report_to=[], use_cpu=True, disable_tqdm=True, save_strategy="no"
        ... )
        >>> plan = hs.DPSGD(examples=40, batch_size=8, steps=3, noise_multiplier=2.0)
        >>> trainer = PrivateTrainer(model, arguments, train_dataset=texts, plan=plan, delta=1e-3)
        >>> done = trainer.train()  # doctest: +ELLIPSIS
        {'train_runtime': ... 'epsilon': '0.5...', 'delta': '0.001', 'epoch': '1'}
        >>> trainer.private.spent(1e-3).upper == hs.epsilon(plan, 1e-3).upper
        True
    """
