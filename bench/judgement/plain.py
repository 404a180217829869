"""Searches that need no library: what every other one has to beat."""
import random

import clock


class Random:
    """Random configurations, each trained to its end."""

    def __init__(self, task, seed, _):
        self.task, self.random, self.count = task, random.Random(seed), 0

    def draw(self):
        self.count += 1
        return self.count - 1, self.task.config_at([self.random.random() for _ in self.task.parameters])

    def next(self):
        return (*self.draw(), self.task.steps)

    def result(self, trial, step, value):
        return None


class Screening(Random):
    """One step each for half of the time, as the first of them tell; then the best three are trained
    to their end (Egele et al., arXiv 2307.15422), and what time is left goes to the next best."""

    def __init__(self, task, seed, job):
        super().__init__(task, seed, job)
        self.budget = job["budget_s"] * job["workers"] / 2
        self.spent, self.values, self.trained = 0.0, [], set()

    def next(self):
        if self.spent < self.budget:
            trial, config = self.draw()
            # A table would give the row away.
            is_table = self.task.trials != float("inf")
            self.spent += 1 if is_table else self.task.curve(config).through(1)[1][0]
            return trial, config, 1
        waiting = sorted((v, t) for t, v in enumerate(self.values) if t not in self.trained and v)
        if not waiting:
            return None
        trial = waiting[-1][1]
        self.trained.add(trial)
        return trial, None, self.task.steps

    def result(self, trial, step, value):
        while len(self.values) <= trial:
            self.values.append(None)
        self.values[trial] = value
        return None


METHODS = {"plain: random + none": Random, "plain: one step + the best": Screening}

if __name__ == "__main__":
    clock.main(METHODS)
