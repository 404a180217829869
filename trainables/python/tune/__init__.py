"""Hyperparameter search: trials in processes of their own, forked from this one.

    import tune

    def train(config):
        for step in range(10):
            tune.report(loss=(config["x"] - 3) ** 2 / (step + 1))

    analysis = tune.run(train, config={"x": tune.uniform(0, 10)}, num_samples=20,
                        metric="loss", mode="min")
    print(analysis.best_config)
"""

from ._analysis import Analysis, TrialSummary, restore
from ._errors import BadInput, Error, InterruptedRun, TrialError, TrialOver
from ._methods import (
    Method,
    asha,
    automatic,
    basic_variant,
    cma_es,
    every_cell,
    fifo,
    gp,
    halton,
    hyperband,
    median_stopping,
    nsga2,
    pb2,
    pbt,
    pbt_replay,
    random_search,
    scheduler,
    searcher,
    tpe,
)
from ._run import at_most, run
from ._session import Session, checkpoint, context, report, session
from ._space import (
    Domain,
    choice,
    from_ray,
    grid_search,
    lograndint,
    loguniform,
    qloguniform,
    qrandint,
    qrandn,
    quniform,
    randint,
    randn,
    uniform,
)
from ._trainable import Context, Results, Trainable
from ._version import __version__

__all__ = [
    "Analysis",
    "BadInput",
    "Context",
    "Domain",
    "Error",
    "InterruptedRun",
    "Method",
    "Results",
    "Session",
    "Trainable",
    "TrialError",
    "TrialOver",
    "TrialSummary",
    "asha",
    "at_most",
    "automatic",
    "basic_variant",
    "checkpoint",
    "choice",
    "cma_es",
    "context",
    "every_cell",
    "fifo",
    "from_ray",
    "gp",
    "grid_search",
    "halton",
    "hyperband",
    "lograndint",
    "loguniform",
    "median_stopping",
    "nsga2",
    "pb2",
    "pbt",
    "pbt_replay",
    "qloguniform",
    "qrandint",
    "qrandn",
    "quniform",
    "randint",
    "randn",
    "random_search",
    "report",
    "restore",
    "run",
    "scheduler",
    "searcher",
    "session",
    "tpe",
    "uniform",
]
