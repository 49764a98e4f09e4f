"""Two processes train as one does: one batch, one sum, one noise, one count; or all stop."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

import torch
from torch import distributed

import hockeystick as hs
from hockeystick import _files
from hockeystick.adapters.loop import Sampler, bits
from hockeystick.adapters.torch import Constant, Online, Quantile, _noise, make_correlated
from hockeystick.adapters.torch._batches import Processes
from hockeystick.errors import IncompatibleError, ParameterError
from hockeystick.release.counting import Journal
from tests.adapters.torch.loops import make_private

pytestmark = [
    pytest.mark.skipif(
        "fork" not in multiprocessing.get_all_start_methods() or not distributed.is_available(),
        reason="needs fork and torch.distributed",
    ),
    pytest.mark.filterwarnings("ignore:This process:DeprecationWarning"),  # of threads that fork
]
EXAMPLES = 12
# Some batches have no example or a single one, so that shares are empty.
POISSON = hs.DPSGD(examples=EXAMPLES, batch_size=2, steps=12, noise_multiplier=1)
FULL = hs.DPSGD(examples=EXAMPLES, sampling="full-batch", steps=4, noise_multiplier=1)
SEEDED: dict[str, Any] = {"not_private": 5}
LONG = 60.0


def _rows() -> Any:
    generator = torch.Generator().manual_seed(3)
    whole = torch.randint(2**22, (EXAMPLES, 4), generator=generator)
    return whole.double() / 2**22


def _loop(
    plan: Any = POISSON,
    make: Callable[..., Any] = make_private,
    *,
    dataset: Any = None,
    start: float = 0.0,
    wrapped: bool = False,
    **options: Any,
) -> Any:
    model: Any = torch.nn.Linear(4, 1, bias=False).double()
    torch.nn.init.constant_(model.weight, start)
    if wrapped:
        model = torch.nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    data = torch.utils.data.TensorDataset(_rows()) if dataset is None else dataset
    return make(model, optimizer, data, plan, **options)


def _ran(private: Any, steps: int = 10**6) -> Any:
    for batch in private.loader:
        private.step(torch.sum, batch)
        steps -= 1
        if steps == 0:
            break
    return private


def _found(private: Any) -> tuple[list[float], int, float]:
    return private.model.weight.flatten().tolist(), private.steps, private.clipping_norm


# Two processes, each of which returns something, raises or dies.


def _child(rank: int, size: int, rendezvous: str, limit: float, pipe: Any, work: Any) -> None:
    """Do a process's work, and tell what came of it."""
    torch.set_num_threads(1)  # those of the parent are not there after a fork
    distributed.init_process_group(
        "gloo",
        rank=rank,
        world_size=size,
        init_method=f"file://{rendezvous}",
        timeout=timedelta(seconds=limit),
    )
    function, arguments = work
    try:
        pipe.send(function(rank, *arguments))
    except BaseException as error:
        pipe.send(_text(error))


def _in_processes(
    path: Path, function: Callable[..., Any], *arguments: Any, size: int = 2, limit: float = LONG
) -> list[Any]:
    """Return what each process returned, or its error as a text, or None of one that died."""
    context = multiprocessing.get_context("fork")
    rendezvous = os.fspath(path / f"group-{time.monotonic_ns()}")
    pipes, children = [], []
    for rank in range(size):
        mine, theirs = context.Pipe(duplex=False)
        work = (function, arguments)
        child = context.Process(target=_child, args=(rank, size, rendezvous, limit, theirs, work))
        child.start()
        theirs.close()
        pipes.append(mine)
        children.append(child)
    try:
        return [_told(pipe) for pipe in pipes]
    finally:
        for child in children:
            child.kill()
            child.join()


def _told(pipe: Any) -> Any:
    assert pipe.poll(LONG), "a process hangs"
    try:
        return pipe.recv()
    except EOFError:
        return None


def _text(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"


def _trained(rank: int, plan: hs.DPSGD, options: dict[str, Any]) -> Any:
    return _found(_ran(_loop(plan, **options)))


BATCHES = hs.DPSGD(
    examples=EXAMPLES, sampling="full-batch", steps=4, clipping="batch", noise_multiplier=1
)
ALLOCATED = hs.DPSGD(
    examples=EXAMPLES, batch_size=1, epochs=1, sampling="random-allocation", noise_multiplier=1
)


@pytest.mark.parametrize(
    ("plan", "options"),
    [
        pytest.param(FULL, {"clipping": 1.0, "wrapped": True}, id="wrapped"),
        pytest.param(POISSON, {"clipping": Constant(0.5, per_layer=True)}, id="layers"),
        pytest.param(POISSON, {"clipping": Quantile(0.7, bit_noise=2.0)}, id="quantile"),
        pytest.param(POISSON, {"clipping": Online(0.7)}, id="online"),
        pytest.param(ALLOCATED, {"pin_memory": False, "timeout": 0}, id="allocated"),
        pytest.param(BATCHES, {}, id="batch"),
    ],
)
def test_two_processes_have_the_weights_of_one_bit_by_bit(
    plan: hs.DPSGD, options: dict[str, Any], tmp_path: Path
) -> None:
    alone = _found(_ran(_loop(plan, **{**options, **SEEDED, "wrapped": False})))
    assert _in_processes(tmp_path, _trained, plan, options | SEEDED) == [alone, alone]
    assert alone[1] == plan.total_steps
    assert any(alone[0])


def _unseeded(rank: int, path: Path, arithmetic: str) -> Any:
    """Train where any process but the first can neither read data nor draw nor count durably."""
    private = _loop(journal=path / f"journal-{rank}", arithmetic=arithmetic)
    if rank:
        private.loader._tensors = None
        for owner, name in (
            (Sampler, "draw"),
            (_noise, "rounded_gaussian"),
            (_noise, "normals"),
            (_files, "force"),
        ):
            setattr(owner, name, None)
    return _found(_ran(private))


@pytest.mark.parametrize("arithmetic", ["exact", "real"])
def test_the_first_process_alone_draws_counts_and_noises(arithmetic: str, tmp_path: Path) -> None:
    first, *others = _in_processes(tmp_path, _unseeded, tmp_path, arithmetic, size=3)
    assert others == [first, first]
    assert first[1] == 12
    assert (tmp_path / "journal-0").read_bytes().endswith(b"\n" + b"." * 12)
    assert not (tmp_path / "journal-1").exists()


def _correlated(rank: int = 0, **options: Any) -> Any:
    """Train with correlated noise, in sums that are exact in any order."""
    plan = hs.mechanisms.MatrixFactorization(1.0, hs.mechanisms.Encoder.square_root(4))
    private = _loop(plan, make_correlated, batch_size=3.0, clipping=64.0, **options)
    while private.left:
        private.step(torch.sum)
    return _found(private), private.state_dict()["key"]


def test_correlated_noise_is_that_of_one_process_bit_by_bit(tmp_path: Path) -> None:
    alone = _correlated(**SEEDED)
    assert _in_processes(tmp_path, lambda rank: _correlated(**SEEDED)) == [alone, alone]
    assert alone[0][1] == 4
    first, second = _in_processes(tmp_path, _correlated)
    assert first == second != alone


def test_where_an_example_goes_is_drawn_for_it_alone() -> None:
    processes, counts = Processes(), torch.zeros(3, 3)
    processes.size = 3
    for step in range(900):
        shares = processes.shares((torch.arange(2),), bits(7, "process", step))
        held = [share[0].tolist() if share else [] for share in shares]
        first, second = (next(n for n, own in enumerate(held) if one in own) for one in range(2))
        counts[first, second] += 1
    assert counts.sum() == 900
    assert 60 < counts.min() <= counts.max() < 140


# A model that fully_shard split: each process has some rows of each parameter, or none.


def _layers() -> Any:
    torch.manual_seed(2)
    model = torch.nn.Sequential(*(torch.nn.Linear(*size) for size in ((4, 5), (5, 5), (5, 1))))
    model[1].requires_grad_(False)
    return model


def _split(plan: Any = FULL, model: Any = None, **options: Any) -> Any:
    """Return a loop on a model that is split, where there is a group to split it over."""
    model = _layers() if model is None else model
    if distributed.is_initialized():
        fully_shard = pytest.importorskip("torch.distributed.fsdp").fully_shard
        fully_shard(model[0])
        fully_shard(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.5)
    data = torch.utils.data.TensorDataset(_rows().float())
    return make_private(model, optimizer, data, plan, **options)


def _own(value: Any) -> Any:
    """Return a copy of what this process has of a parameter."""
    return getattr(value.detach(), "to_local", value.detach)().clone()


def _whole(private: Any) -> Any:
    values = [one.detach() for one in private.model.parameters()]
    return torch.cat([getattr(one, "full_tensor", one.clone)().flatten() for one in values])


def _without_noise(rank: int, options: dict[str, Any]) -> Any:
    private = _split(replace(FULL, noise_multiplier=0), microbatch=1, **options)
    with torch.no_grad():
        private.model(_rows().float())  # after which a part of it is whole
    _ran(private)
    state = private.state_dict()
    private.load_state_dict(state)
    return _whole(private).tolist(), state["weights"], private.steps


@pytest.mark.parametrize("arithmetic", ["exact", "real"])
@pytest.mark.parametrize("per_layer", [False, True])
def test_weights_that_are_split_are_those_of_one_process(
    per_layer: bool, arithmetic: str, tmp_path: Path
) -> None:
    options = {"clipping": Constant(0.5, per_layer=per_layer), "arithmetic": arithmetic}
    alone = _without_noise(0, options)
    found = _in_processes(tmp_path, _without_noise, options)
    assert arithmetic == "real" or found == [alone, alone]
    assert (
        found[0] == found[1] == (pytest.approx(alone[0], rel=1e-4, abs=1e-5), found[0][1], alone[2])
    )


def _noise_alone(rank: int, path: Path, arithmetic: str) -> Any:
    model = torch.nn.Sequential(torch.nn.Linear(4, 100), torch.nn.Linear(100, 1))
    private = _split(FULL, model, journal=path / f"journal-{rank}", arithmetic=arithmetic)
    private.step(lambda out: 0 * out.sum())
    return [(EXAMPLES * one.grad.to_local()).flatten().tolist() for one in model.parameters()]


@pytest.mark.parametrize("arithmetic", ["exact", "real"])
def test_noise_is_drawn_once_by_who_has_a_row(arithmetic: str, tmp_path: Path) -> None:
    found = _in_processes(tmp_path, _noise_alone, tmp_path, arithmetic)
    assert [list(map(len, parts)) for parts in found] == [[200, 50, 100, 1], [200, 50, 0, 0]]
    assert not set(found[0][0]) & set(found[1][0])
    every = torch.tensor([number for parts in found for part in parts for number in part])
    assert 0.7 < float(every.var()) < 1.3  # five deviations
    assert (tmp_path / "journal-0").read_bytes().endswith(b"\n.")
    assert not (tmp_path / "journal-1").exists()


# Processes that differ, or of which one cannot go on.


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"plan": FULL}, "plan"),
        ({"clipping": 2.0}, "clipping"),
        ({"arithmetic": "real"}, "arithmetic"),
        ({"budget": hs.ApproxDP(epsilon=9, delta=1e-5)}, "budget"),
        (SEEDED, "seed"),
        ({"dataset": torch.utils.data.TensorDataset(_rows()[1:])}, "examples"),
        ({"microbatch": 1}, "microbatch"),
        ({"start": 1e-9}, "weights"),
    ],
    ids=lambda value: value if isinstance(value, str) else next(iter(value)),
)
def test_processes_that_begin_otherwise_are_refused(
    options: dict[str, Any], name: str, tmp_path: Path
) -> None:
    found = _in_processes(tmp_path, lambda rank: _loop(**(options if rank else {})))
    assert found[0].startswith(f"IncompatibleError: {name} must be the same in all processes; ")
    assert found[1] == found[0]


@pytest.mark.parametrize(
    "options",
    [{"microbatch": 0}, {"dataset": torch.utils.data.DataLoader(_rows())}, {"journal": "/"}],
    ids=lambda value: next(iter(value)),
)
@pytest.mark.parametrize("where", [0, 1])
def test_what_one_process_refuses_all_do(
    options: dict[str, Any], where: int, tmp_path: Path
) -> None:
    found = _in_processes(tmp_path, lambda rank: _loop(**(options if rank == where else {})).steps)
    if "journal" in options and where == 1:
        assert found == [0, 0]  # it is the first one's journal that counts
    else:
        assert found[where].startswith(("ParameterError: ", "IsADirectoryError: "))
        by = f"IncompatibleError: process {where} of 2 stopped all, by "
        assert found[1 - where] == by + found[where]


def _troubled(rank: int, where: int, trouble: Callable[[Any, Any], Any], journal: Path) -> Any:
    """Return what is said of trouble in one process's second step, and what became of it."""
    private = _ran(_loop(FULL, journal=journal, **SEEDED), 1)
    weights = private.model.weight.detach().clone()
    batch = next(iter(private.loader))
    loss = (trouble(private, batch) if rank == where else None) or torch.sum
    try:
        private.step(loss, batch)
    except BaseException as error:
        kept = rank == where or torch.equal(weights, private.model.weight)
        return _text(error), kept, private.steps
    return None


def _failing(error: BaseException) -> Callable[..., Any]:
    def failing(*arguments: Any, **options: Any) -> Any:
        raise error

    return failing


def _with(owner: Any, name: str, error: BaseException) -> Callable[[Any, Any], Any]:
    return lambda private, batch: setattr(owner, name, _failing(error))


_BITS = "rounded_gaussian"


@pytest.mark.parametrize(
    ("where", "trouble", "own", "counted"),
    [
        (1, lambda _, batch: batch.examples[0].add_(1) is None, "ParameterError: batch", 1),
        (1, lambda *_: _failing(TypeError("a loss")), "TypeError: a loss", 1),
        (0, lambda *_: _failing(TypeError("a loss")), "TypeError: a loss", 1),
        (1, lambda private, _: private.close(), "IncompatibleError: this run is closed", 1),
        (0, _with(Journal, "add", OSError(28, "full")), "OSError: [Errno 28] full", 1),
        (0, _with(_noise, _BITS, OSError("no bits")), "OSError: no bits", 2),
        (0, _with(_noise, _BITS, KeyboardInterrupt()), "KeyboardInterrupt: ", 2),
        (1, lambda private, _: private.model.weight.data.add_(1e-9) is None, "weights", 1),
        (1, lambda private, _: setattr(private, "_norm", 2.0), "clipping norm", 1),
        (1, lambda private, _: setattr(private._account, "run", "other"), "run", 1),
    ],
    ids=["batch", "loss", "first", "closed", "disk", "bits", "stop", "weights", "norm", "run"],
)
def test_a_step_that_one_process_cannot_do_or_does_otherwise_is_done_by_none(
    where: int, trouble: Any, own: str, counted: int, tmp_path: Path
) -> None:
    journal = tmp_path / "run.journal"
    found = _in_processes(tmp_path, _troubled, where, trouble, journal)
    if ":" in own:
        assert found[where][0].startswith(own)
        said = f"IncompatibleError: process {where} of 2 stopped all, by {found[where][0]}"
    else:
        said = f"IncompatibleError: {own} must be the same in all processes; "
        assert found[0] == found[1]
    assert found[1 - where][0].startswith(said)
    assert found[0][1:] == found[1][1:] == (True, counted)
    assert journal.read_bytes().endswith(b"\n" + b"." * counted)


def test_a_batch_that_one_process_leaves_out_stops_all(tmp_path: Path) -> None:
    def leaving(rank: int) -> Any:
        private = _loop()
        if rank:
            return list(private.loader)
        return _ran(private).steps

    first, second = _in_processes(tmp_path, leaving)
    assert second.startswith("IncompatibleError: the batch of step 0 was drawn and not used")
    assert first == f"IncompatibleError: process 1 of 2 stopped all, by {second}"


@pytest.mark.parametrize("where", [0, 1])
def test_a_load_of_one_process_changes_nothing(where: int, tmp_path: Path) -> None:
    def loading(rank: int) -> Any:
        private = _ran(_loop(FULL, checkpoint=tmp_path / "run.pt"), 1)
        private.save()
        weights = _ran(private, 1).model.weight.detach().clone()
        with pytest.raises(IncompatibleError, match=r"do '(load|batch)' and '(load|batch)'"):
            private.load() if rank == where else next(iter(private.loader))
        kept = torch.equal(weights, private.model.weight)
        return kept, _ran(private).steps

    assert _in_processes(tmp_path, loading) == [(True, 4), (True, 4)]


# Processes that die, hang, or are others after a restart.


def _dying(rank: int, where: int, part: tuple[Any, str], split: bool, journal: Path) -> Any:
    private = _ran((_split if split else _loop)(FULL, journal=journal), 1)
    if rank == where:
        setattr(part[0], part[1], lambda *arguments, **options: os._exit(1))
    weights, said = [_own(one) for one in private.model.parameters()], []
    for _ in range(2):
        with pytest.raises(IncompatibleError) as found:
            _ran(private)
        said.append(str(found.value))
    kept = zip(weights, map(_own, private.model.parameters()), strict=True)
    return said, all(torch.equal(*both) for both in kept), private.steps


@pytest.mark.parametrize(
    ("where", "part", "split", "counted"),
    [
        pytest.param(1, (torch.Tensor, "sum"), False, 1, id="1-1"),
        pytest.param(0, (_noise, _BITS), False, 2, id="0-2"),
        pytest.param(0, (_noise, _BITS), True, 2, id="split-0-2"),
        pytest.param(1, (_noise, _BITS), True, 2, id="split-1-2"),
    ],
)
def test_where_one_process_dies_the_others_stop(
    where: int, part: Any, split: bool, counted: int, tmp_path: Path
) -> None:
    journal = tmp_path / "run.journal"
    found = _in_processes(tmp_path, _dying, where, part, split, journal)
    assert found[where] is None
    said, kept, steps = found[1 - where]
    assert all("have lost one another" in one for one in said)
    assert kept
    assert steps == counted
    assert journal.read_bytes().endswith(b"\n" + b"." * counted)


def test_a_fork_is_refused_and_leaves_the_others_alone(tmp_path: Path) -> None:
    def forking(rank: int) -> Any:
        private = _loop(FULL, **SEEDED)
        batch = next(iter(private.loader))
        child = os.fork() if rank == 0 else None
        if child == 0:
            signal.alarm(10)  # which ends what hangs
            with pytest.raises(IncompatibleError, match="was forked from"):
                private.step(torch.sum, batch)
            os._exit(7)
        if child is not None:
            assert os.waitpid(child, 0)[1] >> 8 == 7
        return _found(_ran(private))

    alone = _found(_ran(_loop(FULL, **SEEDED)))
    assert _in_processes(tmp_path, forking, limit=5.0) == [alone, alone]


def test_a_run_goes_on_in_another_number_of_processes(tmp_path: Path) -> None:
    def going_on(rank: int, steps: int) -> Any:
        private = _loop(checkpoint=tmp_path / "run.pt", clipping=Quantile(0.7, bit_noise=2.0))
        if (tmp_path / "run.pt").exists():
            private.load()
        begun = private.steps
        _ran(private, steps)
        private.save()
        _ran(private, 1)
        return begun, _found(private)

    begun = 0
    for size in (2, 1, 3):
        found = _in_processes(tmp_path, going_on, 3, size=size)
        assert found == [found[0]] * size
        assert found[0][0] == begun
        begun = found[0][1][1]
        assert begun % 4 == 0
    assert begun == 12


def test_processes_of_torchrun_without_a_group_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert _loop().steps == 0  # which others than torchrun may set for their own ends
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "none")
    with pytest.raises(IncompatibleError, match=r"torchrun started several .* in no process group"):
        _loop()
    monkeypatch.setenv("WORLD_SIZE", "1")
    private = _loop()
    batch = next(iter(private.loader))  # and one of a group that is made later
    monkeypatch.setattr(distributed, "is_initialized", lambda: True)
    monkeypatch.setattr(distributed, "get_world_size", lambda: 2)
    monkeypatch.setattr(distributed, "get_rank", lambda: 1)
    with pytest.raises(IncompatibleError, match=r"made in process 0 of 1, which has another"):
        private.step(torch.sum, batch)
    monkeypatch.setattr(distributed, "get_backend_config", lambda: "cuda:nccl")
    with pytest.raises(ParameterError, match=r"^process group must be one with gloo"):
        _loop()


def _on_ledger(rank: int, path: Path, steps: int) -> Any:
    ledger = hs.Ledger(path / "ledger.db", "x", hs.ZCDP(rho=3.0))
    private = _ran(_loop(FULL, ledger=ledger, key="run", journal=path / "journal"), steps)
    during = ledger.status.unresolved if rank == 0 else None
    private.close()
    return private.steps, during


def test_the_first_process_reserves_and_commits_for_all(tmp_path: Path) -> None:
    assert _in_processes(tmp_path, _on_ledger, tmp_path, 3) == [(3, 1), (3, None)]
    ledger = hs.Ledger(tmp_path / "ledger.db", "x")
    assert ledger.status.spent == hs.ZCDP(rho=1.5)
    assert [entry.kind for entry in ledger.history()] == ["open", "reserve", "commit"]
    told = _in_processes(tmp_path, _on_ledger, tmp_path, 3)
    assert all("IncompatibleError" in one and "was committed before" in one for one in told)
