"""python3 bench/judgement/stats_test.py"""
import math
import unittest

import stats


class Test(unittest.TestCase):
    def test_equals_share_their_ranks(self):
        self.assertEqual(stats.ranks_of([3, 1, 3, 2]), [3.5, 1, 3.5, 2])
        self.assertEqual(stats.mean_ranks({"a": [1, 5], "b": [2, 5]}), {"a": 1.25, "b": 1.75})

    def test_wilcoxon_is_exact(self):
        # All of six differences have one sign: 2 of 64 ways are as far out.
        self.assertEqual(stats.wilcoxon([1, 2, 3, 4, 5, 6], [0] * 6), 2 / 64)
        # Ranks 1 2 3 4 with signs - + + +: sums up to 1 in 2 of 16 ways, and as many on the other side.
        self.assertEqual(stats.wilcoxon([-1, 2, 3, 4], [0] * 4), 4 / 16)
        self.assertEqual(stats.wilcoxon([1, -1], [0, 0]), 1)
        self.assertEqual(stats.wilcoxon([1, 2], [1, 2]), 1)

    def test_holm_corrects_the_least_most_and_never_turns_the_order(self):
        self.assertEqual(stats.holm({"a": .01, "b": .04, "c": .03}), {"a": .03, "c": .06, "b": .06})
        self.assertEqual(stats.holm({"a": .5, "b": .9}), {"a": 1, "b": 1})

    def test_the_interval_is_of_seeds_within_tasks(self):
        # Variances 2 and 0 over two seeds each: sqrt(2 / 2) / 2.
        mean, half = stats.stratified_mean([[0, 2], [5, 5]])
        self.assertEqual(mean, 3)
        self.assertAlmostEqual(half, 1.96 / 2)
        self.assertTrue(math.isnan(stats.stratified_mean([[1], [2, 3]])[1]))


if __name__ == "__main__":
    unittest.main()
