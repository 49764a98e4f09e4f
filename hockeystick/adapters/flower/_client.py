"""A round of a client that trains privately on its own records."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import islice
from typing import Any, Final

from flwr.app import ArrayRecord, Message, MetricRecord, RecordDict

import hockeystick as hs
from hockeystick import _validate
from hockeystick._validate import whole_numbers
from hockeystick.errors import BudgetExhausted, IncompatibleError, ParameterError

_LOG: Final = logging.getLogger("hockeystick")
_STEPS: Final = whole_numbers("steps", 1, (1, 100))


def train_locally(
    message: Message,
    *,
    model: Any,
    optimizer: Any,
    dataset: Any,
    plan: hs.DPSGD,
    loss_fn: Any,
    steps: int,
    journal: str | os.PathLike[str],
    **options: Any,
) -> Message:
    """Return a client's answer to a round: the weights after a few private steps on its records.

    The weights that came are loaded, ``make_private`` runs the next steps of the plan, and what
    leaves is the new weights and the *plan's* number of examples, by which ``FedAvg`` weighs them.
    Which steps are the next is read from the journal: an app of Flower's is made anew for each
    round, in any process.

    Guarantees:
        All that the client ever sends has the guarantee of ``plan`` for each of its records,
        against the server and the other clients, as ``make_private`` has it: a client that is
        killed, asked twice or by a second process at once releases nothing that is not counted.

    Edge cases:
        Where fewer steps are left than are asked for, those run. Whatever fails in training leaves
        as its kind alone, since an error's text may show records; its text goes to this client's
        log (``logging``, of the name ``hockeystick``). That it failed is told, and not accounted.

    Args:
        message: What the server sent: one record of arrays, the state of the model.
        model: A ``torch.nn.Module``.
        optimizer: An optimizer of its parameters; a fresh one in each round.
        dataset: The client's records, as ``make_private`` takes them.
        plan: An ``hs.DPSGD`` for all rounds together, of this client's records.
        loss_fn: As for the loop's ``step``.
        steps: How many steps of the plan a round runs, an integer >= 1.
        journal: The file in which this client's steps are counted, one for each client.
        **options: Further arguments of ``make_private``, as ``clipping``, or ``counting`` with a
            budget or a ledger, which reserves the plan in the first round; this counts in full.

    Returns:
        The answer: "arrays", and "metrics" with "num-examples" and the number of counted "steps".
    """
    from hockeystick.adapters.torch import Counting, _checks, make_private

    wanted = _validate.count("steps", steps, _STEPS)
    records = list(message.content.array_records.values())
    if len(records) != 1:
        raise ParameterError("message", f"{len(records)} records of arrays", "one with one record")
    model.load_state_dict(records[0].to_torch_state_dict())
    _checks.forget(model)
    counting = replace(options.pop("counting", Counting()), journal=journal)
    with _nothing_told():
        private = make_private(model, optimizer, dataset, plan, counting=counting, **options)
        try:
            _train(private, loss_fn, wanted)
        finally:
            private.close(final=False)  # the next round goes on with it
        metrics = MetricRecord({"num-examples": int(plan.examples or 1), "steps": private.steps})
    arrays = ArrayRecord(model.state_dict())
    return Message(RecordDict({"arrays": arrays, "metrics": metrics}), reply_to=message)


@contextmanager
def _nothing_told() -> Iterator[None]:
    """Keep what an error says, which Flower would send to the server, to this client's log."""
    try:
        yield
    except BudgetExhausted:
        raise
    except Exception as error:
        _LOG.exception("training on this client failed")
        raise IncompatibleError(
            f"training on this client failed, by {type(error).__name__}: what it says may show "
            "records, and is in this client's log only"
        ) from None


def _train(private: Any, loss_fn: Any, wanted: int) -> None:
    before = private.steps
    try:
        for batch in islice(private.loader, wanted):
            private.step(loss_fn, batch)
    except BudgetExhausted:
        if private.steps == before:
            raise
    if private.steps == before:
        over = f"more than the {before} steps that the plan has"
        raise BudgetExhausted(over, private.plan, hs.PureDP(0), f"a round of {wanted} steps")
