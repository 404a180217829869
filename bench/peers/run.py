#!/usr/bin/env python3
"""The same work by tune, Ray Tune and Optuna, side by side: prints a table of medians.

    python3 bench/peers/run.py [--tiny] [--runs N] [--build FOLDER] [--peers ray,optuna] [WORK...]

Works: start_up trials reports reports8 resume decision memory; all of them by default. Each is done by
one after the other, in an order that is turned round from run to run, so that what else the machine
does meets all of them. Rates are of each one's own count, as long as makes the start small beside it.
The environments are made by bench/peers/setup.sh.
"""
import argparse
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))

# Work: what is printed, and how often each one does it: in earnest, and --tiny.
WORKS = {
    "start_up": ("one trial of one step, to exit", {"tune": (1, 1), "ray": (1, 1), "optuna": (1, 1)}),
    "trials": ("trials of one step", {"tune": (10_000, 20), "ray": (100, 4), "optuna": (2_000, 20)}),
    "reports": ("reports of one trial",
                {"tune": (200_000, 800), "ray": (20_000, 50), "optuna": (20_000, 50)}),
    "reports8": ("reports of 8 trials at once",
                 {"tune": (200_000, 800), "ray": (20_000, 80), "optuna": (20_000, 80)}),
    "resume": ("loading what `trials` has left", {"ray": (100, 4), "optuna": (2_000, 20)}),
    "decision": ("an ASHA decision, CPU time", {}),
    "memory": ("memory of a trial that is over",
               {"tune": (10_000, 20), "ray": (100, 4), "optuna": (2_000, 20)}),
}
DECISION_SIZES = {"tune": ((1_000, 100_000, 1_000_000), (100, 1_000)),
                  "ray": ((1_000, 100_000), (100, 1_000)), "optuna": ((1_000, 10_000), (100, 1_000))}


def call(command, **options):
    done = subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)
    if done.returncode != 0:
        sys.exit("%s ended with %d:\n%s" % (" ".join(command), done.returncode, done.stderr[-2000:]))
    return done.stdout


class Tune:
    def __init__(self, build, tiny):
        self.tune = os.path.join(build, "bin", "tune")
        self.plugin = os.path.join(build, "lib", "libtune_synthetic.so")
        self.build = build
        self.tiny = tiny

    def sweep(self, folder, trials, steps, slots):
        sweep = os.path.join(folder, "sweep.yaml")
        with open(sweep, "w") as out:
            out.write("plugin: %s\ntrainable: empty_steps\nconfig: {steps: %d}\nnum_samples: %d\n"
                      "metric: x\nmode: max\nseed: 1\nstop: {training_iteration: %d}\ncpus: %d\n"
                      % (self.plugin, steps, trials, steps, slots))
        command = [self.tune, "run", sweep, "--quiet", "--name", "s", "--storage", folder]
        start = time.perf_counter()
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        if status != 0:
            sys.exit("%s ended with status %d" % (" ".join(command), status))
        return time.perf_counter() - start, usage.ru_maxrss * 1024  # of the largest of its processes

    def do(self, work, count, folder):
        cores = os.cpu_count()
        if work == "memory":
            return self.sweep(folder, count, 1, cores)[1]
        if work == "decision":
            return self.decision(count)
        shape = {"start_up": (1, 1, 1), "trials": (count, 1, cores), "reports": (1, count, 1),
                 "reports8": (8, count // 8, 8)}[work]
        return self.sweep(folder, *shape)[0]

    def decision(self, count):
        """Of one run of the benchmark; the rule is Ray's."""
        command = [os.path.join(self.build, "bin", "bench_asha_decision"), "--runs", "1"]
        text = call(command + (["--tiny"] if self.tiny else []))
        number, unit = re.search(r"^%d values in the rung, rule ray +([\d.]+) (\w+)" % count, text,
                                 re.M).groups()
        return float(number) * {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}[unit]


class Peer:
    def __init__(self, name, environments):
        self.name = name
        self.python = os.path.join(environments, name, "bin", "python")

    def do(self, work, count, folder):
        script = os.path.join(HERE, self.name + "_work.py")
        start = time.perf_counter()
        out = call([self.python, script, work, str(count), folder], cwd=folder,
                   env={**os.environ, "TMPDIR": "/tmp", "OMP_NUM_THREADS": "1"})
        seconds = time.perf_counter() - start
        if work in ("resume", "decision", "memory"):  # measured inside
            return float(out.splitlines()[-1].split()[0])
        return seconds


def text_of(work, count, value):
    if work == "memory":
        return "%.2f KiB a trial" % (value / 1024)
    if work in ("start_up", "resume", "decision"):
        for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6), ("ns", 1e-9)):
            if value >= size or unit == "ns":
                return "%.3g %s" % (value / size, unit)
    return "%.3g /s" % (count / value)


def measure(work, sides, runs, tiny, size=None):
    """Medians by side. Orders alternate."""
    found = {name: [] for name in sides}
    counts = {name: size if size else WORKS[work][1][name][tiny] for name in sides}
    for turn in range(runs):
        order = list(sides) if turn % 2 == 0 else list(reversed(sides))
        for name in order:
            folder = tempfile.mkdtemp(prefix="tune-peers-")
            try:
                if work == "resume":
                    sides[name].do("trials", counts[name], folder)
                value = sides[name].do(work, counts[name], folder)
                if work == "memory":
                    one = tempfile.mkdtemp(prefix="tune-peers-", dir=folder)
                    value = (value - sides[name].do(work, 1, one)) / (counts[name] - 1)
                found[name].append(value)
            finally:
                shutil.rmtree(folder, ignore_errors=True)
    for name in sides:
        values = sorted(found[name])
        print("%-34s %-8s %16s   (%s to %s, %d runs of %d)" % (
            WORKS[work][0], name, text_of(work, counts[name], statistics.median(values)),
            text_of(work, counts[name], values[0]), text_of(work, counts[name], values[-1]), runs,
            counts[name]), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tiny", action="store_true", help="moments, to see that it works")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--build", default=os.path.join(ROOT, "build"))
    parser.add_argument("--peers", default="ray,optuna")
    parser.add_argument("works", nargs="*", metavar="WORK", help=" ".join(WORKS))
    options = parser.parse_args()
    for work in options.works:
        if work not in WORKS:
            parser.error("there is no work '%s': there are %s" % (work, " ".join(WORKS)))
    peers = [name for name in options.peers.split(",") if name]
    environments = call(["bash", os.path.join(HERE, "setup.sh")] + peers).strip()
    sides = {"tune": Tune(os.path.abspath(options.build), options.tiny)}
    sides.update({name: Peer(name, environments) for name in peers})
    commit = call(["git", "-C", ROOT, "describe", "--always", "--dirty"]).strip()
    print("commit %s, %d cores, load %.1f" % (commit, os.cpu_count(), os.getloadavg()[0]), flush=True)
    for work in options.works or WORKS:
        if work == "decision":
            for size in sorted({s for name in sides for s in DECISION_SIZES[name][options.tiny]}):
                able = {name: side for name, side in sides.items()
                        if size in DECISION_SIZES[name][options.tiny]}
                print("with %d values in the rung:" % size)
                measure(work, able, options.runs, options.tiny, size)
            continue
        able = {name: side for name, side in sides.items() if name in WORKS[work][1]}
        measure(work, able, options.runs, options.tiny)


if __name__ == "__main__":
    main()
