"""`python -m benchmarks.frozen`: what worker processes import is in a module of its own."""

import sys

from benchmarks.frozen.command import main

if __name__ == "__main__":
    sys.exit(main())
