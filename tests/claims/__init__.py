"""Published privacy figures, recomputed and judged in the open.

The figures and statements of five documents are data, ``claims.toml``; what recomputes them are the
*ways*, functions that never see a published number. ``check`` puts both together.
"""

from tests.claims.checking import Checked, Claim, Verdict, check, claims, documents
from tests.claims.found import Found

__all__ = ["Checked", "Claim", "Found", "Verdict", "check", "claims", "documents"]
