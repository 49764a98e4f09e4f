"""Say what setup.cfg cannot: the README as a package index shows it, where no file lies beside it.

In the tree its links are relative, so that they work in every clone. In the metadata each leads to
the file of this release below the address `Source` of setup.cfg, the one place that names it.
"""

from __future__ import annotations

import re
from configparser import RawConfigParser
from pathlib import Path

ROOT = Path(__file__).resolve().parent
_FENCE = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"(!?)(\[(?:[^\[\]]|!\[[^\]]*\])*\])\((?![a-z]+:|#)([^)\s]+)\)")


def addresses() -> dict[str, str]:
    """Return the addresses of the project by what is found there, as setup.cfg has them."""
    settings = RawConfigParser()
    settings.read(ROOT / "setup.cfg", encoding="utf-8")
    lines = settings["metadata"]["project_urls"].strip().splitlines()
    return {name.strip(): url.strip() for name, _, url in (line.partition("=") for line in lines)}


def release() -> str:
    """Return the tag of this release."""
    text = (ROOT / "hockeystick" / "_version.py").read_text(encoding="utf-8")
    return "v" + text.partition('__version__ = "')[2].partition('"')[0]


def absolute(text: str, source: str, tag: str) -> str:
    """Return a document at the root with links that lead into the repository at `source`."""

    def led(found: re.Match[str]) -> str:
        mark, words, target = found.groups()
        folder = (ROOT / target.partition("#")[0]).is_dir()
        view = "raw" if mark else "tree" if folder else "blob"
        return f"{mark}{words}({source}/{view}/{tag}/{target})"

    parts = _FENCE.split(text)
    return "".join(part if part.startswith("```") else _LINK.sub(led, part) for part in parts)


def description() -> str:
    """Return the README for the metadata."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    return absolute(readme, addresses()["Source"], release())


if __name__ == "__main__":
    from setuptools import setup

    setup(long_description=description())
