"""python3 bench/judgement/agreement_test.py BUILD: peers and tune are given the same configurations, the
one through clock.py and halving.py, the other through `tune simulate` and its controller. They must
come to the same values at the same times."""
import json
import os
import random
import subprocess
import sys
import tempfile
import unittest

import clock
import halving
import results
import tasks
from tasks import Server

HERE = os.path.dirname(os.path.abspath(__file__))
FOLDER = os.path.join(os.path.dirname(os.path.dirname(HERE)), "tests", "data", "tasks")
BUILD = sys.argv.pop(1)
TUNE = os.path.join(BUILD, "bin", "tune")
TRIALS = 40
tasks.SEEN_FIRST = 3  # of 9 steps: the others are asked for


class Recorded:
    """Configurations of a list, under a rule of halving or none; keeps what was launched."""

    def __init__(self, task, configs, rule, rungs):
        self.task, self.configs, self.rule, self.begun = task, configs, rule, 0
        self.rungs = (rungs if rule else []) + [task.steps]

    def next(self):
        if isinstance(self.rule, halving.Promotion):
            found = self.rule.promoted()
            if found:
                return found[0], None, self.after(found[1])
        if self.begun == len(self.configs):
            return None
        self.begun += 1
        return self.begun - 1, self.configs[self.begun - 1], self.rungs[0]

    def after(self, rung):
        return min(r for r in self.rungs if r > rung)

    def result(self, trial, step, value):
        if step == self.task.steps:
            return None
        if isinstance(self.rule, halving.Promotion):
            self.rule.add(step, trial, value)
            return None
        return self.after(step) if self.rule.goes_on(step, value) else None


def nested(task, config):
    """As a sweep has it: what depends on a choice is within it, beside its name."""
    parents = {parent for one in task.conditions.values() for parent, _ in one}
    found = {name: {"name": value} if name in parents else value
             for name, value in config.items() if name not in task.conditions}
    for p in task.parameters:
        if p.name in task.conditions and task.is_active(p, config):
            found[task.conditions[p.name][0][0]][p.name] = config[p.name]
    return found


class Test(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server(os.path.join(BUILD, "bin", "bench_judgement_tasks"), FOLDER)
        cls.tasks = cls.server.tasks([])
        cls.task = next(task for task in cls.tasks.values() if task.steps > 1)
        cls.several = cls.server.tasks(["val_accuracy+time"])[cls.task.name]

    @classmethod
    def tearDownClass(cls):
        cls.server.close()

    def compare(self, rule_of, scheduler, task=None, **job):
        task = task or self.task
        draw = random.Random(5)
        configs = [task.config_at([draw.random() for _ in task.parameters]) for _ in range(TRIALS)]
        reference = self.reference_of(task)
        job = {"workers": 3, "trainings": 0, "budget_s": 0, "trials": 0, "start_cost": 0, **job}
        job["budget_s"] = job["trainings"] * reference["training_s"] / job["workers"]
        rungs = clock.rungs(task.steps)
        rule = rule_of(rungs) if rule_of else None
        peers = clock.Run(task, Recorded(task, configs, rule, rungs), job).play()
        own = self.simulate(task, configs, scheduler, job)
        self.assertEqual(own["trials"], peers["trials_begun"])
        self.assertEqual(own["launches"], peers["launches"])
        self.assertAlmostEqual(own["seconds"] / peers["seconds"], 1, delta=1e-6)
        what = "points" if len(task.metrics) > 1 else "best"
        self.assertEqual([value for *_, value in own[what]], [value for *_, value in peers[what]])
        for (seconds, *_), (same, *_) in zip(own[what], peers[what]):
            self.assertAlmostEqual(seconds / same, 1, delta=1e-6)
        if job["trainings"]:
            for regret, same in zip(own["regret"], results.regrets(peers, reference)):
                self.assertAlmostEqual(regret, same, delta=1e-12)
        return peers

    def reference_of(self, task):
        found = [task.reference(metric) for metric in task.metrics]
        if len(found) == 1:
            return found[0]
        return {**found[0], **{key: [one[key] for one in found] for key in ("optimum", "median")}}

    def simulate(self, task, configs, scheduler, job):
        with tempfile.TemporaryDirectory(prefix="tune-agreement-") as folder:
            sweep = os.path.join(folder, "sweep.yaml")
            with open(sweep, "w") as file:  # JSON is YAML
                points = [nested(task, config) for config in configs]
                goals = [dict(zip(("metric", "mode"), goal)) for goal in zip(task.metrics, task.modes)]
                several = {"objectives": goals} if len(goals) > 1 else {}
                json.dump({"num_samples": len(points), "points_to_evaluate": points, **several,
                           **scheduler}, file)
            command = [TUNE, "simulate", sweep, "--tasks", FOLDER, "--task", task.name,
                       "--metric", task.metric, "--workers", str(job["workers"]),
                       "--start-cost", str(job["start_cost"]), "--json"]
            if job["trainings"]:
                command += ["--trainings", str(job["trainings"])]
            done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
            return json.loads(done.stdout)

    def asha(self, **options):
        return {"scheduler": {"asha": {"max_t": self.task.steps, "reduction_factor": 3, **options}}}

    def test_without_a_scheduler(self):
        self.compare(None, {})
        self.compare(None, {}, start_cost=1)
        self.compare(None, {}, trainings=9, workers=2)

    def test_halving_by_stopping(self):
        peers = self.compare(halving.Stopping, self.asha(rule="top"))
        self.assertEqual((peers["trials_begun"], peers["launches"]), (TRIALS, TRIALS))
        self.compare(halving.Stopping, self.asha(rule="top"), start_cost=1, workers=7)
        self.compare(halving.Stopping, self.asha(rule="top"), start_cost=1, trainings=6)

    def test_halving_by_promotion(self):
        peers = self.compare(halving.Promotion, self.asha(type="promote"))
        self.assertGreater(peers["launches"], TRIALS)
        self.compare(halving.Promotion, self.asha(type="promote"), start_cost=1, workers=7)
        self.compare(halving.Promotion, self.asha(type="promote"), start_cost=1, trainings=6)

    def test_several_objectives(self):
        peers = self.compare(None, {}, task=self.several, trainings=9)
        self.assertGreater(len(peers["points"]), 4)
        self.compare(None, {}, task=self.several, start_cost=1, workers=2)

    def test_a_conditional_space_of_one_step(self):
        self.compare(None, {}, task=next(t for t in self.tasks.values() if t.conditions))


if __name__ == "__main__":
    unittest.main()
