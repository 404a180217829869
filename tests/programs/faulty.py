"""Faulty, as trainables/synthetic/faulty.cc says it, for the tests that all kinds of trainables pass:
it fails on order, else it counts. And others that process tests run."""

import json
import os
import signal
import sys
import time

import tune


def hang():
    while True:
        signal.pause()


def fail(how, where):
    if how == "throw":
        raise RuntimeError("told to fail in " + where)
    if how == "exit":
        sys.exit(3)
    if how == "abort":
        os.abort()
    if how == "segv":
        os.kill(os.getpid(), signal.SIGSEGV)
    if how == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if how == "hang":
        hang()
    if how == "stop":
        os.kill(os.getpid(), signal.SIGSTOP)


class Order:
    """Where, how and when to fail."""

    def __init__(self, config, context):
        where = config.get("fail_in", "none")
        self.where = where if isinstance(where, list) else [where] * config.get("fail_attempts", 1)
        self.how = config.get("fail_how", "throw")
        self.at = config.get("fail_at", 1)
        self.rank = config.get("fail_rank", -1)
        self.context = context

    def fails_next_in(self, here):
        attempt = self.context.attempt
        return attempt < len(self.where) and self.where[attempt] == here

    def look(self, here, count):
        attempt = self.context.attempt
        mine = self.rank < 0 or self.rank == self.context.rank
        if attempt > len(self.where) or self.where[attempt - 1] != here or not mine:
            return
        if count != self.at:
            return
        print(f"rank {self.context.rank} is to fail in {here}", file=sys.stderr, flush=True)
        fail(self.how, here)


def write_state(directory, count):
    (directory / "state.json").write_text(json.dumps({"count": count}))


def read_state(directory):
    return json.loads((directory / "state.json").read_text())["count"]


class Faulty(tune.Trainable):
    def setup(self, config):
        self.count = 0
        self.step_ms = config.get("step_ms", 0)
        self.order = Order(config, self.context)
        self.order.look("setup", self.order.at)

    def step(self):
        self.count += 1
        time.sleep(self.step_ms / 1000)
        if self.count == self.order.at and self.order.fails_next_in("load"):
            self.await_checkpoint()
        self.order.look("step", self.count)
        return {"count": self.count}

    def save(self, directory):
        if self.context.rank == 0:
            write_state(directory, self.count)
        self.order.look("save", self.count)

    def load(self, directory):
        self.count = read_state(directory)
        self.order.look("load", self.order.at)

    def await_checkpoint(self):
        """Of the step before: complete when every rank has saved, which this one does not wait for."""
        name = f"checkpoint_{self.order.at - 1:06}"
        folder = self.context.trial_directory
        while self.order.at > 1 and not any(path.name.startswith(name) for path in folder.iterdir()):
            time.sleep(0.001)


def faulty(config):
    """The same as a function. It has no setup and no load of its own: their order is for its start."""
    order = Order(config, tune.context())
    folder = tune.checkpoint()
    count = 0
    order.look("setup", order.at)
    if folder is not None:
        count = read_state(folder)
        order.look("load", order.at)
    while True:
        count += 1
        time.sleep(config.get("step_ms", 0) / 1000)
        order.look("step", count)

        def save(directory):
            write_state(directory, count)
            order.look("save", count)

        tune.report({"count": count}, save=save)


class Unsaved:
    """No save, no load, no base class."""

    def setup(self, config):
        self.x = config["x"]

    def step(self):
        print("a line of the trial")
        return {"x": self.x, "nan": float("nan")}


def stubborn(config):
    """Reports after its end, though it was told of it."""
    for step in range(1000):
        try:
            tune.report(x=step)
        except BaseException:
            pass


def nothing(config):
    tune.report({"x": {1: 2}})
