"""What a shell may complete: plan files, and names of which there are a few."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

import click
from click.shell_completion import CompletionItem

Complete: TypeAlias = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]


def files(_: click.Context, __: click.Parameter, begun: str) -> list[CompletionItem]:
    """Let the shell complete the name of a file."""
    return [CompletionItem(begun, type="file")]


def among(names: Iterable[str]) -> Complete:
    """Return what completes one of a few names."""
    known = tuple(names)

    def complete(_: click.Context, __: click.Parameter, begun: str) -> list[CompletionItem]:
        return [CompletionItem(name) for name in known if name.startswith(begun)]

    return complete
