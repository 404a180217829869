"""Tasks for programs in Python: asked of bench_judgement_tasks, which reads the same files as tune."""
import hashlib
import json
import math
import os
import subprocess

WORST = -1e9  # a value that is not a number
SEEN_FIRST = 27  # steps of a curve: rungs of the first trials of halving


class Parameter:
    """kind: float, int (high included) or choice."""

    def __init__(self, name, domain):
        (word, arguments), = domain.items()
        self.name, self.log, self.choices = name, word.startswith("log"), None
        if word == "choice":
            self.kind, self.choices = "choice", arguments
        elif word in ("randint", "lograndint"):
            self.kind, self.low, self.high = "int", arguments[0], arguments[1] - 1
        else:
            self.kind, (self.low, self.high) = "float", arguments

    def at(self, unit):
        """The value at that place of the unit interval."""
        if self.kind == "choice":
            return self.choices[min(int(unit * len(self.choices)), len(self.choices) - 1)]
        if self.log:
            value = math.exp(math.log(self.low) + unit * (math.log(self.high) - math.log(self.low)))
        elif self.kind == "int":
            return min(math.floor(self.low + unit * (self.high - self.low + 1)), self.high)
        else:
            value = self.low + unit * (self.high - self.low)
        value = round(value) if self.kind == "int" else value
        return min(max(value, self.low), self.high)


class Task:
    def __init__(self, server, told, metrics=()):
        """`metrics`: one, or several objectives; none: the task's first."""
        self.server, self.name, self.steps = server, told["name"], told["steps"]
        self.trials = told["trials"] or math.inf
        self.parameters = [Parameter(name, domain) for name, domain in told["space"].items()
                           if isinstance(domain, dict)]
        self.constants = {name: value for name, value in told["space"].items()
                          if not isinstance(value, dict)}
        self.conditions = {}  # parameter: [(parent, values)]
        for one in told["conditions"]:
            self.conditions.setdefault(one["parameter"], []).append((one["parent"], one["values"]))
        modes = {m["name"]: m["mode"] for m in told["metrics"]}
        known = [name for name, mode in modes.items() if mode and name != "time"]
        self.metrics = list(metrics) or known[:1]
        self.modes = [modes[name] for name in self.metrics]
        self.signs = [-1 if mode == "min" else 1 for mode in self.modes]
        self.metric, self.mode, self.sign = self.metrics[0], self.modes[0], self.signs[0]

    def is_active(self, parameter, config):
        return all(config.get(parent) in values
                   for parent, values in self.conditions.get(parameter.name, []))

    def config_at(self, units):
        return {**self.constants, **{p.name: p.at(u) for p, u in zip(self.parameters, units)}}

    def ask(self, what, **more):
        return self.server.ask({"do": what, "task": self.name, **more})

    def curve(self, config):
        return Curve(self, config)

    def reference(self, metric=None):
        """tune's own."""
        metric = metric or self.metric
        return self.ask("reference", metric=metric, mode=self.modes[self.metrics.index(metric)])

    def ends(self, configs):
        """Last value, as it is, and time of whole trainings."""
        return self.ask("ends", metric=self.metric, configs=configs)


class Curve:
    """Few trials of a search see all of it, and what is not asked for need not be computed."""

    def __init__(self, task, config):
        self.task, self.values, self.seconds = task, [], []
        self.number = self.add(task.ask("curve", metrics=task.metrics, config=config,
                                        through=SEEN_FIRST))["curve"]

    def through(self, step):
        """Values, where more is better, and the seconds of each step, at least as far as this one; of
        several objectives a list each step."""
        if step > len(self.values):
            self.add(self.task.server.ask({"do": "further", "curve": self.number,
                                           "metrics": self.task.metrics}))
        return self.values, self.seconds

    def add(self, found):
        curves = [[max(sign * v, WORST) if isinstance(v, (int, float)) else WORST for v in values]
                  for sign, values in zip(self.task.signs, found["values"])]
        self.values += curves[0] if len(curves) == 1 else map(list, zip(*curves))
        self.seconds += found["seconds"]
        return found


class Server:
    def __init__(self, program, folder):
        self.process = subprocess.Popen([program, folder], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)

    def ask(self, question):
        self.process.stdin.write(json.dumps(question) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            raise SystemExit("bench_judgement_tasks has ended: see above")
        return json.loads(answer)

    def tasks(self, metrics):
        """`metrics`: those to take where a task has them, before its own first. "a+b" are objectives
        of which a task has both, and then only such tasks are wanted."""
        found = {}
        for told in self.ask({"do": "list"}):
            names = [m["name"] for m in told["metrics"]]
            wanted = [m.split("+") for m in metrics if set(m.split("+")) <= set(names)]
            if wanted or not any("+" in m for m in metrics):
                found[told["name"]] = Task(self, told, wanted[0] if wanted else ())
        return found

    def restart(self):
        self.ask({"do": "restart"})

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def fingerprints(folder, names):
    """By task: what the files of its scenario hold, wherever they lie."""
    found = {}
    for scenario in {name.rpartition("/")[0] for name in names}:
        content = hashlib.sha256()
        for path in sorted(files_below(os.path.join(folder, scenario))):
            content.update(os.path.relpath(path, folder).encode() + b"\0")
            with open(path, "rb") as file:
                content.update(hashlib.sha256(file.read()).digest())
        found[scenario] = content.hexdigest()[:16]
    return {name: found[name.rpartition("/")[0]] for name in names}


def files_below(folder):
    for path, _, files in os.walk(folder):
        yield from (os.path.join(path, file) for file in files)
