#!/usr/bin/env python3
"""Benchmarks of two builds in turns: prints medians, and the median of their ratios.

    python3 bench/beside.py OLD NEW BENCHMARK [--turns N] [--usual-priority] [ARGUMENT...]
    python3 bench/beside.py OLD NEW instructions

OLD and NEW are build folders. A turn runs bin/bench_BENCHMARK of both with --runs 1, in an order that
is turned round from turn to turn: what else the machine does meets both. A ratio is that of one turn, NEW
by OLD: for times and memory below 1 is better, for rates above 1. Rows that only one of the two prints
are named.

They run at real-time priority where that is allowed, unless --usual-priority is given. At real-time
priority a process that computes keeps its core for up to 100 ms, so that more processes than cores take
turns otherwise than they do for users.

`instructions` counts, with valgrind's callgrind, what the processes of `tune run` that are forks of it
(driver and agent) execute in user mode for 20,000 reports of one trial and for their start and end: other
work on the machine changes neither by more than some percent.
"""
import argparse
import glob
import os
import re
import statistics
import subprocess
import sys
import tempfile

ROW = re.compile(r"^(\S.*?)\s{2,}([0-9][0-9,.]*)(?:\s(\S+))?")
REPORTS = 20_000


def priority(usual):
    """Words before a command."""
    if usual:
        return []
    allowed = subprocess.run(["chrt", "-r", "1", "true"], stderr=subprocess.DEVNULL).returncode == 0
    return ["chrt", "-r", "1"] if allowed else []


def figures(build, options):
    """By row: its figure and unit."""
    program = os.path.join(build, "bin", "bench_" + options.benchmark)
    command = [*priority(options.usual_priority), program, "--runs", "1", *options.arguments]
    done = subprocess.run(command, text=True, capture_output=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    rows = filter(None, map(ROW.match, done.stdout.splitlines()))
    return {row[1]: (float(row[2].replace(",", "")), row[3] or "") for row in rows}


def print_ratios(name, unit, old, new):
    ratios = [b / a for a, b in zip(old, new) if a]
    shown = "-"
    if ratios:
        shown = f"{statistics.median(ratios):.3f} ({min(ratios):.2f} to {max(ratios):.2f})"
    print(f"{name:<60} {statistics.median(old):>12,.3f} {statistics.median(new):>12,.3f} {unit:<5} {shown}",
          flush=True)


def compare(options):
    turns = []
    for turn in range(options.turns):
        order = [options.old, options.new][::1 if turn % 2 == 0 else -1]
        found = [figures(build, options) for build in order]
        turns.append(found if turn % 2 == 0 else found[::-1])
    rows = {row: unit for old, new in turns for found in (old, new) for row, (_, unit) in found.items()}
    both = [row for row in rows if all(row in old and row in new for old, new in turns)]
    print(f"{'bench_' + options.benchmark:<60} {'old':>12} {'new':>12} {'':<5} ratio of {len(turns)} turns")
    for row in both:
        print_ratios(row, rows[row], [old[row][0] for old, _ in turns], [new[row][0] for _, new in turns])
    alone = [row for row in rows if row not in both]
    if alone:
        print("not in both: " + ", ".join(alone))


def instructions(build, reports):
    """What each process of tune run executed, most first."""
    plugins = glob.glob(os.path.join(build, "**", "libtune_synthetic.so"), recursive=True)
    if not plugins:
        sys.exit(f"{build} has no libtune_synthetic.so: build the target tune_synthetic")
    with tempfile.TemporaryDirectory() as folder:
        sweep = os.path.join(folder, "sweep.yaml")
        with open(sweep, "w") as out:
            out.write(f"plugin: {os.path.realpath(plugins[0])}\ntrainable: empty_steps\n"
                      f"config: {{steps: {reports}}}\nnum_samples: 1\nmetric: x\nmode: max\nseed: 1\n"
                      f"stop: {{training_iteration: {reports}}}\ncpus: 1\n")
        subprocess.run(["valgrind", "--tool=callgrind", f"--callgrind-out-file={folder}/out.%p",
                        os.path.join(build, "bin", "tune"), "run", sweep, "--quiet", "--name", "s",
                        "--storage", os.path.join(folder, "results")],
                       check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        counts = []
        for path in glob.glob(folder + "/out.*"):
            with open(path) as file:
                counts += [int(line.split()[1]) for line in file if line.startswith("summary:")]
    return sorted(counts, reverse=True)


def compare_instructions(options):
    print(f"{'millions of instructions':<60} {'old':>12} {'new':>12}       ratio")
    for name, reports in ((f"{REPORTS:,} reports, driver and agent", REPORTS), ("one report", 1)):
        old, new = (instructions(build, reports) for build in (options.old, options.new))
        print_ratios(name, "", [sum(old) / 1e6], [sum(new) / 1e6])
        print_ratios("  the driver", "", [old[0] / 1e6], [new[0] / 1e6])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old")
    parser.add_argument("new")
    parser.add_argument("--turns", type=int, default=15)
    parser.add_argument("--usual-priority", action="store_true")
    parser.add_argument("benchmark")
    options, options.arguments = parser.parse_known_args()
    if options.turns < 1:
        parser.error("--turns: at least 1")
    if options.benchmark == "instructions":
        compare_instructions(options)
    else:
        compare(options)


if __name__ == "__main__":
    main()
