"""Write benchmarks/REPORT.md: speed, width and soundness here and at the peers that are installed.

`make bench` runs it. With ``--quick`` it asks little, to see that all of it works; ``--out`` names
another folder for REPORT.md and its pictures. An interrupted run leaves the last report as it was.
"""

import sys
from pathlib import Path

if __name__ == "__main__":
    # Another distribution has a package of this name: the root comes first.
    sys.path[0] = str(Path(__file__).resolve().parents[1])
    from benchmarks.reporting.command import main

    sys.exit(main())
