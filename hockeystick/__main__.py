"""``python -m hockeystick``, and the command ``hockeystick``."""

from __future__ import annotations

import sys

_INTERRUPTED = 130


def main() -> int:
    """Run the command and return its exit status, also where an import is interrupted."""
    try:
        if sys.argv[1:] == ["--version"] and _has_printed_version():
            return 0
        from hockeystick.cli import main as answered

        return answered()
    except KeyboardInterrupt:
        sys.stderr.write("hockeystick: interrupted\n")
        return _INTERRUPTED


def _has_printed_version() -> bool:
    """Print the version without loading the command; return whether that went well."""
    from hockeystick import __version__

    try:
        sys.stdout.write(f"hockeystick {__version__}\n")
        sys.stdout.flush()
    except (AttributeError, OSError):
        return False  # closed, full or unread: the command knows what to say
    return True


if __name__ == "__main__":
    sys.exit(main())
