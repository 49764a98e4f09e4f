# The public names and where they are: type checkers read it, and they are loaded by it.
from .budgets.gaussian import (
    JointNoise as JointNoise,
    classical_gaussian_noise as classical_gaussian_noise,
    clipping_noise as clipping_noise,
    gaussian_noise as gaussian_noise,
    joint_noise as joint_noise,
    max_error_probability as max_error_probability,
    max_error_quantile as max_error_quantile,
    max_error_union_bound as max_error_union_bound,
)
from .budgets.split import (
    BudgetSplit as BudgetSplit,
    SplitBy as SplitBy,
    grid_search as grid_search,
    share_budget as share_budget,
    split_budget as split_budget,
)
from .filters.filter import Filter as Filter
from .filters.odometer import Odometer as Odometer
from .session.accountant import Accountant as Accountant
from .session.runs import describe as describe, read_description as read_description
from .solve.calibrate import Calibrated as Calibrated, Status as Status, calibrate as calibrate
from .solve.targets import (
    Advantage as Advantage,
    BayesError as BayesError,
    Reconstruction as Reconstruction,
    TruePositiveRate as TruePositiveRate,
)
from .strategies import (
    ErrorKind as ErrorKind,
    SumsError as SumsError,
    optimise_banded as optimise_banded,
    optimise_buffered as optimise_buffered,
    sums_error as sums_error,
)
from .sweeps.frontier import FrontierPoint as FrontierPoint, frontier as frontier
from .sweeps.questions import AskDelta as AskDelta, AskEpsilon as AskEpsilon, Solve as Solve
from .sweeps.sweep import sweep as sweep
