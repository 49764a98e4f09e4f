# The public names and where they are: type checkers read it, and they are loaded by it.
from .clipping import (
    Clipping as Clipping,
    CoordinateClipping as CoordinateClipping,
    OnlineClipping as OnlineClipping,
    QuantileClipping as QuantileClipping,
    layered_sum as layered_sum,
    randomly_pruned_sum as randomly_pruned_sum,
    selective_sum as selective_sum,
)
from .decentralised import (
    GopaRound as GopaRound,
    GossipRun as GossipRun,
    WalkRun as WalkRun,
    gopa_round as gopa_round,
    gossip_average as gossip_average,
    noisy_iterations as noisy_iterations,
    token_walk as token_walk,
)
from .local_reports import (
    LaplaceMean as LaplaceMean,
    LocalMean as LocalMean,
    OneBitMean as OneBitMean,
    gaussian_error as gaussian_error,
    gaussian_mean as gaussian_mean,
    gaussian_reports as gaussian_reports,
    rappor_again as rappor_again,
    rappor_error as rappor_error,
    rappor_filters as rappor_filters,
    rappor_frequencies as rappor_frequencies,
    rappor_once as rappor_once,
    rappor_reports as rappor_reports,
    rappor_shares as rappor_shares,
    response_error as response_error,
    response_frequencies as response_frequencies,
    response_reports as response_reports,
    unary_error as unary_error,
    unary_frequencies as unary_frequencies,
    unary_reports as unary_reports,
)
from .noise.arrays import (
    discrete_gaussian as discrete_gaussian,
    gaussian as gaussian,
    geometric as geometric,
    laplace as laplace,
    multivariate_laplace as multivariate_laplace,
    multivariate_laplace_length as multivariate_laplace_length,
    multivariate_laplace_log_density as multivariate_laplace_log_density,
    multivariate_laplace_variance as multivariate_laplace_variance,
    sinh_normal as sinh_normal,
    sinh_normal_divergences as sinh_normal_divergences,
    sinh_normal_vector as sinh_normal_vector,
    skellam as skellam,
)
from .selection import (
    Best as Best,
    ThresholdQueries as ThresholdQueries,
    above_threshold as above_threshold,
    exponential as exponential,
    grid_search as grid_search,
    partition_selection as partition_selection,
    permute_and_flip as permute_and_flip,
    random_search as random_search,
    report_noisy_max as report_noisy_max,
    sparse_vector as sparse_vector,
    users_by_partition as users_by_partition,
)
from .statistics import (
    GroupFairness as GroupFairness,
    Normalisation as Normalisation,
    PrincipalComponents as PrincipalComponents,
    covariance as covariance,
    mean as mean,
    normalisation as normalisation,
    principal_components as principal_components,
)
from .streams import (
    CorrelatedNoise as CorrelatedNoise,
    CorrelatedSums as CorrelatedSums,
    RunningSums as RunningSums,
    matrix_factorization as matrix_factorization,
    tree_aggregation as tree_aggregation,
)

__all__: list[str]
