"""What people run on data: mechanisms on arrays, exact in floats, reports, and estimators.

Each function is of a mechanism, which it takes first: what is run is what is accounted. All share

- ``charge``: an ``Accountant``, a ``Filter``, a ``Ledger`` or another with ``step(mechanism)``,
  which is charged before the noise is drawn; what the mechanism costs is nobody's otherwise;
- ``bits``: the source of random 64-bit words, the operating system's; another one is for tests;
- ``ParameterError`` where an argument is outside its domain: nothing is charged then;
- ``BudgetExhausted`` where what is charged refuses: nothing is drawn then;
- ``OSError`` where the operating system has no random bits to give: the charge stays.

The guarantee is that of the mechanism. **Exact** means: if the bits are ideal, the distribution is
the mechanism's, to the last probability, and nothing that is released depends on how floats are
rounded; of scales and sensitivities the float and the decimal reading are both covered.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
