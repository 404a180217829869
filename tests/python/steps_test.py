"""The step boundary, without processes: what tests/trainables/worker_machine_test.cc asks of C++."""

import unittest

from tune import _contract as contract
from tune._pack import pack, unpack
from tune._steps import AttemptFailed, Edge, Steps

REPORTED, SAVED, STEP, ENDED, WARNING, DONE = 0, 1, 2, 3, 4, 5
SECOND = contract.NANOSECONDS


class Left(Exception):
    pass


class Played(Edge):
    """Commands come from a list: those of `waits` when the worker waits, of `polls` when it looks."""

    def __init__(self):
        self.time = 0
        self.said = []
        self.waits = []
        self.polls = []
        self.fail_save = False

    def now(self):
        return self.time

    def send(self, message):
        self.said.append(unpack(message))

    def wait(self):
        return self.waits.pop(0)

    def poll(self):
        return self.polls.pop(0) if self.polls else None

    def prepare(self, iteration):
        self.said.append(("prepare", iteration))

    def write(self, iteration, save):
        if self.fail_save:
            raise AttemptFailed("save: disk full")
        self.said.append(("write", iteration))

    def leave_at_once(self):
        raise Left

    def kinds(self):
        return [one[0] for one in self.said]


def start(rank=0, ranks=1, until=("", 0), stop=(), frequency=0, at_end=False, hang=0, limit=0, restore=0):
    launch = [7, 1, pack({}), 11, ranks, restore, 1, 0, 0.0, list(until)]
    experiment = [[list(rule) for rule in stop], [frequency, at_end, 1], limit, hang, {}]
    fields = [contract.CONTRACT, experiment, launch, "a_00007", "/t", "/o", rank, rank, 1, [], {}, 1, ""]
    return contract._record(contract.StartWorker, fields)


def go_on(attribute="", value=0.0, save=False):
    return contract.Continue(7, 1, [attribute, value], save)


def stop_attempt(kind):
    return contract.StopAttempt(7, 1, kind, 0)


def save(folder):
    pass


class StepsTest(unittest.TestCase):
    def steps(self, **settings):
        self.edge = Played()
        return Steps(start(**settings), self.edge)

    def reports(self):
        return [one[1] for one in self.edge.said if one[0] == REPORTED]

    def test_reports_count_iterations_and_time(self):
        steps = self.steps(restore=4)
        self.assertTrue(steps.ready())
        for _ in range(2):
            self.edge.time += 3 * SECOND
            self.assertTrue(steps.report({"x": 1}, None))
            self.edge.time += SECOND  # between steps: counted in none
            steps._step_began = self.edge.time
        first, second = self.reports()
        self.assertEqual(first[2:7], [5, 3 * SECOND, 3 * SECOND, 3 * SECOND, 1])
        self.assertEqual(second[2:7], [6, 3 * SECOND, 6 * SECOND, 6 * SECOND, 2])
        self.assertEqual(unpack(first[10]), {"x": 1})

    def test_a_rank_alone_shows_life_only_with_a_hang_timeout(self):
        self.steps().ready()
        self.assertEqual(self.edge.said, [])
        steps = self.steps(hang=SECOND)
        steps.ready()
        self.assertEqual(self.edge.said, [[STEP, [1, contract.STEP]]])
        steps.report({"x": 1}, None)
        self.assertEqual(self.edge.kinds(), [STEP, REPORTED])

    def test_it_waits_at_the_milestone_for_the_verdict(self):
        steps = self.steps(until=("training_iteration", 2))
        steps.ready()
        self.assertTrue(steps.report({"x": 1}, None))
        self.edge.waits = [go_on("loss", 0.5)]
        self.assertTrue(steps.report({"x": 1}, None))
        self.assertTrue(steps.report({"x": 1}, None))  # without the attribute: never waits
        self.edge.waits = [stop_attempt(contract.STOP)]
        self.assertFalse(steps.report({"loss": 0.6}, None))
        self.assertEqual([report[8] for report in self.reports()], [False, True, False, True])
        self.assertEqual(unpack(steps.last_word()), [ENDED, [contract.STOPPED, "", False]])

    def test_stop_rules_done_and_time_end_a_trial(self):
        for settings, result in [
            ({"stop": [("acc", 0.9, False)]}, {"acc": 0.9}),
            ({"stop": [("loss/test", 0.1, True)]}, {"loss": {"test": 0.1}}),
            ({"stop": [("training_iteration", 1, False)]}, {"x": 1}),
            ({"limit": 2 * SECOND}, {"x": 1}),
            ({}, {"done": True}),
        ]:
            steps = self.steps(at_end=True, **settings)
            steps.ready()
            self.edge.time += 2 * SECOND
            self.assertFalse(steps.report(result, save))
            self.assertTrue(self.reports()[0][9])
            self.assertEqual(self.edge.kinds(), [REPORTED, "prepare", "write", SAVED])
            self.assertEqual(unpack(steps.last_word())[1][0], contract.COMPLETED)
        for result in [{"acc": 0.89}, {"acc": True}, {"acc": float("nan")}, {"done": 1}]:
            steps = self.steps(stop=[("acc", 0.9, False)])
            steps.ready()
            self.assertTrue(steps.report(result, None))

    def test_checkpoints_are_written_by_frequency_once(self):
        steps = self.steps(frequency=2, at_end=True, stop=[("training_iteration", 4, False)])
        steps.ready()
        for _ in range(4):
            steps.report({"x": 1}, save)
        self.assertEqual([one[1] for one in self.edge.said if one[0] == "write"], [2, 4])

    def test_a_missing_save_is_warned_of_once(self):
        steps = self.steps(frequency=1)
        steps.ready()
        for _ in range(3):
            steps.report({"x": 1}, None)
        self.assertEqual(self.edge.kinds().count(WARNING), 1)

    def test_a_pause_saves_and_without_a_save_is_lost(self):
        for given, outcome in [(save, contract.PAUSED), (None, contract.LOST)]:
            steps = self.steps(until=("training_iteration", 1))
            steps.ready()
            self.edge.waits = [stop_attempt(contract.PAUSE)]
            self.assertFalse(steps.report({"x": 1}, given))
            self.assertEqual(unpack(steps.last_word())[1][0], outcome)

    def test_leaving_for_another_state_saves_nothing(self):
        steps = self.steps(until=("training_iteration", 1), at_end=True)
        steps.ready()
        self.edge.waits = [stop_attempt(contract.LEAVE)]
        self.assertFalse(steps.report({"x": 1}, save))
        self.assertEqual(self.edge.kinds(), [REPORTED])
        self.assertEqual(unpack(steps.last_word())[1][0], contract.STOPPED)

    def test_a_verdict_may_ask_for_a_checkpoint(self):
        steps = self.steps(until=("training_iteration", 1))
        steps.ready()
        self.edge.waits = [go_on(save=True)]
        self.assertTrue(steps.report({"x": 1}, save))
        self.assertEqual(self.edge.kinds(), [REPORTED, "prepare", "write", SAVED])

    def test_a_stop_may_come_before_the_first_step(self):
        steps = self.steps(at_end=True)
        self.edge.polls = [stop_attempt(contract.STOP)]
        self.assertFalse(steps.ready())
        self.assertEqual(self.edge.said, [])

    def test_a_failed_save_stays_the_failure(self):
        steps = self.steps(frequency=1)
        steps.ready()
        self.edge.fail_save = True
        for call in [lambda: steps.report({"x": 1}, save), lambda: steps.report({"x": 1}, save), steps.returned]:
            with self.assertRaisesRegex(AttemptFailed, "save: disk full"):
                call()
        self.assertEqual(len(self.reports()), 1)

    def test_a_report_after_the_end_ends_the_process(self):
        steps = self.steps()
        steps.ready()
        self.assertFalse(steps.report({"done": True}, None))
        with self.assertRaises(Left):
            steps.report({"x": 1}, None)
        self.assertEqual(self.edge.said[-1], [ENDED, [contract.COMPLETED, "", False]])

    def test_a_function_that_returns_is_completed(self):
        steps = self.steps()
        steps.ready()
        steps.returned()
        self.assertEqual(unpack(steps.last_word())[1][0], contract.COMPLETED)

    def test_a_result_that_cannot_be_sent_is_the_callers_error_and_no_step(self):
        steps = self.steps()
        steps.ready()
        for result in [{"x": object()}, {"x": "a" * (16 << 20)}]:
            with self.assertRaises(ValueError):
                steps.report(result, None)
        self.assertEqual((steps.iteration, self.edge.said), (0, []))

    def test_timesteps_are_summed(self):
        steps = self.steps()
        steps.ready()
        for _ in range(2):
            steps.report({"timesteps_this_iter": 10}, None)
        self.assertEqual([report[7] for report in self.reports()], [10, 20])


class GroupTest(unittest.TestCase):
    def test_rank_0_leads(self):
        edge = Played()
        steps = Steps(start(ranks=2, frequency=1, at_end=True), edge)
        steps.ready()
        steps.report({"x": 1}, save)
        edge.polls = [contract.HoldGroup(True)]
        edge.waits = [contract.HoldGroup(False)]
        steps.report({"x": 1}, save)
        steps.report({"done": True}, save)
        self.assertEqual(
            edge.said,
            [
                [DONE, []],
                [STEP, [1, contract.STEP]],
                edge.said[2],
                ("prepare", 1), [STEP, [1, contract.SAVE]], ("write", 1), [SAVED, [1, 0, None]],
                [STEP, [2, contract.STEP]],
                edge.said[8],
                ("prepare", 2), [STEP, [2, contract.SAVE]], ("write", 2), [SAVED, [2, 0, None]],
                [STEP, [3, contract.STEP]],
                edge.said[14],
                ("prepare", 3), [STEP, [3, contract.SAVE]], ("write", 3), [SAVED, [3, 0, None]],
                [STEP, [3, contract.END]],
            ],
        )

    def test_other_ranks_follow_and_report_nothing(self):
        edge = Played()
        steps = Steps(start(rank=1, ranks=2), edge)
        edge.waits = [contract.GroupStep(1, contract.STEP)]
        self.assertTrue(steps.ready())
        edge.waits = [contract.GroupStep(1, contract.SAVE), contract.GroupStep(2, contract.STEP)]
        self.assertTrue(steps.report({"x": 1}, save))
        edge.waits = [contract.GroupStep(2, contract.END)]
        self.assertFalse(steps.report({"x": 1}, save))
        self.assertEqual(edge.said, [[DONE, []], [DONE, []], ("write", 1), [SAVED, [1, 0, None]], [DONE, []]])
        self.assertEqual(unpack(steps.last_word())[1][0], contract.COMPLETED)

    def test_a_rank_that_reports_less_often_is_told(self):
        edge = Played()
        steps = Steps(start(rank=1, ranks=2), edge)
        edge.waits = [contract.GroupStep(2, contract.STEP)]
        with self.assertRaisesRegex(AttemptFailed, "rank 1 has done 0 steps when rank 0 begins step 2"):
            steps.ready()


if __name__ == "__main__":
    unittest.main()
