"""Peers on the virtual clock that `tune simulate` has: a program for each peer's environment.

    python <peer>.py SERVER FOLDER METRIC,METRIC... < jobs > lines

A job is a line {"method", "task", "seed", "workers", "trainings", "budget_s", "trials", "start_cost"},
an answer the job with what came out. A peer's module gives METHODS: a name and what makes a peer from (task, seed,
job). A peer has

    next()                      -> (trial, config, steps): another trial and how far to run it, or a
                                   paused one with config None; nothing: it wants none now
    result(trial, step, value)  -> how far to go on, or nothing: it ends or waits. More is better; of
                                   several objectives the value is a list.
"""
import heapq
import json
import os
import sys
import time

from tasks import WORST, Server


class Run:
    """The workers: each runs its trial to the step it was told, then asks."""

    def __init__(self, task, peer, job):
        self.task, self.peer, self.job = task, peer, job
        self.queue, self.trials, self.best, self.points = [], {}, [], []
        self.ended = self.begun = self.launches = self.number = 0
        self.suggesting = 0.0

    def timed(self, call, *arguments):
        start = time.process_time()
        try:
            return call(*arguments)
        finally:
            self.suggesting += time.process_time() - start

    def start(self, now):
        """Whether there is a trial for a free worker."""
        if self.begun >= min(self.job["trials"] or float("inf"), self.task.trials):
            return False
        found = self.timed(self.peer.next)
        if found is None:
            return False
        trial, config, until = found
        if config is not None:
            self.begun += 1
            self.trials[trial] = [self.task.curve(config), 0]
        self.launches += 1
        self.run(now, trial, until, self.job["start_cost"])
        return True

    def run(self, now, trial, until, start_cost):
        curve, at = self.trials[trial]
        assert at < until <= self.task.steps, "trial %s is at step %d, asked for %d" % (trial, at, until)
        _, seconds = curve.through(until)
        takes = sum(seconds[at:until]) + start_cost * seconds[at]
        self.number += 1
        heapq.heappush(self.queue, (now + takes, self.number, trial, at, until))

    def play(self):
        budget = self.job["budget_s"] or float("inf")
        free = self.job["workers"]
        now = 0.0
        while True:
            while free > 0 and self.start(now):
                free -= 1
            if not self.queue:
                break
            now, _, trial, at, until = heapq.heappop(self.queue)
            if now > budget:
                now = budget
                break
            values, _ = self.trials[trial][0].through(until)
            self.trials[trial][1] = until
            self.count(now, trial, values[at:until])
            further = self.timed(self.peer.result, trial, until, values[until - 1])
            if further is not None:
                self.run(now, trial, further, 0)
                continue
            free += 1
            self.ended += 1
        found = {"points": self.points} if len(self.task.signs) > 1 else {"best": self.best}
        return {**self.job, **found, "trials_begun": self.begun, "seconds": now,
                "launches": self.launches, "suggestion_s": self.suggesting / max(self.begun, 1)}

    def count(self, now, trial, values):
        """Of one metric the best value; of several objectives the last values of each trial, none when
        one of them is not a number."""
        if len(self.task.signs) > 1:
            last = [] if WORST in values[-1] else [s * v for s, v in zip(self.task.signs, values[-1])]
            self.points.append([now, self.ended, trial, last])
            return
        best = max(values)
        if not self.best or self.task.sign * self.best[-1][2] < best:
            self.best.append([now, self.ended, self.task.sign * best])


def rungs(steps, eta=3):
    found, at = [], 1
    while at < steps:
        found.append(at)
        at *= eta
    return found


def own_output():
    """Where answers go. What a library prints is sent to stderr, so that it does not come between;
    also what it printed before, as long as that is in Python's buffer."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    return answers


def main(methods):
    answers = own_output()
    server = Server(sys.argv[1], sys.argv[2])
    tasks = server.tasks(sys.argv[3].split(","))
    for line in sys.stdin:
        job = json.loads(line)
        server.restart()
        task = tasks[job["task"]]
        peer = methods[job["method"]](task, job["seed"], job)
        print(json.dumps(Run(task, peer, job).play()), file=answers, flush=True)
    server.close()
