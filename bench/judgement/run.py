#!/usr/bin/env python3
"""Searches by tune and by its peers on one virtual clock, over tasks from files: prints a table.

    python3 bench/judgement/run.py --tasks FOLDER [--tiny] [--build FOLDER] [--results FILE] [--print]
        [--methods WORD,WORD...] [--only WORD,WORD...] [--without NAME,NAME...] [--seeds N]
        [--peer-seeds N] [--slow-seeds N] [--workers 4,16] [--trainings 20,100] [--start-costs 0,1]
        [--trials 100] [--objectives NAME+NAME] [--jobs N] [--keep]

Each finished run is a line of the results file; a second start does what is missing, so that a break
costs one run and more seeds or methods can be added later. The first setting comes first, and in it a
few seeds of every method before more of them: whenever it is broken off, the table says something.
tune's own methods are the sweeps in settings/curves and settings/one_step, played by `tune simulate`: a
file put there takes part. They are run anew when the file or the tune program has changed, peers when
their requirements have. --methods takes those with such a name, else those whose names hold the word
("optuna: tpe + halving,tune:"), --only those tasks; --print runs nothing. What peers came to stands in
kept.jsonl.gz beside this file, so that they are not run again where the tasks' files are the same; --keep
adds what the results file has of them.

Tasks with curves get a time budget: so many median trainings over all workers. Tasks whose trainings
have one step get so many trials instead, with 4 workers; so has every task that has all metrics of
--objectives, with these as its objectives and no early stopping.

Regret is (optimum - best) / (optimum - median), at most 1.5, at a quarter, a half and all of the budget;
under several objectives the share of the box between their optima and medians that no trial dominates:
the mean over tasks of the means over seeds, with the 95 % interval that the seeds leave. The ranks are
among all methods that have run on all tasks, at the same moments. p is Wilcoxon's signed-rank test over
tasks at the end, against tune: auto (without it the best of tune's methods), corrected by Holm.
"""
import argparse
import concurrent.futures
import json
import os
import subprocess
import sys
import tempfile
import zlib

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, HERE)
sys.dont_write_bytecode = True
import methods  # noqa: E402
import report  # noqa: E402
from results import Results, Setting  # noqa: E402
from tasks import Server, fingerprints  # noqa: E402

METRICS = ["val_accuracy", "logloss", "valid_loss"]  # the first that a task has, else its own first
REFERENCE = ("optimum", "median", "training_s")
KEPT = os.path.join(HERE, "kept.jsonl.gz")
ROUNDS = (3, 10)  # so many seeds of all methods, then so many, then the rest


def kind_of(task):
    if len(task.signs) > 1:
        return "several"
    return "one_step" if task.steps == 1 else "curves"


def own_seed(task, seed):
    """Tasks of one space would else be given the same configurations: a lucky draw would be lucky on
    all of them, and the seeds' interval too narrow."""
    return zlib.crc32(task.name.encode()) % 1_000_000 * 1000 + seed


class Failed(Exception):
    pass


class Evaluation:
    def __init__(self, options):
        self.options = options
        self.folder = os.path.abspath(options.tasks)
        self.server = os.path.join(options.build, "bin", "bench_judgement_tasks")
        self.tune = os.path.join(options.build, "bin", "tune")
        self.environments = {}
        self.metrics = [options.objectives] if options.objectives else METRICS
        server = Server(self.server, self.folder)
        known = server.tasks(self.metrics)
        self.tasks = {name: task for name, task in known.items() if self.is_wanted(name)}
        if not self.tasks:
            sys.exit("%s has no task that is wanted: it has %s" % (self.folder, " ".join(known)))
        self.methods = list(self.all_methods())
        if options.methods:
            names = {m.name for m in self.methods}
            self.methods = [m for m in self.methods if any(
                word == m.name or word not in names and word in m.name for word in options.methods)]
        self.results = Results(options.results, fingerprints(self.folder, self.tasks),
                               None if options.tiny else KEPT)
        self.references = self.find_references(server)
        server.close()

    def is_wanted(self, name):
        only = self.options.only
        return ((not only or any(name == o or name.startswith(o + "/") for o in only)) and
                name not in self.options.without)

    def all_methods(self):
        for kind in methods.KINDS:
            yield from methods.own_methods(kind, self.tune)
        yield from methods.peer_methods()

    def environment(self, peer):
        """Its Python, installed if need be."""
        if peer is None:
            return sys.executable
        if peer not in self.environments:
            done = subprocess.run(
                ["bash", os.path.join(ROOT, "bench", "peers", "setup.sh"), peer], text=True,
                stdout=subprocess.PIPE,
                env={**os.environ, "TUNE_REQUIREMENTS": os.path.join(HERE, "requirements")})
            if done.returncode != 0:
                raise Failed("its environment could not be made: see above")
            self.environments[peer] = os.path.join(done.stdout.strip(), peer, "bin", "python")
        return self.environments[peer]

    def find_references(self, server):
        """By task, kept with the results: all methods are measured by the same."""
        objectives = self.options.objectives
        known = self.results.references
        missing = [name for name in self.tasks if (name, objectives) not in known]
        for name, found in self.new_references(server, missing):
            self.results.add({"task": name, "objectives": objectives, **found})
        return {name: {key: known[name, objectives][key] for key in REFERENCE} for name in self.tasks}

    def new_references(self, server, names):
        if self.options.objectives:
            for name in names:
                found = [self.tasks[name].reference(metric) for metric in self.tasks[name].metrics]
                yield name, {"optimum": [one["optimum"] for one in found],
                             "median": [one["median"] for one in found],
                             "training_s": found[0]["training_s"]}
        elif self.options.tiny:
            for name in names:
                yield name, self.tasks[name].reference()
        elif names:
            for line in lines_of([self.environment("numpy"), os.path.join(HERE, "references.py"),
                                  self.server, self.folder, ",".join(self.metrics)],
                                 json.dumps({"names": names})):
                name, _, found = json.loads(line)
                yield name, found

    # ---- What is to be run

    def settings(self, kind, method):
        o = self.options
        if kind != "curves":
            return [Setting(4, 0, o.trials, 0, o.objectives)]
        if method.slow:
            return [Setting(4, 20, 0, 0)]
        return [Setting(w, t, 0, c) for t in o.trainings for w in o.workers for c in o.start_costs]

    def seeds(self, method):
        if method.peer is None:
            return self.options.seeds
        return self.options.slow_seeds if method.slow else self.options.peer_seeds

    def rounds(self, method):
        """Of seeds; a slow method's one by one."""
        count = self.seeds(method)
        bounds = range(count + 1) if method.slow else (0, *(r for r in ROUNDS if r < count), count)
        return [range(a, b) for a, b in zip(bounds, bounds[1:])]

    def missing(self):
        """Batches in the order of their use: a method, a setting, and (task, seed) that are not there
        yet."""
        found = []
        for place, method in enumerate(self.methods):
            for kind in method.kinds:
                for at, setting in enumerate(self.settings(kind, method)):
                    for number, seeds in enumerate(self.rounds(method)):
                        left = [(task, seed) for task in self.tasks.values() if kind_of(task) == kind
                                for seed in seeds if (method.name, method.version, task.name, seed,
                                                      setting) not in self.results.runs]
                        if left:
                            found.append(((at, method.slow, number, place), method, setting, left))
        return [batch for _, *batch in sorted(found, key=lambda one: one[0])]

    # ---- Running

    def budget_s(self, task, setting):
        return setting.trainings * self.references[task.name]["training_s"] / setting.workers

    def run_missing(self):
        """Whether all of it could be done."""
        batches = self.missing()
        print("%d runs to do" % sum(len(jobs) for *_, jobs in batches), file=sys.stderr, flush=True)
        with concurrent.futures.ThreadPoolExecutor(self.options.jobs) as pool:
            return all(list(pool.map(lambda batch: self.run(*batch), batches)))

    def run(self, method, setting, jobs):
        try:
            play = self.play_own if method.peer is None else self.play_peer
            for (task, seed), run in zip(jobs, play(method, setting, jobs)):
                kept = ("best", "points", "trials_begun", "launches", "suggestion_s")
                self.results.add({"method": method.name, "version": method.version,
                                  "task": task.name, "seed": seed,
                                  "budget_s": self.budget_s(task, setting),
                                  **{key: run[key] for key in kept if key in run},
                                  **setting._asdict()})
            return True
        except Failed as failed:
            print("%s: %s" % (method.name, failed), file=sys.stderr, flush=True)
            return False

    def play_own(self, method, setting, jobs):
        """A call for seeds of a task that follow each other."""
        while jobs:
            (task, first), count = jobs[0], 1
            while count < len(jobs) and jobs[count] == (task, first + count):
                count += 1
            for line in lines_of(self.simulate(method, setting, task, first, count),
                                 json.dumps(self.reference_file(task))):
                run = json.loads(line)
                yield {**run, "trials_begun": run["trials"]}
            jobs = jobs[count:]

    def reference_file(self, task):
        folder, leaf = task.name.rsplit("/", 1)
        found = self.references[task.name]
        if len(task.metrics) > 1:
            return {folder: {leaf: {
                metric: {"optimum": optimum, "median": median, "training_s": found["training_s"]}
                for metric, optimum, median in zip(task.metrics, found["optimum"], found["median"])}}}
        return {folder: {leaf: {task.metric: found}}}

    def simulate(self, method, setting, task, first, count):
        command = [self.tune, "simulate", methods.sweep_of(method.name, kind_of(task)),
                   "--tasks", self.folder, "--task", task.name, "--metric", task.metric,
                   "--set", "seed=%d" % own_seed(task, first), "--seeds", str(count),
                   "--workers", str(setting.workers), "--start-cost", str(setting.start_cost),
                   "--references", "/dev/stdin", "--json"]
        if setting.objectives:
            command += ["--set", "objectives=[%s]" % ", ".join(
                "{metric: %s, mode: %s}" % pair for pair in zip(task.metrics, task.modes))]
        if setting.trials:
            return command + ["--set", "num_samples=%d" % setting.trials]
        return command + ["--trainings", str(setting.trainings)]

    def play_peer(self, method, setting, jobs):
        """One process for all: some need seconds to be loaded."""
        file, environment = methods.PEERS[method.peer]
        text = "".join(json.dumps(
            {"method": method.name, "task": task.name, "seed": own_seed(task, seed),
             "budget_s": self.budget_s(task, setting), **setting._asdict()}) + "\n"
            for task, seed in jobs)
        for line in lines_of([self.environment(environment), os.path.join(HERE, file), self.server,
                              self.folder, ",".join(self.metrics)], text):
            yield json.loads(line)

    def keep(self):
        peers = {(m.name, m.version) for m in self.methods if m.peer is not None}
        self.results.keep(KEPT, lambda *method: method in peers)

    # ---- The table

    def print_tables(self):
        wanted = {(kind, m.name, m.version) for m in self.methods for kind in m.kinds}
        runs = {key: run for key, run in self.results.runs.items() if key[2] in self.tasks and
                (kind_of(self.tasks[key[2]]), *key[:2]) in wanted and
                key[4].objectives == self.options.objectives}
        report.print_tables(runs, self.references, self.tasks, kind_of)


def lines_of(command, text):
    """What it answers to the text; each line as soon as it is there."""
    with tempfile.TemporaryFile("w+") as given:
        given.write(text)
        given.seek(0)
        process = subprocess.Popen(command, stdin=given, stdout=subprocess.PIPE, text=True,
                                   env={**os.environ, "OMP_NUM_THREADS": "1",
                                        "OPENBLAS_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1",
                                        "PYTHONUNBUFFERED": ""})
    yield from process.stdout
    if process.wait() != 0:
        raise Failed("%s ended with %d: see above" % (" ".join(command[:2]), process.returncode))


def options_of(arguments):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    words = lambda text: [word for word in text.split(",") if word]
    numbers = lambda text: [int(word) for word in words(text)]
    parser.add_argument("--tasks", help="folder of surrogates and tables")
    parser.add_argument("--tiny", action="store_true", help="moments, to see that it works")
    parser.add_argument("--print", action="store_true", help="the table of what is there; runs nothing")
    parser.add_argument("--keep", action="store_true", help="adds peers' runs to kept.jsonl.gz")
    parser.add_argument("--build", default=os.path.join(ROOT, "build"))
    parser.add_argument("--results", help="default: judgement/results.jsonl in the build folder")
    parser.add_argument("--methods", type=words, default=[])
    parser.add_argument("--only", type=words, default=[])
    parser.add_argument("--without", type=words, default=["lcbench/167083"])
    parser.add_argument("--seeds", type=int, default=30)
    parser.add_argument("--peer-seeds", type=int, default=10)
    parser.add_argument("--slow-seeds", type=int, default=3)
    parser.add_argument("--workers", type=numbers, default=[4, 16])
    parser.add_argument("--trainings", type=numbers, default=[20, 100])
    parser.add_argument("--start-costs", type=numbers, default=[0, 1])
    parser.add_argument("--trials", type=int, default=100)
    parser.add_argument("--objectives", default="")
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


def values_of(run):
    return run.get("best", run.get("points"))


def check_that_it_goes_on(options):
    """A results file that was broken off in its last line: that run alone is done again, alike."""
    first = Evaluation(options)
    assert first.run_missing()
    with open(options.results, "r+") as file:
        text = file.read()
        file.truncate(len(text) - 10)
    again = Evaluation(options)
    left = [seed for *_, jobs in again.missing() for _, seed in jobs]
    assert len(left) == 1, left
    assert again.run_missing()
    assert not again.missing()
    assert again.results.runs.keys() == first.results.runs.keys()
    for key, run in first.results.runs.items():
        assert values_of(again.results.runs[key]) == values_of(run), key
    again.print_tables()


def main():
    options = options_of(sys.argv[1:])
    if options.tiny:
        with tempfile.TemporaryDirectory(prefix="tune-judgement-") as folder:
            options.results = os.path.join(folder, "results.jsonl")
            check_that_it_goes_on(options)
            options.objectives = "val_accuracy+time"
            return check_that_it_goes_on(options)
    evaluation = Evaluation(options)
    done = options.print or evaluation.run_missing()
    evaluation.print_tables()
    if options.keep:
        evaluation.keep()
    return 0 if done else 1


if __name__ == "__main__":
    sys.exit(main())
