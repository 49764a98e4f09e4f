"""What a reader sees of a page: its text, what is marked in it, and what people wrote into blanks.

A page bears a digest of its text, so that an alteration shows, and four hexadecimal digits of
each run of text, so that it can be said where. Blanks are for people: what is in them is in
neither, but that they are there, in this order and under these names, is.
"""

from __future__ import annotations

import hashlib
from html.parser import HTMLParser
from itertools import zip_longest
from typing import Final

# The attributes that mark what the answer alone determines, and a blank; and the name of the meta
# element with the digest of the page's text.
_MARK: Final = "data-shown"
_BLANK: Final = "data-blank"
_DIGEST: Final = "hockeystick-text"
_UNSET: Final = f'<meta name="{_DIGEST}" content="">'
# Of a number that stays in one line: it ends no run.
_UNBROKEN: Final = ("span", "unbroken")
_UNSEEN: Final = frozenset({"script", "style", "noscript", "template"})
_DIGITS: Final = 4
_LONGEST: Final = 100
_SOME: Final = "some of it was altered"


def sealed(page: str) -> str:
    """Return a page with the digests of its text in the empty meta element that it has for them."""
    seen = Seen(page)
    content = f"{seen.text_digest} {''.join(map(_short, seen.runs))}"
    return page.replace(_UNSET, _UNSET.replace('content=""', f'content="{content}"'), 1)


class Seen(HTMLParser):
    """What a reader sees of a page.

    Args:
        page: The page, as HTML.
    """

    def __init__(self, page: str) -> None:
        super().__init__()
        self.runs: list[str] = []
        self.marked: list[tuple[str, list[str]]] = []
        self.blanks: list[tuple[str, list[str]]] = []
        self._sections: list[str] = []
        self._section = ""
        self._run: list[str] = []
        self._content = ""
        self._unseen = 0
        self._heading = False
        self._open: list[str] = []
        # Of each span that is open, whether it is one of a number.
        self._spans: list[bool] = []
        self._filled: list[str] = []
        self.feed(page)
        self.close()
        self._end_run()

    def of(self, name: str) -> list[str]:
        """Return the texts under a mark."""
        return [spaced("".join(parts)) for mark, parts in self.marked if mark == name]

    @property
    def filled(self) -> dict[str, str]:
        """What people wrote into the blanks that are not empty."""
        told = ((name, spaced(" ".join(parts))) for name, parts in self.blanks)
        return {name: text for name, text in told if text}

    @property
    def text_digest(self) -> str:
        """The SHA-256 of the text without its white space, and of the names of blanks."""
        text = "".join("".join(self.runs).split())
        return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()

    @property
    def alteration(self) -> str:
        """What differs from the text that was written, as a sentence; nothing where nothing does.

        A page of a version that kept no digits of runs does not say where.
        """
        digest, _, short = self._content.partition(" ")
        if digest == self.text_digest:
            return ""
        kept = [short[place : place + _DIGITS] for place in range(0, len(short), _DIGITS)]
        where = self._first_beside(kept) if kept else _SOME
        return f"the text of the page is not what was written: {where}"

    def _first_beside(self, kept: list[str]) -> str:
        """Return where the first run is that is not the one that was written there."""
        for place, (run, short) in enumerate(zip_longest(self.runs, kept)):
            if run is None:
                return "its end is missing"
            if _short(run) != short:
                within = self._sections[place]
                section = f"in its section {within!r}" if within else "above its first section"
                text = run if run[0] != "\0" else f"a blank, {run.strip(chr(0))}"
                words = text if len(text) <= _LONGEST else f"{text[:_LONGEST]} ..."
                return f"{section}, the page shows {words!r} where another text was written"
        return _SOME

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Open what is marked, blank or not seen."""
        given = dict(attrs)
        inside = (tag, given.get("class")) == _UNBROKEN
        self._spans += [inside] * (tag == "span")
        if not inside:
            self._end_run()
        self._unseen += tag in _UNSEEN
        if self._filled:
            self._filled += [tag] * (tag == self._filled[0])
            return
        if tag == "meta" and given.get("name") == _DIGEST:
            self._content = given.get("content") or ""
        self._heading = self._heading or tag == "h2"
        if given.get(_BLANK):
            self._filled = [tag]
            self.blanks.append((str(given[_BLANK]), []))
            self._take(f"\0{given[_BLANK]}\0")
        # Marks are never nested; one is open until its own kind of element ends.
        elif given.get(_MARK):
            self._open = [tag]
            self.marked.append((str(given[_MARK]), []))
        elif tag in self._open:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        """Close what an element opened."""
        inside = tag == "span" and bool(self._spans) and self._spans.pop()
        if not inside:
            self._end_run()
        self._unseen -= tag in _UNSEEN and self._unseen > 0
        if self._filled:
            self._filled = self._filled[tag == self._filled[0] :]
            return
        self._heading = self._heading and tag != "h2"
        if tag in self._open:
            self._open.pop()

    def handle_data(self, data: str) -> None:
        """Take text, unless nobody sees it."""
        if self._unseen:
            return
        if self._filled:
            self.blanks[-1][1].append(data)
            return
        self._run.append(data)
        if self._open:
            self.marked[-1][1].append(data)

    def _end_run(self) -> None:
        """Take the run of text that a tag ends."""
        text = spaced("".join(self._run))
        self._run = []
        if text:
            self._section = text if self._heading else self._section
            self._take(text)

    def _take(self, run: str) -> None:
        """Take a run of text, or the name of a blank."""
        self.runs.append(run)
        self._sections.append(self._section)


def spaced(text: str) -> str:
    """Return a text with single spaces."""
    return " ".join(text.split())


def _short(run: str) -> str:
    """Return a few digits that tell a run of text from most others."""
    text = "".join(run.split())
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:_DIGITS]
