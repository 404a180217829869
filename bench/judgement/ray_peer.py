"""Ray Tune's ASHA with its search by Optuna: told what Ray's own loop tells them."""
import logging
import os
import types
import warnings

os.environ["RAY_AIR_NEW_OUTPUT"] = "0"
warnings.filterwarnings("ignore")

import optuna  # noqa: E402
from ray import tune  # noqa: E402
from ray.tune.schedulers import ASHAScheduler  # noqa: E402
from ray.tune.search.optuna import OptunaSearch  # noqa: E402

import clock  # noqa: E402

logging.disable(logging.CRITICAL)
optuna.logging.set_verbosity(optuna.logging.ERROR)


def domain(p):
    if p.kind == "choice":
        return tune.choice(p.choices)
    if p.kind == "int":  # their upper bounds are not in it
        return (tune.lograndint if p.log else tune.randint)(p.low, p.high + 1)
    return (tune.loguniform if p.log else tune.uniform)(p.low, p.high)


class Ray:
    def __init__(self, task, seed, _):
        self.task, self.trials = task, {}
        self.rungs = clock.rungs(task.steps) + [task.steps]
        self.search = OptunaSearch({p.name: domain(p) for p in task.parameters}, metric="value",
                                   mode="max", seed=seed)
        self.scheduler = ASHAScheduler(metric="value", mode="max", max_t=task.steps, grace_period=1,
                                       reduction_factor=3)

    def next(self):
        number = len(self.trials)
        self.trials[number] = types.SimpleNamespace(trial_id=str(number))
        config = self.search.suggest(str(number))
        self.scheduler.on_trial_add(None, self.trials[number])
        return number, {**self.task.constants, **config}, self.rungs[0]

    def result(self, number, step, value):
        told = {"value": value, "training_iteration": step}
        if self.scheduler.on_trial_result(None, self.trials[number], told) == "CONTINUE":
            self.search.on_trial_result(str(number), told)
            return min(r for r in self.rungs if r > step)
        self.search.on_trial_complete(str(number), told)
        return None


METHODS = {"ray: optuna + asha": Ray}

if __name__ == "__main__":
    clock.main(METHODS)
