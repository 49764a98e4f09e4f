"""Whether each batch that a loader draws is used by one step."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, final

from torch.utils.data import DataLoader, Sampler

from hockeystick.errors import IncompatibleError


@final
class Drawn:
    """What the loader and the optimizer of one training know of each other."""

    __slots__ = ("_open",)

    def __init__(self) -> None:
        self._open = False

    def draw(self) -> None:
        """Note that a batch is given, or raise where the last one was not used."""
        if self._open:
            raise IncompatibleError(
                "a batch was drawn and no optimizer.step made of it: batches that are left out or "
                "put together are no Poisson samples; make a step of each, also of an empty one, "
                "and read the data in other ways by a loader of your own"
            )
        self._open = True

    def use(self) -> None:
        """Note that a step uses the batch that was given, or raise where there is none."""
        if not self._open:
            raise IncompatibleError(
                "this step has no batch of its own: a batch that is used twice is no Poisson "
                "sample in the second step (and BatchMemoryManager needs num_workers=0)"
            )
        self._open = False


@final
class _Watched(Sampler):  # type: ignore[misc]  # torch may have no types
    """A sampler whose batches are noted as they are drawn, unless workers draw them ahead."""

    def __init__(self, inner: Any, drawn: Drawn, *, ahead: bool) -> None:
        self.inner, self.drawn, self.ahead = inner, drawn, ahead

    def __iter__(self) -> Iterator[list[int]]:
        for places in self.inner:
            if not self.ahead:
                self.drawn.draw()
            yield places

    def __len__(self) -> int:
        return len(self.inner)


@final
class _Loader(DataLoader):  # type: ignore[misc]  # torch may have no types
    """A loader whose batches are noted as they are given, where workers draw them ahead."""

    def __iter__(self) -> Iterator[Any]:
        for batch in super().__iter__():
            if self.batch_sampler.ahead:
                self.batch_sampler.drawn.draw()
            yield batch


def watched(loader: Any, drawn: Drawn) -> Any:
    """Return a loader that does the same and is watched."""
    return _Loader(
        loader.dataset,
        batch_sampler=_Watched(loader.batch_sampler, drawn, ahead=loader.num_workers > 0),
        num_workers=loader.num_workers,
        collate_fn=loader.collate_fn,
        pin_memory=loader.pin_memory,
        timeout=loader.timeout,
        worker_init_fn=loader.worker_init_fn,
        multiprocessing_context=loader.multiprocessing_context,
        generator=loader.generator,
        prefetch_factor=loader.prefetch_factor,
        persistent_workers=loader.persistent_workers,
    )
