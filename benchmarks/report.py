"""Write benchmarks/REPORT.md: speed, width and soundness here and at the peers that are installed.

`make bench` runs it. With ``--quick`` it asks little, to see that all of it works; ``--out`` names
another folder for REPORT.md and its pictures. An interrupted run leaves the last report as it was.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from typing import Final

from rich.console import Console

from benchmarks.reporting.measured import FULL, QUICK, Measured, measure
from benchmarks.reporting.page import page, with_summary
from benchmarks.reporting.pictures import PICTURES, draw

OUT: Final = Path(__file__).parent
README: Final = OUT.parent / "README.md"
FOLDER: Final = "report"
INTERRUPTED: Final = 130


def main(arguments: list[str] | None = None) -> int:
    """Write the report, all of it or nothing."""
    parser = argparse.ArgumentParser(description="Write the benchmark report.")
    parser.add_argument("--quick", action="store_true", help="ask little: does all of it work?")
    parser.add_argument("--out", type=Path, default=OUT, help="the folder (default: benchmarks/)")
    asked = parser.parse_args(arguments)
    console = Console(stderr=True)
    try:
        write(measure(QUICK if asked.quick else FULL, console), asked.out)
        if asked.out == OUT and not asked.quick:
            _update_readme()
    except KeyboardInterrupt:
        console.print("interrupted: nothing was written")
        return INTERRUPTED
    console.print(f"wrote {asked.out / 'REPORT.md'}")
    return 0


def _update_readme() -> None:
    report = (OUT / "REPORT.md").read_text(encoding="utf-8")
    README.write_text(with_summary(README.read_text(encoding="utf-8"), report), encoding="utf-8")


def write(found: Measured, out: Path) -> None:
    """Draw the pictures and write the page, then move them into place."""
    pictures = out / FOLDER
    pictures.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=out) as folder:
        drawn = Path(folder)
        for name in PICTURES:
            draw(name, found, drawn / f"{name}.svg")
        (drawn / "REPORT.md").write_text(page(found), encoding="utf-8")
        for name in PICTURES:
            (drawn / f"{name}.svg").replace(pictures / f"{name}.svg")
        (drawn / "REPORT.md").replace(out / "REPORT.md")


if __name__ == "__main__":
    sys.exit(main())
