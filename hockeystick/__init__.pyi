# The public names and where they are: type checkers read it, and `import hockeystick` loads by it.
from . import (
    accountants as accountants,
    adapters as adapters,
    answers as answers,
    audit as audit,
    calibration as calibration,
    conversions as conversions,
    errors as errors,
    io as io,
    ledger as ledger,
    mechanisms as mechanisms,
    notions as notions,
    privacy_loss as privacy_loss,
    release as release,
    results as results,
    tradeoffs as tradeoffs,
)
from ._version import __version__ as __version__
from .accountants import (
    compare as compare,
    delta as delta,
    epsilon as epsilon,
    tradeoff as tradeoff,
)
from .adjacency import Adjacency as Adjacency
from .answers import verify as verify
from .calibration import (
    Accountant as Accountant,
    Calibrated as Calibrated,
    calibrate as calibrate,
    sweep as sweep,
)
from .conversions import convert as convert
from .errors import HockeystickError as HockeystickError
from .io import load_plan as load_plan, save_plan as save_plan
from .ledger import Ledger as Ledger
from .mechanisms import (
    DPSGD as DPSGD,
    Composed as Composed,
    DiscreteGaussian as DiscreteGaussian,
    DiscreteLaplace as DiscreteLaplace,
    Exponential as Exponential,
    FixedSizeSubsampled as FixedSizeSubsampled,
    Gaussian as Gaussian,
    Laplace as Laplace,
    Mechanism as Mechanism,
    Parallel as Parallel,
    PoissonSubsampled as PoissonSubsampled,
    RandomizedResponse as RandomizedResponse,
    Repeated as Repeated,
    Shuffled as Shuffled,
    federated as federated,
    schedules as schedules,
)
from .notions import (
    FDP as FDP,
    GDP as GDP,
    TCDP as TCDP,
    ZCDP as ZCDP,
    ApproxDP as ApproxDP,
    PureDP as PureDP,
    RenyiDP as RenyiDP,
)
from .reports import report as report
from .results import Approximate as Approximate, Certified as Certified

__all__: list[str]
