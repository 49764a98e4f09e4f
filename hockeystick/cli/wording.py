"""What is wrong, in the words of the command line."""

from __future__ import annotations

import re
from typing import Final

from hockeystick.errors import HockeystickError
from hockeystick.io import with_guess

_ACCOUNTANT: Final = re.compile(r"\baccountant='([\w-]+)'")


def on_the_command_line(error: HockeystickError) -> str:
    """Return what an error says, with flags where it names arguments in Python."""
    return _ACCOUNTANT.sub(r"--accountant \1", with_guess(error)).replace("replace=True", "--force")
