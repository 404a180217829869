"""Optuna's samplers and pruners through ask and tell."""
import warnings

import optuna
from optuna.trial import TrialState

import clock

optuna.logging.set_verbosity(optuna.logging.ERROR)
warnings.filterwarnings("ignore")


class Optuna:
    """Reports at `rungs`, where the pruner is asked."""

    def __init__(self, task, seed, sampler, pruner, rungs):
        self.task, self.rungs, self.trials = task, rungs, {}
        # Its name says which bracket of HyperBand a trial joins; by default it is random.
        self.study = optuna.create_study(directions=["maximize"] * len(task.signs), sampler=sampler,
                                         pruner=pruner, study_name="%s %d" % (task.name, seed))

    def suggest(self, trial):
        config = dict(self.task.constants)
        for p in sorted(self.task.parameters, key=lambda p: p.name in self.task.conditions):
            if not self.task.is_active(p, config):
                continue
            if p.kind == "choice":
                config[p.name] = trial.suggest_categorical(p.name, p.choices)
            elif p.kind == "int":
                config[p.name] = trial.suggest_int(p.name, p.low, p.high, log=p.log)
            else:
                config[p.name] = trial.suggest_float(p.name, p.low, p.high, log=p.log)
        return config

    def next(self):
        trial = self.study.ask()
        config = self.suggest(trial)
        self.trials[trial.number] = trial
        return trial.number, config, (self.rungs + [self.task.steps])[0]

    def result(self, number, step, value):
        trial = self.trials[number]
        if not isinstance(value, list):  # of several objectives nothing is reported
            trial.report(value, step)
        if step >= self.task.steps:
            self.study.tell(trial, value)
        elif trial.should_prune():
            self.study.tell(trial, state=TrialState.PRUNED)
        else:
            return min([r for r in self.rungs if r > step] + [self.task.steps])
        return None


def halving(task):
    return optuna.pruners.SuccessiveHalvingPruner(min_resource=1, reduction_factor=3), clock.rungs(task.steps)


def hyperband(task):
    pruner = optuna.pruners.HyperbandPruner(min_resource=1, max_resource=task.steps, reduction_factor=3)
    return pruner, clock.rungs(task.steps)


def median(task):
    return optuna.pruners.MedianPruner(), list(range(1, task.steps))


def none(task):
    return optuna.pruners.NopPruner(), []


SAMPLERS = {
    "random": lambda seed: optuna.samplers.RandomSampler(seed=seed),
    "tpe": lambda seed: optuna.samplers.TPESampler(seed=seed),
    "tpe univariate": lambda seed: optuna.samplers.TPESampler(seed=seed, multivariate=False),
    "tpe group": lambda seed: optuna.samplers.TPESampler(seed=seed, multivariate=True, group=True),
    "gp": lambda seed: optuna.samplers.GPSampler(seed=seed),
    "nsga2": lambda seed: optuna.samplers.NSGAIISampler(seed=seed),
}
PRUNERS = {"none": none, "halving": halving, "hyperband": hyperband, "median": median}


def method(sampler, pruner):
    return lambda task, seed, _: Optuna(task, seed, SAMPLERS[sampler](seed), *PRUNERS[pruner](task))


METHODS = {"optuna: %s + %s" % (s, p): method(s, p) for s in SAMPLERS for p in PRUNERS}

if __name__ == "__main__":
    clock.main(METHODS)
