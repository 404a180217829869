"""Syne Tune's schedulers, which ask their searchers themselves."""
import logging
import warnings

import numpy
from syne_tune import config_space
from syne_tune.backend.trial_status import Trial
from syne_tune.optimizer import baselines

import clock

warnings.filterwarnings("ignore")
logging.disable(logging.CRITICAL)


def domain(p):
    if p.kind == "choice":
        return config_space.choice(p.choices)
    if p.kind == "int":
        return (config_space.lograndint if p.log else config_space.randint)(p.low, p.high)
    return (config_space.loguniform if p.log else config_space.uniform)(p.low, p.high)


class Syne:
    """Stopping schedulers, which are told what comes at their rungs."""

    def __init__(self, task, seed, make):
        numpy.random.seed(seed)  # parts of it draw from the global generator
        self.task, self.trials = task, {}
        self.rungs = clock.rungs(task.steps) + [task.steps]
        space = {p.name: domain(p) for p in task.parameters}
        self.scheduler = make(space, metric="value", do_minimize=False, random_seed=seed,
                              time_attr="step", max_t=task.steps, grace_period=1,
                              reduction_factor=3)

    def next(self):
        suggestion = self.scheduler.suggest()
        number = len(self.trials)
        self.trials[number] = Trial(number, suggestion.config, None)
        self.scheduler.on_trial_add(self.trials[number])
        config = {p.name: self.inside(p, suggestion.config[p.name]) for p in self.task.parameters}
        return number, {**self.task.constants, **config}, self.rungs[0]

    @staticmethod
    def inside(p, value):
        """BOHB's searcher proposes whole numbers from 0 to the upper bound, wherever the lower one is
        (kde_searcher.py scales by one range and back by another): the nearest in the space."""
        value = value.item() if isinstance(value, numpy.generic) else value
        return value if p.kind == "choice" else min(max(value, p.low), p.high)

    def result(self, number, step, value):
        trial, told = self.trials[number], {"value": value, "step": step}
        if step >= self.task.steps:
            self.scheduler.on_trial_complete(trial, told)
        elif self.scheduler.on_trial_result(trial, told) == "CONTINUE":
            return min(r for r in self.rungs if r > step)
        return None


METHODS = {"syne: random + asha": lambda task, seed, _: Syne(task, seed, baselines.ASHA),
           "syne: bohb + asha": lambda task, seed, _: Syne(task, seed, baselines.BOHB),
           "syne: cqr + asha": lambda task, seed, _: Syne(task, seed, baselines.ASHACQR)}

if __name__ == "__main__":
    clock.main(METHODS)
