"""The lines of a results file, and what they are worth."""
import collections
import json
import os
import threading

FRACTIONS = (0.25, 0.5, 1.0)
WORST = 1.5  # one bad start must not outweigh all other runs

Setting = collections.namedtuple("Setting", "workers trainings trials start_cost")


class Results:
    """What was run before, and what is added: a line each, so that a break costs one run. Lines of
    another folder of tasks stay in the file, and are not looked at."""

    def __init__(self, path, folder):
        self.path, self.folder, self.lock, self.runs = path, folder, threading.Lock(), {}
        if os.path.exists(path):
            with open(path) as file:
                for text in file:
                    if text.endswith("\n"):  # else it was broken off
                        self.take(json.loads(text))
        os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
        with open(path, "rb+" if os.path.exists(path) else "wb+") as file:
            whole = file.read().rfind(b"\n") + 1
            file.truncate(whole)

    @staticmethod
    def key(run):
        return (run["method"], run["version"], run["task"], run["seed"],
                Setting(run["workers"], run["trainings"], run["trials"], run["start_cost"]))

    def take(self, run):
        if run["folder"] == self.folder:
            self.runs[self.key(run)] = run

    def add(self, run):
        run = {"folder": self.folder, **run}
        with self.lock:
            self.take(run)
            with open(self.path, "a") as file:
                file.write(json.dumps(run) + "\n")


def value_at(run, fraction):
    """The best value by then; nothing: there was none. Trials are counted by their ends."""
    found = None
    for seconds, ended, value in run["best"]:
        in_time = (ended + 1 <= fraction * run["trials"] if run["trials"]
                   else seconds <= fraction * run["budget_s"])
        if in_time:
            found = value
    return found


def regrets(run, reference):
    """At each of FRACTIONS. Where nothing is known yet, that of the median."""
    optimum, median = reference["optimum"], reference["median"]
    values = [value_at(run, fraction) for fraction in FRACTIONS]
    return [min((optimum - (median if v is None else v)) / (optimum - median), WORST)
            for v in values]
