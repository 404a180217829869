"""The lines of a results file, and what they are worth."""
import collections
import gzip
import json
import os
import threading

FRACTIONS = (0.25, 0.5, 1.0)
WORST = 1.5  # one bad start must not outweigh all other runs

# objectives: "" of one metric, which is the task's.
Setting = collections.namedtuple("Setting", "workers trainings trials start_cost objectives",
                                 defaults=[""])


class Results:
    """What was run before, and what is added: a line each, so that a break costs one run.

    A line names its task and the fingerprint of the files that the task is read from: those of other
    tasks stay in the file, and are not looked at. Peers are slow, so what they came to is kept beside
    the programs (kept.jsonl.gz), and is known to everyone who has the same tasks."""

    def __init__(self, path, fingerprints, kept=None):
        self.path, self.fingerprints, self.lock = path, fingerprints, threading.Lock()
        self.runs, self.references = {}, {}
        for line in lines_of(kept):
            self.take(line)
        for line in lines_of(path):
            self.take(line)
        os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
        with open(path, "rb+" if os.path.exists(path) else "wb+") as file:
            whole = file.read().rfind(b"\n") + 1
            file.truncate(whole)

    @staticmethod
    def key(run):
        return (run["method"], run["version"], run["task"], run["seed"],
                Setting(run["workers"], run["trainings"], run["trials"], run["start_cost"],
                        run.get("objectives", "")))

    def take(self, line):
        if line["tasks"] != self.fingerprints.get(line["task"]):
            return
        if "optimum" in line:
            self.references[line["task"], line.get("objectives", "")] = line
        else:
            self.runs[self.key(line)] = line

    def add(self, line):
        """A run, or a task's reference."""
        line = {"tasks": self.fingerprints[line["task"]], **line}
        with self.lock:
            self.take(line)
            with open(self.path, "a") as file:
                file.write(json.dumps(line) + "\n")

    def keep(self, path, is_wanted):
        """Writes the references and the runs of such methods; what it has of other tasks stays."""
        others = [line for line in lines_of(path) if line["task"] not in self.fingerprints]
        runs = [run for run in self.runs.values() if is_wanted(run["method"], run["version"])]
        runs.sort(key=lambda run: (run["task"], run["method"], self.key(run)[4], run["seed"]))
        with open(path, "wb") as file, gzip.GzipFile("", "wb", fileobj=file, mtime=0) as out:
            named = sorted({(run["task"], run.get("objectives", "")) for run in runs})
            references = [self.references[name] for name in named]
            for line in references + runs + others:
                out.write((json.dumps(line) + "\n").encode())


def lines_of(path):
    if not path or not os.path.exists(path):
        return
    with gzip.open(path, "rt") if path.endswith(".gz") else open(path) as file:
        for text in file:
            if text.endswith("\n"):  # else it was broken off
                yield json.loads(text)


def value_at(run, fraction):
    """The best value by then; nothing: there was none. Trials are counted by their ends."""
    found = None
    for seconds, ended, value in run["best"]:
        in_time = (ended + 1 <= fraction * run["trials"] if run["trials"]
                   else seconds <= fraction * run["budget_s"])
        if in_time:
            found = value
    return found


def points_at(run, fraction):
    """Of several objectives the last values of each trial by then."""
    last = {}
    for seconds, ended, trial, values in run["points"]:
        if (ended + 1 <= fraction * run["trials"] if run["trials"]
                else seconds <= fraction * run["budget_s"]):
            last[trial] = values
    return [values for values in last.values() if values]


def dominated_share(points):
    """Of the unit cube, as in tune/simulate/dominated_share.h."""
    def share(points, last):
        if not points:
            return 0
        if last == 0:
            return 1 - min(p[0] for p in points)
        points = sorted(points, key=lambda p: p[last])
        ends = [p[last] for p in points[1:]] + [1]
        return sum((end - p[last]) * share(points[:i + 1], last - 1)
                   for i, (p, end) in enumerate(zip(points, ends)) if end > p[last])

    within = [[max(one, 0) for one in p] for p in points if all(one < 1 for one in p)]
    return share(within, len(within[0]) - 1) if within else 0


def regrets(run, reference):
    """At each of FRACTIONS. Where nothing is known yet, that of the median. Of several objectives what
    no trial dominates of the box between their optima and medians."""
    optimum, median = reference["optimum"], reference["median"]
    if "points" in run:
        return [1 - dominated_share([[(o - v) / (o - m) for v, o, m in zip(values, optimum, median)]
                                     for values in points_at(run, fraction)])
                for fraction in FRACTIONS]
    values = [value_at(run, fraction) for fraction in FRACTIONS]
    return [min((optimum - (median if v is None else v)) / (optimum - median), WORST)
            for v in values]
