"""SMAC3's facades through ask and tell: its forest under HyperBand, and alone."""
import logging
import tempfile
import warnings

warnings.filterwarnings("ignore")

from ConfigSpace import (AndConjunction, Categorical, ConfigurationSpace, Float,  # noqa: E402
                         InCondition, Integer)
from smac import HyperparameterOptimizationFacade, MultiFidelityFacade, Scenario  # noqa: E402
from smac.runhistory.dataclasses import TrialValue  # noqa: E402

import clock  # noqa: E402

logging.disable(logging.CRITICAL)
LAUNCHES = 10  # of HyperBand for the time of each training, about; its start-up design needs a guess


def domain(p):
    if p.kind == "choice":
        return Categorical(p.name, p.choices)
    return (Integer if p.kind == "int" else Float)(p.name, (p.low, p.high), log=p.log)


def space_of(task, seed):
    space = ConfigurationSpace(seed=seed)
    space.add([domain(p) for p in task.parameters])
    for name, parents in task.conditions.items():
        found = [InCondition(space[name], space[parent], values) for parent, values in parents]
        space.add(found[0] if len(found) == 1 else AndConjunction(*found))
    return space


def never_called(config, seed=0, budget=0):
    raise NotImplementedError  # it is asked and told, but insists on a function


def never_called_without_budget(config, seed=0):
    raise NotImplementedError


class Smac:
    def __init__(self, task, seed, job, facade, budgets):
        self.task, self.known, self.asked = task, {}, {}
        self.folder = tempfile.TemporaryDirectory(prefix="tune-smac-")
        launches = job["trials"] or LAUNCHES * job["trainings"]
        limits = {"min_budget": 1, "max_budget": task.steps} if budgets else {}
        scenario = Scenario(space_of(task, seed), deterministic=True, seed=seed, n_trials=launches,
                            output_directory=self.folder.name, **limits)
        self.smac = facade(scenario, never_called if budgets else never_called_without_budget,
                           logging_level=False, overwrite=True)

    def next(self):
        """A configuration that comes again goes on from where it was."""
        try:
            info = self.smac.ask()
        except StopIteration:
            return None
        steps = round(info.budget) if info.budget else self.task.steps
        number = self.known.get(info.config)
        config = None
        if number is None:
            number = self.known[info.config] = len(self.known)
            config = {**self.task.constants,
                      **{name: value.item() if hasattr(value, "item") else value
                         for name, value in dict(info.config).items()}}
        self.asked[number] = info
        return number, config, steps

    def result(self, number, step, value):
        self.smac.tell(self.asked.pop(number), TrialValue(cost=-value), save=False)
        return None


METHODS = {"smac: forest + hyperband": lambda *made_for: Smac(*made_for, MultiFidelityFacade, True),
           "smac: forest + none": lambda *made_for: Smac(*made_for, HyperparameterOptimizationFacade, False)}

if __name__ == "__main__":
    clock.main(METHODS)
