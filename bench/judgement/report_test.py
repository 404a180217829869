"""python3 bench/judgement/report_test.py"""
import unittest

import report
from results import Setting, regrets

SETTING = Setting(workers=4, trainings=20, trials=0, start_cost=0)
REFERENCE = {"optimum": 1.0, "median": 0.0}


def cells(*ends):
    """A method's: a task each, whose one run has that regret at all times."""
    return {"task %d" % i: [([end] * 3, .002)] for i, end in enumerate(ends)}


class Test(unittest.TestCase):
    def test_regret_is_that_of_what_was_known_by_then(self):
        run = {"trials": 0, "budget_s": 100, "best": [[30, 0, .2], [50, 1, .4], [101, 2, 1.0]]}
        self.assertEqual(regrets(run, REFERENCE), [1, .6, .6])  # nothing, the second, the second
        by_trials = {"trials": 4, "budget_s": 0, "best": [[30, 0, .2], [50, 1, .4], [101, 3, 1.0]]}
        self.assertEqual(regrets(by_trials, REFERENCE), [.8, .6, 0])  # after trials 1, 2 and 4
        hopeless = {"trials": 0, "budget_s": 100, "best": [[1, 0, -9]]}
        self.assertEqual(regrets(hopeless, REFERENCE), [1.5, 1.5, 1.5])

    def test_only_methods_with_all_tasks_are_ranked_and_tested(self):
        tasks = ["task %d" % i for i in range(6)]
        head, *rows = report.rows_of({"peer: b": cells(*[.4] * 6), "tune: a": cells(*[.1] * 6),
                                      "tune: c": cells(*[.2] * 6), "peer: d": cells(.05)}, tasks)
        rows = {row[0]: dict(zip(head, row)) for row in rows}
        self.assertEqual(list(rows), ["tune: a", "tune: c", "peer: b", "peer: d (1 tasks only)"])
        self.assertEqual(rows["peer: b"]["ranks"], "3.0 3.0 3.0")
        self.assertEqual(rows["tune: a"]["p"], "")
        # 2 of 64 signs for either; corrected for two tests.
        self.assertEqual(rows["peer: b"]["p"], "0.062")
        self.assertEqual(rows["peer: d (1 tasks only)"]["ranks"], "")
        self.assertEqual(rows["tune: a"]["a suggestion"], "2 ms")

    def test_the_time_of_a_suggestion_is_that_of_the_runs_that_have_one(self):
        some, none = cells(.1, .2), cells(.3, .4)
        some["task 1"] = [([.2] * 3, None)]
        none = {task: [(regret, None) for regret, _ in runs] for task, runs in none.items()}
        _, first, second = report.rows_of({"a": some, "b": none}, ["task 0", "task 1"])
        self.assertEqual((first[-1], second[-1]), ("2 ms", ""))

    def test_others_are_tested_against_the_default_where_it_is(self):
        self.assertEqual(report.tested_against({"tune: a": [.1], "tune: b": [.2], "p": [0]}), "tune: a")
        self.assertEqual(report.tested_against({"tune: a": [.1], "tune: auto": [.2]}), "tune: auto")
        self.assertIsNone(report.tested_against({"p": [0]}))


if __name__ == "__main__":
    unittest.main()
