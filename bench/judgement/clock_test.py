"""python3 bench/judgement/clock_test.py: the scenes of tests/tune/simulate/virtual_sweep_test.cc."""
import os
import subprocess
import sys
import unittest

import clock
from tasks import WORST


class Whole:
    """A curve."""

    def __init__(self, *steps):
        self.steps = steps

    def through(self, _):
        return self.steps


class Line:
    """Reports x * step; each step takes a second."""

    def __init__(self, steps, sign=1):
        self.steps, self.signs, self.sign, self.trials = steps, [sign], sign, float("inf")

    def curve(self, x):
        return Whole([self.sign * x * step for step in range(1, self.steps + 1)], [1.0] * self.steps)


class Grid:
    """x 1, 2, 3, 4; each trial goes on while it is better than all before it at that step."""

    def __init__(self, values, rungs):
        self.values, self.rungs, self.next_trial, self.best = values, rungs, 0, {}

    def next(self):
        if self.next_trial == len(self.values):
            return None
        self.next_trial += 1
        return self.next_trial - 1, self.values[self.next_trial - 1], self.rungs[0]

    def result(self, trial, step, value):
        is_best = value > self.best.get(step, float("-inf"))
        self.best[step] = max(value, self.best.get(step, value))
        further = [rung for rung in self.rungs if rung > step]
        return further[0] if further and is_best else None


def play(task, peer, **job):
    return clock.Run(task, peer, {"workers": 2, "budget_s": 0, "trials": 0, "start_cost": 0,
                                  **job}).play()


class Test(unittest.TestCase):
    def test_trials_share_workers_for_as_long_as_their_steps_take(self):
        run = play(Line(3), Grid([1, 2, 3, 4], [3]))
        self.assertEqual(run["seconds"], 6)
        self.assertEqual(run["trials_begun"], 4)
        self.assertEqual(run["best"], [[3, 0, 3], [3, 1, 6], [6, 2, 9], [6, 3, 12]])

    def test_each_launch_costs_its_start(self):
        self.assertEqual(play(Line(3), Grid([1, 2, 3, 4], [3]), start_cost=.5)["seconds"], 7)

    def test_a_budget_ends_it_and_what_is_not_finished_does_not_count(self):
        run = play(Line(3), Grid([1, 2, 3, 4] * 9, [3]), budget_s=7.5)
        self.assertEqual((run["seconds"], run["trials_begun"]), (7.5, 6))
        self.assertEqual(run["best"][-1], [6, 3, 12])

    def test_so_many_trials_and_no_more(self):
        self.assertEqual(play(Line(3), Grid([1, 2, 3, 4], [3]), trials=3)["trials_begun"], 3)

    def test_a_value_counts_when_its_trial_asks(self):
        # One worker: 4 goes on to the end, the others end at the first rung.
        run = play(Line(9), Grid([4, 3, 2, 1], [1, 3, 9]), workers=1)
        self.assertEqual(run["best"], [[1, 0, 4], [3, 0, 12], [9, 0, 36]])
        self.assertEqual(run["seconds"], 12)

    def test_of_several_objectives_the_last_values_count(self):
        class Two(Line):  # x * step, and -x * step, of which less is better
            def __init__(self):
                super().__init__(3)
                self.signs = [1, -1]

            def curve(self, x):
                values, seconds = super().curve(x).through(3)
                return Whole([[v, WORST if v == 6 else v] for v in values], seconds)

        class List(Grid):
            def result(self, trial, step, value):
                return super().result(trial, step, value[0])

        run = play(Two(), List([3, 2], [3]), workers=1)
        self.assertEqual(run["points"], [[3, 0, 0, [9, -9]], [6, 1, 1, []]])
        self.assertNotIn("best", run)

    def test_less_may_be_better(self):
        run = play(Line(3, sign=-1), Grid([1, 2, 3, 4], [3]), workers=4)
        self.assertEqual(run["best"], [[3, 0, 1]])  # the first step of x 1

    def test_what_a_library_prints_does_not_come_between_answers(self):
        program = ("import os, clock\nprint('loaded')\nanswers = clock.own_output()\nprint('noise')\n"
                   "os.system('echo noise of a process')\nprint('{}', file=answers, flush=True)")
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True,
                              cwd=os.path.dirname(os.path.abspath(__file__)), check=True,
                              env={**os.environ, "PYTHONUNBUFFERED": ""})
        self.assertEqual(done.stdout, "{}\n")
        self.assertEqual(sorted(done.stderr.split("\n")),
                         ["", "loaded", "noise", "noise of a process"])

    def test_rungs_are_powers(self):
        self.assertEqual(clock.rungs(51), [1, 3, 9, 27])


if __name__ == "__main__":
    unittest.main()
