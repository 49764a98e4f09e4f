"""What people run on data: mechanisms on arrays, exact in floats, reports, and estimators.

Each function is of a mechanism, which it takes first: what is run is what is accounted. All share

- ``charge``: an ``Accountant``, a ``Filter``, a ``Ledger`` or another with ``step(mechanism)``,
  which is charged before the noise is drawn; what the mechanism costs is nobody's otherwise;
- ``bits``: the source of random 64-bit words, the operating system's; another one is for tests;
- ``ParameterError`` where an argument is outside its domain: nothing is charged then;
- ``BudgetExhausted`` where what is charged refuses: nothing is drawn then;
- ``OSError`` where the operating system has no random bits to give: the charge stays.

**Exact** means: if the bits are ideal, the distribution is that of the mechanism, to the last
probability, and nothing that is released depends on how floats are rounded.
"""

from __future__ import annotations

from hockeystick.release.clipping import (
    CoordinateClipping,
    OnlineClipping,
    QuantileClipping,
    layered_sum,
    randomly_pruned_sum,
    selective_sum,
)
from hockeystick.release.correlated_noise import CorrelatedNoise
from hockeystick.release.decentralised import (
    GopaRound,
    GossipRun,
    WalkRun,
    gopa_round,
    gossip_average,
    noisy_iterations,
    token_walk,
)
from hockeystick.release.fairness import GroupFairness
from hockeystick.release.local_means import (
    LaplaceMean,
    LocalMean,
    OneBitMean,
    gaussian_error,
    gaussian_mean,
    gaussian_reports,
)
from hockeystick.release.local_reports import (
    rappor_again,
    rappor_error,
    rappor_filters,
    rappor_frequencies,
    rappor_once,
    rappor_reports,
    rappor_shares,
    response_error,
    response_frequencies,
    response_reports,
    unary_error,
    unary_frequencies,
    unary_reports,
)
from hockeystick.release.noise.integers import discrete_gaussian, geometric, skellam
from hockeystick.release.noise.real import (
    gaussian,
    laplace,
    multivariate_laplace,
    multivariate_laplace_length,
    multivariate_laplace_log_density,
    multivariate_laplace_variance,
)
from hockeystick.release.noise.sinh_normal import (
    sinh_normal,
    sinh_normal_divergences,
    sinh_normal_vector,
)
from hockeystick.release.selection import (
    Best,
    ThresholdQueries,
    above_threshold,
    exponential,
    grid_search,
    partition_selection,
    permute_and_flip,
    random_search,
    report_noisy_max,
    sparse_vector,
    users_by_partition,
)
from hockeystick.release.statistics import (
    Normalisation,
    PrincipalComponents,
    covariance,
    mean,
    normalisation,
    principal_components,
)
from hockeystick.release.streams import (
    CorrelatedSums,
    RunningSums,
    matrix_factorization,
    tree_aggregation,
)

__all__ = [
    "Best",
    "CoordinateClipping",
    "CorrelatedNoise",
    "CorrelatedSums",
    "GopaRound",
    "GossipRun",
    "GroupFairness",
    "LaplaceMean",
    "LocalMean",
    "Normalisation",
    "OneBitMean",
    "OnlineClipping",
    "PrincipalComponents",
    "QuantileClipping",
    "RunningSums",
    "ThresholdQueries",
    "WalkRun",
    "above_threshold",
    "covariance",
    "discrete_gaussian",
    "exponential",
    "gaussian",
    "gaussian_error",
    "gaussian_mean",
    "gaussian_reports",
    "geometric",
    "gopa_round",
    "gossip_average",
    "grid_search",
    "laplace",
    "layered_sum",
    "matrix_factorization",
    "mean",
    "multivariate_laplace",
    "multivariate_laplace_length",
    "multivariate_laplace_log_density",
    "multivariate_laplace_variance",
    "noisy_iterations",
    "normalisation",
    "partition_selection",
    "permute_and_flip",
    "principal_components",
    "random_search",
    "randomly_pruned_sum",
    "rappor_again",
    "rappor_error",
    "rappor_filters",
    "rappor_frequencies",
    "rappor_once",
    "rappor_reports",
    "rappor_shares",
    "report_noisy_max",
    "response_error",
    "response_frequencies",
    "response_reports",
    "selective_sum",
    "sinh_normal",
    "sinh_normal_divergences",
    "sinh_normal_vector",
    "skellam",
    "sparse_vector",
    "token_walk",
    "tree_aggregation",
    "unary_error",
    "unary_frequencies",
    "unary_reports",
    "users_by_partition",
]
