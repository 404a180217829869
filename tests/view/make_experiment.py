#!/usr/bin/env python3
"""Makes an experiment's folder as a sweep leaves it: for tests, pictures and measurements of the page.

make_experiment.py FOLDER [--trials 100] [--reports 27] [--parameters 4] [--state finished] [--seed 1]
A sweep of ASHA on two nodes of four GPUs; accuracy depends on lr, momentum and width. The same
arguments make the same files.
"""
import argparse
import bisect
import json
import math
import pathlib
import random

BEGIN = 1_795_000_000.0
PREFIX = "2f1e0_"


# The rest of a sweep's specification, beside the part that a test looks at.
REST = {"version": 2, "name_given": True, "plugin": "", "sweep": "", "sweep_hash": "", "plugin_hash": "", "store_prefix": "",
        "stop": {}, "resources_per_trial": {"gpu": 1.0, "memory": 0, "ranks": 1}, "storage": "results",
        "checkpoint": {"frequency": 0, "at_end": True, "keep": 1}, "max_failures": 0, "max_concurrent_trials": 0,
        "time_budget_s": 0.0, "max_trial_time_s": 0.0, "hang_timeout_s": 0.0, "points_to_evaluate": [], "store": "",
        "reporter": {"metrics": [], "parameters": [], "max_rows": 20, "every_s": 0.0}, "raise_on_failed_trial": True,
        "fail_fast": False, "if_exists": "refuse", "quiet": True, "store_unsafe": False, "wait_gpus": False,
        "group_timeout_s": 60.0, "gpu_visibility": "trial", "alone_timeout_s": 600.0, "store_patience_s": 300.0,
        "save_grace_s": 30.0, "where": [], "warm_start": [], "listen": "", "lease_s": 60.0, "patience_s": 1800.0,
        "objectives": [], "constraints": [], "loggers": []}


def space(parameters):
    config = {"lr": {"loguniform": [1e-4, 1.0]}, "momentum": {"uniform": [0.1, 0.99]},
              "optimiser": {"choice": ["sgd", "adam", "rmsprop"]}, "width": {"randint": [8, 512]}}
    for i in range(4, parameters):
        config[f"x{i}"] = {"uniform": [0, 1]}
    return dict(list(config.items())[:parameters])


def draw(rng, config):
    drawn = {}
    for name, domain in config.items():
        (kind, bounds), = domain.items()
        if kind == "loguniform":
            drawn[name] = math.exp(rng.uniform(*map(math.log, bounds)))
        elif kind == "uniform":
            drawn[name] = rng.uniform(*bounds)
        elif kind == "randint":
            drawn[name] = rng.randrange(*bounds)
        else:
            drawn[name] = rng.choice(bounds)
    return drawn


def quality(config):
    score = -0.25 * (math.log10(config.get("lr", 0.01)) + 1.7) ** 2
    score -= 1.2 * (config.get("momentum", 0.9) - 0.85) ** 2
    score += {"sgd": 0.0, "adam": 0.15, "rmsprop": -0.1}[config.get("optimiser", "sgd")]
    score += 0.2 * math.log10(config.get("width", 64) / 8)
    return 0.35 + 0.6 / (1 + math.exp(-2.2 * (score + 0.2)))


class Rung:
    """ASHA's cut-off: the best third of the values so far goes on."""

    def __init__(self):
        self.values = []

    def stops(self, value):
        cut_off = None
        if self.values:
            cut_off = self.values[min(len(self.values) - 1, math.ceil(len(self.values) * 2 / 3))]
        bisect.insort(self.values, value)
        return cut_off is not None and value < cut_off, cut_off


def write(path, text):
    path.write_text(text, encoding="utf-8")


def usage(rng, begin, seconds, gpu):
    """Every two seconds: a worker that loads data while its GPU computes."""
    return "".join(json.dumps({
        "time": round(begin + at, 3), "attempt": 1, "cpus": round(rng.uniform(1.2, 1.9), 2),
        "memory_bytes": int((1.2 + 0.6 * (1 - math.exp(-at / 9))) * 2 ** 30),
        "gpus": [{"gpu": gpu, "busy": round(rng.uniform(0.7, 0.98), 2), "memory_bytes": 9 << 30}]}, separators=(",", ":"))
        + "\n" for at in range(2, int(seconds) + 1, 2))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--trials", type=int, default=100)
    parser.add_argument("--reports", type=int, default=27)
    parser.add_argument("--parameters", type=int, default=4)
    parser.add_argument("--state", default="finished")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--metric", default="accuracy")
    options = parser.parse_args()
    rng = random.Random(options.seed)
    config = space(options.parameters)
    folder = options.folder
    folder.mkdir(parents=True)
    write(folder / "experiment.json", json.dumps({
        **REST, "name": folder.name, "trainable": "Digits", "config": config,
        "num_samples": options.trials, "metric": options.metric, "mode": "max", "seed": options.seed,
        "scheduler": {"asha": {"max_t": options.reports, "grace_period": 1, "reduction_factor": 3, "brackets": 1,
                               "time_attr": "training_iteration", "stop_last_trials": True, "rule": "ray",
                               "min_rung_size": 1, "type": "stop"}},
        "searcher": {"basic_variant": {}}}, indent=1))
    write(folder / "run.json", json.dumps({"state": options.state, "driver_pid": 1, "hostname": "node-a",
                                           "store": "", "prefix": ""}))
    milestones = [3 ** k for k in range(12) if 3 ** k < options.reports]
    rungs = {milestone: Rung() for milestone in milestones}
    events = []
    slots = [[BEGIN + 1, f"node-{'ab'[slot // 4]}", slot % 4] for slot in range(8)]

    def event(time, kind, **fields):
        events.append((time, len(events), {"time": round(time, 3), "event": kind, **fields}))

    event(BEGIN, "driver_started", epoch=1)
    for node in "ab":
        event(BEGIN + 0.5, "node_joined", node=f"node-{node}", ip=f"10.0.0.{ord(node) - 96}", cpus=16.0, gpus=4,
              memory_bytes=64 << 30)
    for number in range(options.trials):
        trial = f"{PREFIX}{number:05d}"
        drawn = draw(rng, config)
        best, speed, pace = quality(drawn), rng.uniform(0.15, 0.5), rng.lognormvariate(0, 0.3)
        slot = min(slots, key=lambda one: one[0])
        time = slot[0] + rng.expovariate(20)
        event(time, "attempt_started", trial=trial, attempt=1, node=slot[1], pid=1000 + number, gpus=[slot[2]],
              after_iteration=0)
        fails = rng.random() < 0.01
        lines, total, reason = [], 0.0, None
        for iteration in range(1, options.reports + 1):
            total += pace
            value = best * (1 - math.exp(-speed * iteration)) + rng.gauss(0, 0.004)
            lines.append(json.dumps({
                options.metric: value, "loss": -math.log(max(1e-3, value)) + rng.gauss(0, 0.01),
                "training_iteration": iteration, "done": False, "trial_id": trial,
                "experiment_tag": str(number), "time_this_iter_s": pace, "time_total_s": total,
                "time_since_restore": total, "iterations_since_restore": iteration,
                "timestamp": int(time + total), "date": "2026-11-22_12-00-00", "hostname": slot[1],
                "node_ip": "10.0.0.1", "pid": 1000 + number}, separators=(",", ":")))
            if fails and iteration == 2:
                break
            if iteration in rungs:
                rung = rungs[iteration]
                stops, cut_off = rung.stops(value)
                event(time + total, "rung", trial=trial, attempt=1, iteration=iteration, milestone=float(iteration),
                      value=value, **({} if cut_off is None else {"cut_off": cut_off}),
                      rank=len(rung.values) - bisect.bisect_right(rung.values, value) + 1, of=len(rung.values),
                      verdict="stop" if stops else "go_on")
                if stops:
                    count = len(rungs[iteration].values) - 1
                    reason = (f"{value:.6g} is worse than the cut-off {cut_off:.6g} of {count} value"
                              f"{'' if count == 1 else 's'} at iteration {iteration}")
                    event(time + total, "verdict", trial=trial, attempt=1, iteration=iteration, verdict="stop",
                          reason=reason)
                    break
        lines[-1] = lines[-1].replace('"done":false', f'"done":{"false" if fails else "true"}')
        end, iterations = time + total, len(lines)
        slot[0] = end
        outcome = "exception" if fails else "stopped" if reason else "completed"
        event(end, "attempt_ended", trial=trial, attempt=1, outcome=outcome, iteration=iterations)
        if fails:
            event(end, "failure", trial=trial, attempt=1, outcome="exception", rank=0, code=1,
                  cause="the loss is nan: <b>stop</b> & \"look\"", failures=1, retried=False)
        event(end, "trial_ended", trial=trial, attempt=1, status="ERROR" if fails else "TERMINATED",
              iteration=iterations)
        directory = folder / trial
        directory.mkdir()
        write(directory / "params.json", json.dumps(drawn) + "\n")
        write(directory / "result.json", "\n".join(lines) + "\n")
        if number < 200:
            write(directory / "stdout", "".join(f"epoch {i}: {json.loads(line)[options.metric]:.4f}\n"
                                                for i, line in enumerate(lines, 1)))
            write(directory / "stderr", "")
            write(directory / "usage.jsonl", usage(rng, time, total, slot[2]))
            if iterations == options.reports:
                (directory / f"checkpoint_{iterations:06d}").mkdir()
            if fails:
                write(directory / "error.txt", "--- attempt 1 in ERROR: the loss is nan\n")
    last = max(slot[0] for slot in slots)
    if options.state == "finished":
        event(last, "experiment_ended", how="finished")
    events.sort(key=lambda one: one[:2])
    with open(folder / "events.jsonl", "w", encoding="utf-8") as out:
        for _, _, fields in events:
            out.write(json.dumps(fields, separators=(",", ":")) + "\n")


main()
