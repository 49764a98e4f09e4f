"""What to write in place of calls that are of other libraries, or in part wrong."""

from __future__ import annotations

from typing import Final

# Where a participant is in several rounds of one tree.
_IN_ONE_TREE: Final = (
    "who is in several leaves of one tree: MatrixFactorization(noise_multiplier, "
    "mechanisms.Encoder.tree(leaves, participations=..., separation=...)); ** is for trees that "
    "begin anew"
)
_NEIGHBOURS: Final = 'write adjacency="add-remove", "replace-one" or "zero-out"'
_OF_THE_PLAN: Final = "it belongs to the plan, as in DPSGD({name}=...)"
_OF_THE_EVENT: Final = (
    ", or for an event of dp-accounting: adapters.dp_accounting.from_event(event, 'replace-one')"
)
_A_STEP: Final = (
    "a step of DP-SGD is step(PoissonSubsampled(Gaussian(noise_multiplier), rate)); "
    "step(noise_multiplier=..., sample_rate=...) is of adapters.opacus.HockeystickAccountant"
)
_ORDERS: Final = (
    "accountant='rdp' takes the best of all orders, accountants.best_order(plan, delta); what is "
    "known at some of them is a plan, RenyiDP({{order: divergence}})"
)
_A_TARGET: Final = "calibrate({}, 'noise_multiplier', ApproxDP({{}}, delta)) solves for the noise"
_PRECISION: Final = "tolerance= is the relative width of the interval, and digits= computes in more"
_CLIPPING_NORM: Final = "noise_multiplier is in units of the clipping norm, which is no part"
_AVERAGES: Final = "means of microbatches have no plan of their own: clip each example alone"
_SAVED: Final = "write report(plan, delta=1e-5).save({!r})"
_WORKERS: Final = "write executor=concurrent.futures.ProcessPoolExecutor({})"
_OTHER_LENGTH: Final = (
    "for a number of steps write DPSGD(examples=..., batch_size=..., steps={}, "
    "noise_multiplier=...)"
)
# What takes more than another name, by what it is given to; ``{}`` is the value that was given.
INSTEAD: Final = {
    **{
        ("FedSDP", letters): "the rate is clients_per_round / total_clients"
        for letters in ("rate", "samplerate", "samplingrate", "q", "clientrate", "fractionfit")
    },
    ("sweep", "delta"): "write hs.sweep(grid, hs.calibration.AskEpsilon(plan, delta={}))",
    ("sweep", "epsilon"): "write hs.sweep(grid, hs.calibration.AskDelta(plan, epsilon={}))",
    ("sweep", "plan"): "write hs.sweep(grid, hs.calibration.AskEpsilon(plan, delta=1e-5))",
    ("DiscreteLaplace", "epsilon"): "scale = sensitivity / epsilon, so 1 / {} at sensitivity 1",
    ("DiscreteLaplace", "parameter"): "scale = 1 / parameter, so 1 / {}",
    ("Laplace", "epsilon"): "scale = 1 / epsilon in units of the sensitivity, so 1 / {}",
    ("Laplace", "sensitivity"): "scale is the noise's scale over the sensitivity",
    ("Gaussian", "sensitivity"): "noise_multiplier is the standard deviation over the sensitivity",
    ("Gaussian", "sigma"): "noise_multiplier is sigma over the sensitivity, so {} at sensitivity 1",
    ("TreeAggregation", "participations"): _IN_ONE_TREE,
    ("TreeAggregation", "separation"): _IN_ONE_TREE,
    ("TreeAggregation", "minseparation"): _IN_ONE_TREE,
    ("TreeAggregation", "maxparticipations"): _IN_ONE_TREE,
    ("TreeAggregation", "epochs"): _IN_ONE_TREE,
    ("TreeAggregation", "restarts"): _IN_ONE_TREE,
    ("Accountant", "neighboringrelation"): _OF_THE_PLAN.format(name="adjacency"),
    ("Accountant", "adjacency"): _OF_THE_PLAN.format(name="adjacency"),
    ("Accountant", "accountant"): "it is asked for: accountant.epsilon(delta, accountant={!r})",
    ("Accountant", "orders"): "write accountant.epsilon(delta, accountant='rdp'): the best order",
    ("DPSGD", "neighboringrelation"): _NEIGHBOURS,
    ("DPSGD", "neighbouringrelation"): _NEIGHBOURS,
    ("discrete_gaussian", "sigma"): "it is of the mechanism: DiscreteGaussian(sigma={})",
    ("gaussian", "sigma"): "the mechanism has the noise: Gaussian(sigma / sensitivity)",
    ("gaussian", "noisemultiplier"): "it is of the mechanism: Gaussian(noise_multiplier={})",
    ("geometric", "scale"): "it is of the mechanism: DiscreteLaplace(scale={})",
    ("geometric", "epsilon"): "the mechanism has the noise: DiscreteLaplace(sensitivity / {})",
    ("laplace", "scale"): "the mechanism has the noise: Laplace(scale / sensitivity)",
    ("laplace", "epsilon"): "the mechanism has the noise: Laplace(1 / {})",
    ("tradeoff", "alpha"): "write tradeoff(plan)({})",
    ("Shuffled", "users"): "reports that each person randomizes: ShuffledReports(randomizer, {})",
    **{("step", letters): _A_STEP for letters in ("noisemultiplier", "samplerate", "rate")},
    ("DPSGD", "targetdelta"): "epsilon(plan, delta) asks for a plan's epsilon at delta = {}",
    ("DPSGD", "targetepsilon"): "calibrate(DPSGD, 'noise_multiplier', ApproxDP({}, delta), ...) "
    "solves for the noise that meets it",
    **{
        ("RandomizedResponse", letters): "epsilon = ln(p / (1 - p)) where a true answer to two "
        "categories has probability p, so math.log({0} / (1 - {0}))"
        for letters in ("probability", "prob", "p", "truth", "ptruth", "truthprobability")
    },
    **{(asked, "group"): "plan.for_group({})" for asked in ("epsilon", "delta", "compare")},
    ("DPSGD", "delta"): "epsilon(plan, delta) asks for a plan's epsilon at delta = {}",
    **{
        (asked, letters): _OF_THE_PLAN.format(name=name)
        for asked in ("epsilon", "delta", "compare")
        for letters, name in (
            ("noisemultiplier", "noise_multiplier"),
            ("sigma", "noise_multiplier"),
            ("samplerate", "rate"),
            ("samplingprobability", "rate"),
            ("rate", "rate"),
            ("q", "rate"),
            ("steps", "steps"),
            ("epochs", "epochs"),
        )
    },
    **{
        (asked, letters): _OF_THE_PLAN.format(name="adjacency") + _OF_THE_EVENT
        for asked in ("epsilon", "delta", "compare")
        for letters in ("adjacency", "neighboringrelation", "neighbouringrelation")
    },
    ("epsilon", "epsilon"): "delta(plan, epsilon) asks for a plan's delta at epsilon = {}",
    ("delta", "delta"): "epsilon(plan, delta) asks for a plan's epsilon at delta = {}",
    **{
        (asked, letters): _CLIPPING_NORM
        for asked in ("DPSGD", "epsilon", "delta")
        for letters in (
            "maxgradnorm",
            "l2normclip",
            "clippingnorm",
            "clipnorm",
            "clippingthreshold",
            "maxnorm",
            "gradnorm",
        )
    },
    ("DPSGD", "accountant"): "it is asked for: epsilon(plan, delta, accountant={!r})",
    ("DPSGD", "poissonsampling"): "write sampling='poisson' or 'shuffle'",
    ("DPSGD", "shuffle"): "write sampling='shuffle'",
    ("DPSGD", "microbatches"): _AVERAGES,
    ("DPSGD", "nummicrobatches"): _AVERAGES,
    ("DPSGD", "usedmicrobatching"): _AVERAGES,
    ("from_loader", "targetepsilon"): "make a plan with any noise; "
    "calibrate(plan, 'noise_multiplier', ApproxDP({}, delta)) solves for what meets it",
    ("from_loader", "steps"): _OTHER_LENGTH,
    ("from_loader", "numsteps"): _OTHER_LENGTH,
    ("Gaussian", "epsilon"): _A_TARGET.format("Gaussian"),
    ("Gaussian", "mu"): "noise_multiplier = 1 / mu, so 1 / {}",
    ("Gaussian", "rho"): "noise_multiplier = 1 / sqrt(2 rho), so 1 / math.sqrt(2 * {})",
    ("Gaussian", "adjacency"): "its sensitivity is that of the neighbours meant",
    ("Gaussian", "count"): "write Gaussian(noise_multiplier) ** {}",
    **{
        (asked, letters): "write plan ** {}"
        for asked in ("epsilon", "delta", "tradeoff")
        for letters in ("count", "compositions", "numcompositions", "times", "repeat")
    },
    **{
        (asked, letters): _PRECISION
        for asked in ("epsilon", "delta")
        for letters in (
            "epserror",
            "deltaerror",
            "valuediscretizationinterval",
            "meshsize",
            "gridstep",
        )
    },
    **{
        (asked, letters): _ORDERS
        for asked in ("epsilon", "delta", "AskEpsilon", "AskDelta")
        for letters in ("orders", "alphas", "rdporders")
    },
    ("AskEpsilon", "epsilon"): "write AskDelta(plan, epsilon={})",
    ("AskDelta", "delta"): "write AskEpsilon(plan, delta={})",
    **{
        ("Solve", letters): "the target is one guarantee, such as ApproxDP(epsilon, delta)"
        for letters in ("epsilon", "delta", "targetepsilon", "targetdelta")
    },
    ("Accountant", "mechanism"): "it is asked for: accountant.epsilon(delta, accountant={!r})",
    ("Accountant", "delta"): "it is asked for: accountant.epsilon(delta={})",
    ("Accountant", "noisemultiplier"): _A_STEP,
    ("Accountant", "samplerate"): _A_STEP,
    ("Accountant", "history"): _A_STEP,
    ("tradeoff", "fpr"): "write tradeoff(plan)({})",
    ("tradeoff", "group"): "write tradeoff(plan.for_group({}))",
    ("tradeoff", "delta"): "write tradeoff(plan).epsilon({})",
    ("tradeoff", "epsilon"): "write tradeoff(plan).delta({})",
    **{("report", letters): _SAVED for letters in ("out", "path", "file", "filename", "output")},
    ("report", "epsilon"): "whether epsilon is at most this: budget_epsilon={}",
    **{("sweep", letters): _WORKERS for letters in ("njobs", "workers", "maxworkers", "processes")},
    **{
        ("sweep", letters): f"write hs.sweep({{{{{name!r}: {{}}}}}}, "
        "hs.calibration.AskEpsilon(plan, delta=1e-5))"
        for letters, name in (
            ("noisemultiplier", "noise_multiplier"),
            ("sigma", "noise_multiplier"),
            ("rate", "rate"),
            ("samplerate", "rate"),
            ("steps", "steps"),
            ("epochs", "epochs"),
            ("batchsize", "batch_size"),
        )
    },
}

# What two parameters of a class come to together, where another has the place of both; of each,
# its value in the order of the names.
TOGETHER: Final = {
    **{
        ("Gaussian", letters, "sensitivity"): "noise_multiplier is the standard deviation over the "
        "sensitivity, so {} / {}"
        for letters in (
            "sigma",
            "scale",
            "std",
            "stddev",
            "standarddeviation",
            "noisemultiplier",
        )
    },
    ("Laplace", "scale", "sensitivity"): "scale is the noise's scale over the sensitivity, so "
    "{} / {}",
    ("DiscreteLaplace", "sensitivity", "epsilon"): "scale = sensitivity / epsilon, so {} / {}",
}

# How others call a mechanism that has another number here, and what that becomes.
OTHER_NUMBERS: Final = {
    "geometric": "DiscreteLaplace(scale=sensitivity / epsilon), which for noise of a parameter "
    "alpha is DiscreteLaplace(-1 / ln(alpha))",
}

# What a call lacks, or has too much of, and what to write, by what is called.
CALLED_WITH: Final = {
    "Accountant.delta": "accountant.delta(epsilon)",
    "Accountant.epsilon": "accountant.epsilon(delta)",
    "Accountant.tradeoff": "accountant.tradeoff()",
    "AskDelta": "AskDelta(plan, epsilon=1)",
    "AskEpsilon": "AskEpsilon(plan, delta=1e-5)",
    "Accountant": "Accountant(), then accountant.step(mechanism) and accountant.epsilon(delta)",
    "Composed": "Composed((a, b)), or a @ b",
    "Encoder": "Encoder.tree(rounds, participations=..., separation=...), "
    "Encoder.square_root(rounds), Encoder.of(strategy, rounds) or Encoder.of_matrix(matrix)",
    "FDP": "FDP(tradeoffs.discrete_tradeoff(p, q)) of the probabilities of outcomes, or "
    "FDP(tradeoffs.G(mu))",
    "Ledger": "Ledger('ledger.db', 'census', budget=ZCDP(rho=0.5)): a file or a database's URL, "
    "the name of a dataset, a budget",
    "Parallel": "Parallel((a, b, c), 'region')",
    "RenyiDP": "RenyiDP({order: divergence}), or RenyiDP(zip(orders, divergences))",
    "ShuffledReports": "ShuffledReports(RandomizedResponse(epsilon=1), users=1000)",
    "calibrate": "calibrate(DPSGD, 'noise_multiplier', ApproxDP(epsilon, delta), examples=..., "
    "batch_size=..., epochs=...): a plan or a class of plans, what to solve for, a target",
    "convert": "convert(plan, hockeystick.ZCDP), or convert(plan, hockeystick.ApproxDP, "
    "delta=1e-5)",
    "from_loader": "DPSGD.from_loader(loader, epochs=..., noise_multiplier=..., "
    "sampling='poisson' or 'shuffle')",
    "report": "report(plan, delta=1e-5), and .save('report.html') of it",
    "step": "step(mechanism), or step(mechanism, count)",
    "Solve": "Solve(plan, 'noise_multiplier', ApproxDP(epsilon=2, delta=1e-5))",
    "verify": "verify(answer, plan) of what epsilon(plan, delta) answered, or "
    "verify('report.html')",
    "sweep": "hs.sweep(grid, hs.calibration.AskEpsilon(plan, delta=1e-5)), or AskDelta, or Solve",
    "epsilon": "epsilon(plan, delta)",
    "delta": "delta(plan, epsilon)",
    "discrete_gaussian": "discrete_gaussian(DiscreteGaussian(sigma), value, charge=...)",
    "gaussian": "gaussian(Gaussian(noise_multiplier), value, sensitivity, charge=...)",
    "geometric": "geometric(DiscreteLaplace(scale), value, charge=...)",
    "laplace": "laplace(Laplace(scale), value, sensitivity, charge=...)",
    "skellam": "skellam(Skellam(variance), value, charge=...)",
    "tradeoff": "tradeoff(plan)",
}

# Where more is given by place than there are places, and what else than naming it is meant.
TOO_MANY: Final = {
    "Accountant.tradeoff": "accountant.tradeoff()(alpha), the least false negative rate at a false "
    "positive rate",
    "Gaussian": "Gaussian(sigma / sensitivity)",
    "convert": "convert(x, hockeystick.ApproxDP, delta=1e-5)",
    "epsilon": "epsilon(plan, delta, accountant=..., digits=..., tolerance=...) of a plan such as "
    "DPSGD(noise_multiplier=..., rate=..., steps=...)",
    "report": "report(plan, delta=1e-5), and .save('report.html') of it",
    "step": "step(PoissonSubsampled(Gaussian(noise_multiplier), rate), count)",
    "calibrate": "calibrate(plan, 'noise_multiplier', ApproxDP(epsilon=2, delta=1e-5)): the target "
    "is one guarantee",
    "tradeoff": "tradeoff(plan)(alpha), the least false negative rate at a false positive rate",
}

# What reads an event of dp-accounting.
FROM_EVENT: Final = "hockeystick.adapters.dp_accounting.from_event(event, adjacency)"
# What its classes end in, and what is written where only texts are read.
EVENT: Final = "DpEvent"
IN_PLACE_OF_EVENTS: Final = (
    f" but an event of dp-accounting: write PoissonSubsampled(Gaussian(1.1), rate=0.01)**1000 or "
    f"alike, or in Python {FROM_EVENT}"
)

# Functions and classes of other libraries, and what is called in their place.
OF_OTHERS: Final = {
    "hockeystick.epsilon(hockeystick.DPSGD(examples=..., batch_size=..., epochs=..., "
    "noise_multiplier=...), delta)": "compute-dp-sgd-privacy compute-dp-sgd-privacy-statement "
    "apply-dp-sgd-analysis get-privacy-spent compute-epsilon",
    "hockeystick.convert(plan, hockeystick.RenyiDP, orders=[2, 4, 8]) for the divergences at some "
    'orders, or hockeystick.epsilon(plan, delta, accountant="rdp") for the best of all': "get-rdp "
    "compute-rdp function-rdp renyi-divergence renyi-divergences",
    "hockeystick.mechanisms.ShuffledReports(randomizer, users) for reports that each person "
    "randomizes, or hockeystick.Shuffled(inner, steps) for training in shuffled "
    "order": "shuffle shuffling shuffler shuffle-model",
    'hockeystick.calibrate(hockeystick.DPSGD, "noise_multiplier", hockeystick.ApproxDP(epsilon, '
    "delta), rate=sample_rate, steps=...), or with examples=..., batch_size=..., epochs=... in "
    "place of both": "calibrate-dp-mechanism "
    "get-noise-multiplier find-noise-multiplier get-sigma calibrate-analytic-gaussian-mechanism "
    "solve find-noise calibrate-noise compute-noise",
    "hockeystick.epsilon(plan, delta), or in a loop hockeystick.Accountant()": "rdp-accountant "
    "pld-accountant prv-accountant gaussian-accountant moments-accountant privacy-accountant "
    "create-accountant",
    "hockeystick.FDP(hockeystick.tradeoffs.discrete_tradeoff(p, q)) for the probabilities of "
    "outcomes under two neighbours, or hockeystick.adapters.dp_accounting.from_pld(pld)": "pld "
    "pmf privacy-loss-distribution from-pld from-pmf from-privacy-loss-distribution dense-pld-pmf "
    "from-two-probability-mass-functions custom-mechanism",
    f"hockeystick.{OTHER_NUMBERS['geometric']}": "geometric geometric-mechanism "
    "two-sided-geometric",
    "hockeystick.Gaussian(noise_multiplier=stddev / l2_norm_clip)": "gaussian-sum-query "
    "gaussian-average-query",
    "mechanism ** 0, which releases nothing": "no-op no-op-dp-event none-dp-event",
    "hockeystick.Gaussian(0), whose noise hides nothing": "non-private non-private-dp-event",
    "hockeystick.Mechanism, or for an event of dp-accounting "
    "hockeystick.adapters.dp_accounting.from_event(event, adjacency)": "dp-event",
    FROM_EVENT: "from-event from-dp-event read-event",
    "adjacency='add-remove', 'replace-one' or 'zero-out' of a plan": "neighboring-relation "
    "neighbouring-relation neighbor-relation neighbor-rel",
    "plan.for_group(size), as in plan.for_group(3)": "group group-privacy",
    "hockeystick.epsilon(plan, delta)": "get-epsilon",
    "hockeystick.delta(plan, epsilon)": "get-delta compute-delta",
    "hockeystick.adapters.opacus.PrivacyEngine() in place of Opacus's, or without one "
    "hockeystick.epsilon(plan, delta)": "privacy-engine",
}
# The same of methods of an accountant.
METHODS_OF_OTHERS: Final = {
    "hockeystick.accountants.best_order(accountant.plan, delta)": "get-epsilon-and-optimal-order",
    "epsilon(delta)": "get-epsilon get-privacy-spent compute-epsilon",
    "delta(epsilon)": "get-delta compute-delta",
    "step(mechanism, count)": "compose compose-event add record",
    "plan": "history dp-event event ledger",
    "hockeystick.adapters.opacus.HockeystickAccountant": "get-optimizer-hook-fn",
}
# The same of methods of a mechanism.
METHODS_OF_MECHANISMS: Final = {
    "hockeystick.epsilon(plan, delta)": "epsilon get-epsilon get-epsilon-for-delta compute-epsilon "
    "get-privacy-spent approx-dp get-approx-dp",
    "hockeystick.delta(plan, epsilon)": "delta get-delta get-delta-for-epsilon compute-delta",
    "plan ** count": "self-compose repeat times",
    "a @ b": "compose then and-then",
    "hockeystick.convert(plan, hockeystick.RenyiDP, orders=[2, 4, 8])": "rdp get-rdp renyi-div "
    "tau divergences",
    "hockeystick.convert(plan, hockeystick.ZCDP).rho": "rho",
    "hockeystick.convert(plan, hockeystick.GDP).mu": "mu",
    "hockeystick.tradeoff(plan)": "tradeoff get-tradeoff fdp get-f-dp",
    "what hockeystick.release has for it, as hockeystick.release.gaussian(mechanism, value, "
    "sensitivity)": "release sample randomize randomise add-noise privatize privatise",
}
