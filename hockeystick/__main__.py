"""``python -m hockeystick``, and the command ``hockeystick``."""

from __future__ import annotations

import sys


def main() -> int:
    """Run the command and return its exit status, also where an import is interrupted."""
    try:
        from hockeystick.cli import main as answered

        return answered()
    except KeyboardInterrupt:
        sys.stderr.write("hockeystick: interrupted\n")
        return 130


if __name__ == "__main__":
    sys.exit(main())
