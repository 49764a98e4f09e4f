"""Published privacy figures, recomputed and judged in the open.

The figures and statements of five documents are data, ``claims.toml``; what recomputes them are the
*ways*, functions that never see a published number. ``check`` puts both together.

>>> from tests import claims
>>> (one,) = claims.check("sense-and-sensitivity/section-3.5/query-noise")
>>> one.claim.published, round(one.own.upper, 6), one.verdict.value
('7.124', 7.123991, 'reproduces')
"""

from tests.claims.checking import Checked, check
from tests.claims.data import Claim, Document, catalogue
from tests.claims.found import Found
from tests.claims.verdicts import Verdict

__all__ = ["Checked", "Claim", "Document", "Found", "Verdict", "catalogue", "check"]
