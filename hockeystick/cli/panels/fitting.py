"""Tables and panels for any width: where no word fits, a row is a block of lines.

One rule for all of them. A table is drawn as a table where each of its columns can be as wide as
the longest word in it, so that no word and no number is ever cut or broken; addresses and names of
files may be. Where they cannot, each row becomes a table of its own, one line per column: its
heading, then the cell. A line of such labels and cells whose longest word is too long for what is
right of the label has the label above the cell, where only a word that is longer than a whole line
is broken: an address after a slash, say. Below 40 columns no frame takes any of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final, final

from rich import box
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.measure import Measurement
from rich.padding import Padding
from rich.panel import Panel
from rich.table import Column, Table
from rich.text import Text

_LABEL_WIDTH: Final = 10
# Sentences in fewer columns are hard to read.
_READABLE: Final = 16
# No word of a sentence has as many letters, only an address or the path of a file.
_NAME: Final = 30
_UNBOUNDED: Final = 100_000
# What a panel and its padding take on both sides, and the line next to its title.
_FRAME: Final = 6
_INDENT: Final = 2
# With fewer columns there is no frame.
_NARROW: Final = 40
_WORD: Final = re.compile(r"\S+")
_BREAK_AFTER: Final = "/=(;_"


class Headed(Table):
    """A table under headings, which becomes a block of lines per row where it does not fit."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the table, or a block for each row."""
        ranges = [_range(console, options, column) for column in self.columns]
        natural = self.__rich_measure__(console, options.update_width(_UNBOUNDED)).maximum
        between = natural - sum(one.maximum for one in ranges)
        widths = _shared_out(ranges, options.max_width - between)
        if widths is None:
            yield from self._blocks()
            return
        for column, width in zip(self.columns, widths, strict=True):
            column.width, column.overflow = width, "fold"
        yield from super().__rich_console__(console, options)

    def _blocks(self) -> Iterator[RenderableType]:
        """Yield a table of labels for each row; an empty first cell is the one above it."""
        headings = [column.header for column in self.columns]
        first: RenderableType = ""
        for index, cells in enumerate(zip(*(one.cells for one in self.columns), strict=True)):
            first = cells[0] if str(cells[0]) else first
            block = facts_table()
            block.add_row(headings[0], Text.assemble(_text(first), style="bold"))
            for heading, cell in zip(headings[1:], cells[1:], strict=True):
                if str(cell):
                    block.add_row(heading, cell)
            yield Group(Text(), block) if index else block


class Labelled(Table):
    """A table of labels and what they stand for, where need be with a label above its cell."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the rows, those that do not fit with their labels above."""
        labels, cells = self.columns
        beside = _range(console, options, labels).maximum + _INDENT
        room = options.max_width - beside

        def fits(row: tuple[RenderableType, RenderableType]) -> bool:
            return _measured(console, options, row[1]).minimum <= room

        for together, rows in groupby(zip(labels.cells, cells.cells, strict=True), fits):
            if together:
                yield _beside(rows, beside - _INDENT)
            else:
                yield from _above(rows, options.max_width - _INDENT)


def _beside(rows: Iterable[tuple[RenderableType, RenderableType]], width: int) -> Table:
    """Return rows with their labels on the left."""
    # On the right alone: before release 15, rich widens the first column by what is on its left.
    table = Table.grid(padding=(0, _INDENT, 0, 0))
    table.add_column(style="dim", width=width, no_wrap=True)
    table.add_column(overflow="fold")
    for label, cell in rows:
        table.add_row(label, cell)
    return table


def _above(
    rows: Iterable[tuple[RenderableType, RenderableType]], width: int
) -> Iterator[RenderableType]:
    """Yield rows with their labels above."""
    for label, cell in rows:
        if str(label):
            yield Text(str(label), style="dim")
        yield Padding(_folded(_text(cell), width), (0, 0, 0, _INDENT))


def _folded(text: Text, width: int) -> Text:
    """Return a text of which words longer than a line are broken, not in a number if possible."""
    ends: list[int] = []
    for word in _WORD.finditer(text.plain):
        start = word.start()
        while 0 < width < word.end() - start:
            last = max(text.plain.rfind(one, start, start + width) for one in _BREAK_AFTER)
            start = start + width if last < 0 else last + 1
            ends.append(start)
    folded = Text("\n").join(text.divide(ends))
    folded.overflow = "fold"
    return folded


def _text(cell: RenderableType) -> Text:
    """Return a cell as text."""
    return cell if isinstance(cell, Text) else Text(str(cell))


def _range(console: Console, options: ConsoleOptions, column: Column) -> Measurement:
    """Return how narrow a column may be, which breaks no word, and its longest line."""
    heading = _measured(console, options, column.header)
    every = [_measured(console, options, one) for one in column.cells]
    most = max((one.maximum for one in every), default=0)
    least = max((_longest_word(one) for one in column.cells), default=0)
    floor = max(column.min_width or 0, heading.minimum)
    return Measurement(max(floor, least, min(most, _READABLE)), max(floor, most, heading.maximum))


def _longest_word(cell: RenderableType) -> int:
    """Return the width of the longest word that may not be broken: of names of files, any may."""
    words = _text(cell).plain.split()
    return max((cell_len(one) for one in words if len(one) <= _NAME or _is_number(one)), default=0)


def _is_number(word: str) -> bool:
    """Return whether a word is a number, with an exponent perhaps."""
    return sum(map(str.isalpha, word)) <= 1


def _measured(console: Console, options: ConsoleOptions, cell: RenderableType) -> Measurement:
    """Return the width of a cell's longest word, and that of its longest line."""
    return Measurement.get(console, options.update_width(_UNBOUNDED), cell)


def _shared_out(ranges: Sequence[Measurement], room: int) -> list[int] | None:
    """Return a width for each column, None where the room is too small for their longest words.

    What is left of the room goes to the narrowest of those that need more.
    """
    if sum(one.minimum for one in ranges) > room:
        return None
    levels = range(max((one.maximum for one in ranges), default=0) + 1)
    every = ([min(max(level, one.minimum), one.maximum) for one in ranges] for level in levels)
    return max((widths for widths in every if sum(widths) <= room), key=sum)


@final
@dataclass(frozen=True, slots=True)
class Framed:
    """Blocks in a panel, one under the other, under a title that is never cut.

    Args:
        title: What the panel is about; inside where it is too long for the frame.
        blocks: What is in it.
    """

    title: Text
    blocks: tuple[RenderableType, ...]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the panel; what is in it alone where a frame would take the room of a number."""
        if options.max_width < _NARROW:
            yield Group(Text.assemble(self.title, style="bold"), Text(), *self.blocks)
            return
        inside = self.title.cell_len + _FRAME > options.max_width
        heading = (Text.assemble(self.title, style="bold"), Text()) if inside else ()
        blocks = Group(*heading, *self.blocks)
        title = None if inside else self.title
        yield Panel(blocks, title=title, title_align="left", padding=(1, 2))


def bare_table() -> Table:
    """Return an empty table without lines between its columns."""
    return Headed(box=box.SIMPLE_HEAD, show_edge=False, header_style="bold", pad_edge=False)


def facts_table() -> Table:
    """Return an empty table of labels and what they stand for."""
    return Labelled(Column(min_width=_LABEL_WIDTH), Column(), show_header=False)
