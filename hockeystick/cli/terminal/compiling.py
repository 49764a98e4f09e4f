"""Why the first answers after an installation take so long, said while they do."""

from __future__ import annotations

from typing import Any

from rich.progress import ProgressColumn
from rich.text import Text

from hockeystick.kernels.compiled import COMPILATIONS


class Compiling(ProgressColumn):
    """Says that kernels are being compiled; empty from the second time on."""

    # Functions are compiled one after another: what was seen stays until the end.
    _seen = False

    def render(self, task: Any) -> Text:
        """Return the reason for a wait."""
        self._seen = self._seen or COMPILATIONS.under_way
        return Text("compiling, once after installing" if self._seen else "", style="dim")
