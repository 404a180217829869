#!/usr/bin/env python3
"""Searches of four small trainings that really run, by searchers and builds side by side.

    python3 bench/trainings/compare.py [--tiny] [--seeds N] [--trials N] [--scheduler asha|promote|none]
                                       [--results FILE] [NAME=PROGRAM:SEARCHER...]

Each NAME is a `tune` program and a searcher; without any: random, tpe, gp and auto of this build. A
sweep has so many trials of 27 steps, 4 at a time. Prints for each training and in the mean what the
best loss is above the best of all, by what the median of random search is above it: 1 is random, 0
the best. Above 4 counts as 4. Finished sweeps are lines of FILE; a second start does what is missing: a
program that has changed needs another NAME or FILE.

The spaces are as wide as users write them: beyond some learning rate training diverges.
"""
import argparse
import concurrent.futures
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SPACES = {
    "Ridge": """
  lr: {loguniform: [1e-4, 1]}
  l2: {loguniform: [1e-6, 0.1]}
  batch: {choice: [1, 4, 16]}
  optimizer: {choice: [{name: sgd}, {name: momentum, momentum: {uniform: [0.5, 0.99]}}]}""",
    "Spirals": """
  lr: {loguniform: [1e-4, 10]}
  momentum: {uniform: [0, 0.99]}
  l2: {loguniform: [1e-7, 0.1]}
  init: {loguniform: [0.01, 10]}
  hidden: {lograndint: [4, 65]}
  batch: {choice: [4, 16, 64]}""",
    "Softmax": """
  lr: {loguniform: [1e-5, 1]}
  beta1: {uniform: [0.3, 0.999]}
  one_minus_beta2: {loguniform: [1e-4, 0.5]}
  eps: {loguniform: [1e-10, 1]}
  weight_decay: {loguniform: [1e-6, 1]}
  dropout: {uniform: [0, 0.9]}
  smoothing: {uniform: [0, 0.5]}""",
    "Factors": """
  lr: {loguniform: [1e-4, 1]}
  decay: {loguniform: [0.001, 10]}
  reg: {loguniform: [1e-5, 1]}
  init: {loguniform: [0.001, 3]}
  rank: {randint: [1, 16]}""",
}
RUNGS = "max_t: 27, grace_period: 1, reduction_factor: 3"
SCHEDULERS = {"asha": "{asha: {%s}}" % RUNGS, "promote": "{asha: {%s, type: promote}}" % RUNGS, "none": "fifo"}


def sweep_of(training, searcher, seed, options):
    plugin = os.path.join(options.build, "lib", "libbench_trainings.so")
    return (f"plugin: {plugin}\ntrainable: {training}\nconfig:{SPACES[training]}\nsearcher: {searcher}\n"
            f"num_samples: {options.trials}\nmetric: loss\nmode: min\nseed: {seed}\ncpus: 4\n"
            f"scheduler: {SCHEDULERS[options.scheduler]}\nstop: {{training_iteration: {options.steps}}}\n")


def losses_below(folder):
    for path, _, files in os.walk(folder):
        if "result.json" not in files:
            continue
        with open(os.path.join(path, "result.json")) as lines:
            for line in lines:
                loss = json.loads(line)["loss"]
                yield loss if isinstance(loss, (int, float)) else float("inf")


def run(name, program, searcher, training, seed, options):
    folder = tempfile.mkdtemp()
    try:
        sweep = os.path.join(folder, "sweep.yaml")
        with open(sweep, "w") as out:
            out.write(sweep_of(training, searcher, seed, options))
        command = [program, "run", sweep, "--quiet", "--name", "s", "--storage", folder]
        done = subprocess.run(command, text=True, capture_output=True)
        if done.returncode != 0:
            raise SystemExit(f"{' '.join(command)} ended with {done.returncode}:\n{done.stderr}")
        losses = list(losses_below(os.path.join(folder, "s")))
        return {"name": name, "training": training, "seed": seed, "scheduler": options.scheduler,
                "trials": options.trials, "best": min(losses), "steps": len(losses)}
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def spread(values):
    if len(values) < 2:
        return "%.2f" % statistics.mean(values)
    half = 1.96 * statistics.stdev(values) / len(values) ** 0.5
    return "%.2f +- %.2f" % (statistics.mean(values), half)


def table(rows, names):
    optimum = {t: min((r["best"] for r in rows if r["training"] == t), default=0) for t in SPACES}
    median = {t: statistics.median([r["best"] for r in rows if r["training"] == t and r["name"] == "random"] or [1])
              for t in SPACES}
    print("%-20s" % "" + "".join("%-16s" % t for t in SPACES) + "%-16s steps" % "all")
    for name in names:
        line, every = "%-20s" % name, []
        for training in SPACES:
            reach = (median[training] - optimum[training]) or 1
            own = [min((r["best"] - optimum[training]) / reach, 4) for r in rows
                   if r["training"] == training and r["name"] == name]
            every += own
            line += "%-16s" % spread(own)
        steps = statistics.mean(r["steps"] for r in rows if r["name"] == name)
        print(line + "%-16s %.0f" % (spread(every), steps))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("methods", nargs="*", metavar="NAME=PROGRAM:SEARCHER")
    parser.add_argument("--tiny", action="store_true", help="moments, to see that it works")
    parser.add_argument("--seeds", type=int, default=30)
    parser.add_argument("--trials", type=int, default=40)
    parser.add_argument("--scheduler", choices=sorted(SCHEDULERS), default="asha")
    parser.add_argument("--build", default=os.path.join(ROOT, "build"))
    parser.add_argument("--results", help="default: trainings.jsonl in the build folder")
    parser.add_argument("--jobs", type=int, default=2, help="sweeps at a time")
    options = parser.parse_args()
    options.steps = 27
    if options.tiny:
        options.seeds, options.trials, options.steps = 1, 8, 3
    tune = os.path.join(options.build, "bin", "tune")
    methods = options.methods or [f"{one}={tune}:{one}" for one in ("random", "tpe", "gp", "auto")]
    if not any(one.startswith("random=") for one in methods):
        methods.insert(0, f"random={tune}:random")
    file = options.results or os.path.join(options.build, "trainings.jsonl")
    rows = []
    if os.path.exists(file) and not options.tiny:
        with open(file) as lines:
            rows = [json.loads(line) for line in lines]
    rows = [r for r in rows if (r["scheduler"], r["trials"]) == (options.scheduler, options.trials)]
    there = {(r["name"], r["training"], r["seed"]) for r in rows}
    work = []
    for seed in range(options.seeds):
        for training in SPACES:
            for method in methods:
                name, _, rest = method.partition("=")
                program, _, searcher = rest.rpartition(":")
                if (name, training, seed) not in there:
                    work.append((name, program, searcher, training, seed))
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for row in pool.map(lambda one: run(*one, options), work):
            rows.append(row)
            if not options.tiny:
                with open(file, "a") as out:
                    out.write(json.dumps(row) + "\n")
    table(rows, [one.partition("=")[0] for one in methods])


if __name__ == "__main__":
    sys.exit(main())
