"""``python -m hockeystick``: the same as the command ``hockeystick``."""

from __future__ import annotations

import sys

from hockeystick.cli import main

if __name__ == "__main__":
    sys.exit(main())
