"""python3 bench/judgement/run_test.py: what is run, in which order, and what a failure leaves."""
import contextlib
import io
import os
import tempfile
import types
import unittest

import run
from methods import Method
from results import Results
from tasks import fingerprints

QUICK = Method("peer: quick", "plain", ("curves",), None, False)
SLOW = Method("peer: slow", "plain", ("curves",), None, True)
OWN = Method("tune: own", None, ("one_step",), "1", False)


class Test(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="tune-run-test-")
        self.addCleanup(self.folder.cleanup)

    def evaluation(self, methods, **more):
        """Without programs: a run takes no time and finds nothing."""
        made = run.Evaluation.__new__(run.Evaluation)
        made.options = types.SimpleNamespace(seeds=2, peer_seeds=5, slow_seeds=2, workers=[4, 16],
                                             trainings=[20], start_costs=[0], trials=10, jobs=1,
                                             objectives="", **more)
        made.tasks = {name: types.SimpleNamespace(name=name, steps=steps, signs=[1])
                      for name, steps in [("a", 9), ("b", 9), ("flat", 1)]}
        made.references = {name: {"training_s": 10} for name in made.tasks}
        made.methods = methods
        made.results = Results(os.path.join(self.folder.name, "results.jsonl"),
                               dict.fromkeys(made.tasks, "as it is"))
        made.play_own = made.play_peer = lambda method, setting, jobs: (
            {"best": [], "trials_begun": 0, "launches": 0, "suggestion_s": 0} for _ in jobs)
        return made

    def run_quietly(self, evaluation):
        with contextlib.redirect_stderr(io.StringIO()) as told:
            return evaluation.run_missing(), told.getvalue()

    def batches(self, evaluation):
        return [(method.name.split(": ")[1], setting.workers,
                 " ".join("%s%d" % (task.name, seed) for task, seed in jobs))
                for method, setting, jobs in evaluation.missing()]

    def test_a_few_seeds_of_all_come_first_and_slow_ones_last_in_the_first_setting_only(self):
        self.assertEqual(self.batches(self.evaluation([OWN, SLOW, QUICK])), [
            ("own", 4, "flat0 flat1"),
            ("quick", 4, "a0 a1 a2 b0 b1 b2"),
            ("quick", 4, "a3 a4 b3 b4"),
            ("slow", 4, "a0 b0"),
            ("slow", 4, "a1 b1"),
            ("quick", 16, "a0 a1 a2 b0 b1 b2"),
            ("quick", 16, "a3 a4 b3 b4")])

    def test_what_failed_is_left_for_the_next_start_and_the_others_go_on(self):
        first = self.evaluation([SLOW, QUICK])
        play = first.play_peer

        def failing(method, setting, jobs):
            if method is SLOW and jobs[0][1] == 1:
                yield next(play(method, setting, jobs))
                raise run.Failed("the peer ended with 1")
            yield from play(method, setting, jobs)

        first.play_peer = failing
        done, told = self.run_quietly(first)
        self.assertFalse(done)
        self.assertIn("peer: slow: the peer ended with 1", told)
        again = self.evaluation([SLOW, QUICK])
        self.assertEqual(self.batches(again), [("slow", 4, "b1")])
        self.assertEqual(self.run_quietly(again), (True, "1 runs to do\n"))
        self.assertEqual(self.batches(self.evaluation([SLOW, QUICK])), [])

    def test_another_version_is_run_anew(self):
        self.run_quietly(self.evaluation([OWN]))
        self.assertEqual(self.batches(self.evaluation([OWN])), [])
        self.assertEqual(self.batches(self.evaluation([OWN._replace(version="2")])),
                         [("own", 4, "flat0 flat1")])

    def test_what_peers_came_to_is_kept_for_those_who_have_the_same_tasks(self):
        first = self.evaluation([OWN, QUICK])
        self.run_quietly(first)
        for task in first.tasks:
            first.results.add({"task": task, "optimum": 3, "median": 1, "training_s": 10})
        kept = os.path.join(self.folder.name, "kept.jsonl.gz")
        first.results.keep(kept, lambda method, version: (method, version) == ("peer: quick", None))
        elsewhere = os.path.join(self.folder.name, "elsewhere.jsonl")
        again = self.evaluation([OWN, QUICK])
        again.results = Results(elsewhere, again.results.fingerprints, kept)
        self.assertEqual(self.batches(again), [("own", 4, "flat0 flat1")])
        self.assertEqual(again.results.references["a", ""]["optimum"], 3)
        again.results = Results(elsewhere, {**again.results.fingerprints, "b": "another"}, kept)
        self.assertEqual(self.batches(again)[1:3], [("quick", 4, "b0 b1 b2"), ("quick", 4, "b3 b4")])
        self.assertNotIn(("b", ""), again.results.references)

        fewer = Results(elsewhere, {"a": first.results.fingerprints["a"]}, kept)
        fewer.keep(kept, lambda method, version: method == "peer: quick")
        again.results = Results(elsewhere, first.results.fingerprints, kept)
        self.assertEqual(set(again.results.references), {("a", ""), ("b", "")})
        self.assertEqual(self.batches(again), [("own", 4, "flat0 flat1")])

    def test_a_fingerprint_is_of_what_the_files_hold(self):
        found = []
        for name, text in ("here", "1"), ("there", "1"), ("other", "2"):
            folder = os.path.join(self.folder.name, name, "scenario")
            os.makedirs(folder)
            with open(os.path.join(folder, "model"), "w") as file:
                file.write(text)
            found.append(fingerprints(os.path.dirname(folder), ["scenario/a", "scenario/b"]))
        self.assertEqual(found[0]["scenario/a"], found[0]["scenario/b"])
        self.assertEqual(found[0], found[1])
        self.assertNotEqual(found[0], found[2])


if __name__ == "__main__":
    unittest.main()
