#!/usr/bin/env python3
"""Searches by tune and by its peers on one virtual clock, over tasks from files: prints a table.

    python3 bench/judgement/run.py --tasks FOLDER [--tiny] [--build FOLDER] [--results FILE]
        [--methods WORD,WORD...] [--only WORD,WORD...] [--without NAME,NAME...] [--seeds N]
        [--peer-seeds N] [--workers 4,16] [--trainings 20,100] [--start-costs 0,1] [--trials 100]

Each finished run is a line of the results file; a second start does what is missing, so that a break
costs one run and more seeds or methods can be added later. tune's own methods are the sweeps in
settings/curves and settings/one_step, played by `tune simulate`: a file put there takes part, one that
is changed is run anew. --methods takes those whose names hold one of the words ("tune:", "optuna:
tpe"), --only those tasks.

Tasks with curves get a time budget: so many median trainings over all workers. Tasks whose trainings
have one step get so many trials instead, with 4 workers.

Regret is (optimum - best) / (optimum - median), at most 1.5, at a quarter, a half and all of the budget:
the mean over tasks of the means over seeds, with the 95 % interval that the seeds leave. The rank is
among all methods that have run on all tasks, by the regret at the end. p is Wilcoxon's signed-rank test
over tasks against the best of tune's methods, corrected by Holm.
"""
import argparse
import collections
import concurrent.futures
import hashlib
import json
import math
import os
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import zlib

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, HERE)
sys.dont_write_bytecode = True
import stats  # noqa: E402
from tasks import Server  # noqa: E402

METRICS = ["val_accuracy", "logloss", "valid_loss"]  # the first that a task has, else its own first
FRACTIONS = (0.25, 0.5, 1.0)
WORST = 1.5
STOPS = re.compile(r"halving|hyperband|median|asha|then the best")  # senseless with one step
SLOW = re.compile(r"optuna: gp|syne: (cqr|botorch)")  # above .1 s a suggestion
# Peer: its program's file and environment; none: any Python will do.
PEERS = {"plain": ("plain.py", None), "optuna": ("optuna_peer.py", "optuna"),
         "optuna_gp": ("optuna_peer.py", "optuna_gp"),  # its environment has PyTorch: 5 GB
         "syne": ("syne_peer.py", "syne")}
PEER_METHODS = {
    "plain": ["plain: random", "plain: one step, then the best"],
    "optuna": ["optuna: %s, %s" % (s, p) for s in ("tpe", "tpe group", "random")
               for p in ("none", "halving", "hyperband", "median")],
    "optuna_gp": ["optuna: gp, halving", "optuna: gp, none"],
    "syne": ["syne: asha", "syne: cqr, asha"],
}

Setting = collections.namedtuple("Setting", "workers trainings trials start_cost")


def kind_of(task):
    return "one_step" if task.steps == 1 else "curves"


def own_seed(task, seed):
    """Tasks of one space would else be given the same configurations: a lucky draw would be lucky on
    all of them, and the seeds' interval too narrow."""
    return zlib.crc32(task.name.encode()) % 1_000_000 * 1000 + seed


def digest(path):
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()[:12]


class Results:
    """The lines of a file: what was run before, and what is added."""

    def __init__(self, path, folder):
        self.path, self.folder, self.lock, self.runs = path, folder, threading.Lock(), {}
        if os.path.exists(path):
            with open(path) as file:
                for text in file:
                    if text.endswith("\n"):  # else it was broken off
                        self.take(json.loads(text))
        os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
        with open(path, "ab+") as file:
            file.seek(0, os.SEEK_END)
            if file.tell() > 0:
                file.seek(-1, os.SEEK_END)
                if file.read(1) != b"\n":
                    file.write(b"\n")

    def key(self, run):
        return (run["method"], run.get("version"), run["task"], run["seed"],
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
    optimum, median = reference["optimum"], reference["median"]
    values = [value_at(run, fraction) for fraction in FRACTIONS]
    return [min((optimum - (median if v is None else v)) / (optimum - median), WORST)
            for v in values]


class Evaluation:
    def __init__(self, options):
        self.options = options
        self.folder = os.path.abspath(options.tasks)
        self.server = os.path.join(options.build, "bin", "bench_judgement_tasks")
        self.tune = os.path.join(options.build, "bin", "tune")
        self.environments = {}
        server = Server(self.server, self.folder)
        known = server.tasks(METRICS)
        self.tasks = {name: task for name, task in known.items() if self.is_wanted(name)}
        if not self.tasks:
            sys.exit("%s has no task that is wanted: it has %s" % (self.folder, " ".join(known)))
        self.references = self.find_references(server)
        server.close()
        self.results = Results(options.results, self.folder)

    def is_wanted(self, name):
        only = self.options.only
        return ((not only or any(name == o or name.startswith(o + "/") for o in only)) and
                name not in self.options.without)

    def environment(self, peer):
        if peer not in self.environments:
            done = subprocess.run(
                ["bash", os.path.join(ROOT, "bench", "peers", "setup.sh"), peer], check=True, text=True,
                stdout=subprocess.PIPE,
                env={**os.environ, "TUNE_REQUIREMENTS": os.path.join(HERE, "requirements")})
            self.environments[peer] = os.path.join(done.stdout.strip(), peer, "bin", "python")
        return self.environments[peer]

    def find_references(self, server):
        """By task, kept beside the results: all methods are measured by the same."""
        path = self.options.results + ".references"
        known = {}
        if os.path.exists(path):
            with open(path) as file:
                known = {(folder, name): found for folder, name, found in map(json.loads, file)}
        missing = [name for name in self.tasks if (self.folder, name) not in known]
        os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
        with open(path, "a") as file:
            for name, found in self.new_references(server, missing):
                known[self.folder, name] = found
                file.write(json.dumps([self.folder, name, found]) + "\n")
                file.flush()
        return {name: known[self.folder, name] for name in self.tasks}

    def new_references(self, server, names):
        if self.options.tiny:
            for name in names:
                yield name, self.tasks[name].ask("reference", mode=self.tasks[name].mode)
        elif names:
            process = subprocess.Popen(
                [self.environment("numpy"), os.path.join(HERE, "references.py"), self.server,
                 self.folder, ",".join(METRICS)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                text=True, env=single_threaded())
            process.stdin.write(json.dumps({"names": names}))
            process.stdin.close()
            for line in process.stdout:
                name, _, found = json.loads(line)
                yield name, found
            if process.wait() != 0:
                sys.exit("finding the references failed: see above")

    # ---- What is to be run

    def methods(self, kind):
        """(name, peer, version, seeds) for tasks of that kind; tune's own first."""
        found = []
        folder = os.path.join(HERE, "settings", kind)
        for file in sorted(os.listdir(folder)):
            if file.endswith(".yaml"):
                found.append(("tune: " + file[:-5], None, digest(os.path.join(folder, file)),
                              self.options.seeds))
        for peer, names in PEER_METHODS.items():
            found += [(name, peer, None, self.options.peer_seeds) for name in names
                      if kind == "curves" or not STOPS.search(name)]
        words = self.options.methods
        return [m for m in found if not words or any(word in m[0] for word in words)]

    def settings(self, task, method):
        o = self.options
        if kind_of(task) == "one_step":
            return [Setting(4, 0, o.trials, 0)]
        if SLOW.search(method):
            return [Setting(4, 20, 0, 0)]
        return [Setting(w, t, 0, c) for w in o.workers for t in o.trainings for c in o.start_costs]

    def missing(self):
        """(method, peer, task, setting) and the seeds that are not there yet."""
        for task in self.tasks.values():
            for name, peer, version, seeds in self.methods(kind_of(task)):
                count = min(seeds, 3) if SLOW.search(name) else seeds
                for setting in self.settings(task, name):
                    left = [s for s in range(count)
                            if (name, version, task.name, s, setting) not in self.results.runs]
                    if left:
                        yield name, peer, version, task, setting, left

    # ---- Running

    def budget_s(self, task, setting):
        return setting.trainings * self.references[task.name]["training_s"] / setting.workers

    def run_missing(self):
        todo = list(self.missing())
        print("%d runs to do" % sum(len(job[-1]) for job in todo), file=sys.stderr, flush=True)
        for peer in {job[1] for job in todo} - {None}:
            if PEERS[peer][1]:
                self.environment(PEERS[peer][1])
        with concurrent.futures.ThreadPoolExecutor(self.options.jobs) as pool:
            for future in [pool.submit(self.run, *job) for job in todo]:
                future.result()

    def run(self, name, peer, version, task, setting, seeds):
        runs = self.play(name, task, setting, seeds) if peer is None else self.play_peer(
            name, peer, task, setting, seeds)
        for seed, run in zip(seeds, runs):
            self.results.add({"method": name, "version": version, "task": task.name, "seed": seed,
                              **setting._asdict(), "budget_s": self.budget_s(task, setting), **run})

    def play(self, name, task, setting, seeds):
        """tune's own; one call for seeds that follow each other."""
        sweep = os.path.join(HERE, "settings", kind_of(task), name.split(": ", 1)[1] + ".yaml")
        folder, leaf = task.name.rsplit("/", 1)
        references = {folder: {leaf: {task.metric: self.references[task.name]}}}
        first = 0
        while first < len(seeds):
            count = 1
            while first + count < len(seeds) and seeds[first + count] == seeds[first] + count:
                count += 1
            command = [self.tune, "simulate", sweep, "--tasks", self.folder, "--task", task.name,
                       "--metric", task.metric, "--set", "seed=%d" % own_seed(task, seeds[first]), "--seeds", str(count),
                       "--workers", str(setting.workers), "--start-cost", str(setting.start_cost),
                       "--references", "/dev/stdin", "--json"]
            if setting.trials:
                command += ["--set", "num_samples=%d" % setting.trials]
            else:
                command += ["--trainings", str(setting.trainings)]
            for line in lines_of(command, json.dumps(references)):
                run = json.loads(line)
                yield {"best": run["best"], "trials_begun": run["trials"],
                       "suggestion_s": run["suggestion_s"]}
            first += count

    def play_peer(self, name, peer, task, setting, seeds):
        file, environment = PEERS[peer]
        python = self.environment(environment) if environment else sys.executable
        jobs = "".join(json.dumps(
            {"method": name, "task": task.name, "seed": own_seed(task, seed), "workers": setting.workers,
             "budget_s": self.budget_s(task, setting), "trials": setting.trials,
             "start_cost": setting.start_cost}) + "\n" for seed in seeds)
        for line in lines_of([python, os.path.join(HERE, file), self.server, self.folder,
                              ",".join(METRICS)], jobs):
            run = json.loads(line)
            yield {key: run[key] for key in ("best", "trials_begun", "suggestion_s")}

    # ---- The table

    def print_tables(self):
        versions = {(kind, name): version for kind in ("curves", "one_step")
                    for name, _, version, _ in self.methods(kind)}
        tables = collections.defaultdict(lambda: collections.defaultdict(dict))
        for (name, version, task, seed, setting), run in self.results.runs.items():
            kind = kind_of(self.tasks[task]) if task in self.tasks else None
            if versions.get((kind, name), "") == version:
                cell = tables[kind, setting][name].setdefault(task, [])
                cell.append((regrets(run, self.references[task]), run["suggestion_s"]))
        for (kind, setting), methods in sorted(tables.items()):
            tasks = [name for name, task in self.tasks.items() if kind_of(task) == kind]
            budget = ("%d trials" % setting.trials if setting.trials
                      else "the time of %g trainings" % setting.trainings)
            print("\n%s, %d tasks: %s, %d workers, a start costs %g steps" % (
                kind, len(tasks), budget, setting.workers, setting.start_cost))
            print_table(methods, tasks)


def single_threaded():
    return {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1",
            "PYTHONDONTWRITEBYTECODE": "1"}


def lines_of(command, text):
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                               env=single_threaded())
    process.stdin.write(text)
    process.stdin.close()
    yield from process.stdout
    if process.wait() != 0:
        raise SystemExit("%s ended with %d" % (" ".join(command), process.returncode))


def print_table(methods, tasks):
    whole = {name: cells for name, cells in methods.items() if set(cells) == set(tasks)}
    ends = {name: [statistics.mean(r[-1] for r, _ in cells[task]) for task in tasks]
            for name, cells in whole.items()}
    ranks = stats.mean_ranks(ends)
    own = [name for name in ends if name.startswith("tune:")]
    best = min(own, key=lambda name: statistics.mean(ends[name])) if own else None
    others = [name for name in ends if name != best] if best else []
    p_values = stats.holm({name: stats.wilcoxon(ends[best], ends[name]) for name in others})
    print("%-34s %5s %15s %15s %15s %6s %9s %12s" % (
        "method", "runs", "25 %", "50 %", "100 %", "rank", "p", "a suggestion"))
    for name in sorted(methods, key=lambda n: (n not in whole, statistics.mean(ends.get(n, [0])))):
        cells = methods[name]
        texts = []
        for i in range(len(FRACTIONS)):
            mean, half = stats.stratified_mean([[r[i] for r, _ in runs] for runs in cells.values()])
            texts.append("%.3f" % mean + (" +- %.3f" % half if not math.isnan(half) else ""))
        seconds = statistics.median(s for runs in cells.values() for _, s in runs)
        print("%-34s %5d %15s %15s %15s %6s %9s %9.3f ms%s" % (
            name, sum(map(len, cells.values())), *texts,
            "%.1f" % ranks[name] if name in ranks else "-",
            "%.2g" % p_values[name] if name in p_values else "-", 1e3 * seconds,
            "" if name in whole else "  (%d tasks only)" % len(cells)))


def options_of(arguments):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    words = lambda text: [word for word in text.split(",") if word]
    numbers = lambda text: [int(word) for word in words(text)]
    parser.add_argument("--tasks", help="folder of surrogates and tables")
    parser.add_argument("--tiny", action="store_true", help="moments, to see that it works")
    parser.add_argument("--build", default=os.path.join(ROOT, "build"))
    parser.add_argument("--results", help="default: judgement/results.jsonl in the build folder")
    parser.add_argument("--methods", type=words, default=[])
    parser.add_argument("--only", type=words, default=[])
    parser.add_argument("--without", type=words, default=["lcbench/167083"])
    parser.add_argument("--seeds", type=int, default=30)
    parser.add_argument("--peer-seeds", type=int, default=10)
    parser.add_argument("--workers", type=numbers, default=[4, 16])
    parser.add_argument("--trainings", type=numbers, default=[20, 100])
    parser.add_argument("--start-costs", type=numbers, default=[0, 1])
    parser.add_argument("--trials", type=int, default=100)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    options = parser.parse_args(arguments)
    if options.tiny:
        options.tasks = options.tasks or os.path.join(ROOT, "tests", "data", "tasks")
        options.methods = options.methods or ["tune:", "plain:"]
        options.seeds = options.peer_seeds = 2
        options.workers, options.trainings, options.start_costs = [2], [5], [0, 1]
        options.trials = 8
    if not options.tasks:
        parser.error("--tasks FOLDER is missing: where are the surrogates and tables?")
    options.build = os.path.abspath(options.build)
    options.results = options.results or os.path.join(options.build, "judgement", "results.jsonl")
    return options


def check_that_it_goes_on(options):
    """A results file that was broken off in its last line: that run alone is done again, alike."""
    first = Evaluation(options)
    first.run_missing()
    with open(options.results, "r+") as file:
        text = file.read()
        file.truncate(len(text) - 10)
    again = Evaluation(options)
    left = [seed for job in again.missing() for seed in job[-1]]
    assert len(left) == 1, left
    again.run_missing()
    assert again.results.runs.keys() == first.results.runs.keys()
    for key, run in first.results.runs.items():
        assert again.results.runs[key]["best"] == run["best"], key
    again.print_tables()


def main():
    options = options_of(sys.argv[1:])
    if options.tiny:
        with tempfile.TemporaryDirectory(prefix="tune-judgement-") as folder:
            options.results = os.path.join(folder, "results.jsonl")
            return check_that_it_goes_on(options)
    evaluation = Evaluation(options)
    evaluation.run_missing()
    evaluation.print_tables()


if __name__ == "__main__":
    main()
