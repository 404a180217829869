"""HEBO, told each trial's last value, as Ray Tune's HEBOSearch does."""
import logging
import warnings

warnings.filterwarnings("ignore")

import numpy  # noqa: E402
import torch  # noqa: E402
from hebo.design_space.design_space import DesignSpace  # noqa: E402
from hebo.optimizers.hebo import HEBO  # noqa: E402

import clock  # noqa: E402
from halving import Stopping  # noqa: E402

logging.disable(logging.CRITICAL)
torch.set_num_threads(1)


def domain(p):
    if p.kind == "choice":
        return {"name": p.name, "type": "cat", "categories": p.choices}
    kind = {("int", False): "int", ("int", True): "pow_int", ("float", False): "num",
            ("float", True): "pow"}[p.kind, p.log]
    return {"name": p.name, "type": kind, "lb": p.low, "ub": p.high}


class Hebo:
    """It knows no conditions: what is not active is ignored."""

    def __init__(self, task, seed, rungs):
        numpy.random.seed(seed % 2 ** 32)  # it draws from the global generators
        torch.manual_seed(seed)
        self.task, self.rungs, self.suggestions = task, rungs + [task.steps], []
        self.stopping = Stopping(rungs)
        space = DesignSpace().parse([domain(p) for p in task.parameters])
        self.hebo = HEBO(space, scramble_seed=seed)

    def next(self):
        suggestion = self.hebo.suggest(n_suggestions=1)
        self.suggestions.append(suggestion)
        config = {p.name: self.plain(p, suggestion[p.name].iloc[0]) for p in self.task.parameters}
        return len(self.suggestions) - 1, {**self.task.constants, **config}, self.rungs[0]

    @staticmethod
    def plain(p, value):
        if p.kind == "choice":
            return value
        value = float(value)
        return min(max(round(value) if p.kind == "int" else value, p.low), p.high)

    def result(self, number, step, value):
        if step < self.task.steps and self.stopping.goes_on(step, value):
            return min(r for r in self.rungs if r > step)
        self.hebo.observe(self.suggestions[number], numpy.array([[-value]]))
        return None


METHODS = {"hebo: hebo + asha": lambda task, seed, _: Hebo(task, seed, clock.rungs(task.steps)),
           "hebo: hebo + none": lambda task, seed, _: Hebo(task, seed, [])}

if __name__ == "__main__":
    clock.main(METHODS)
