#!/usr/bin/env python3
"""TensorBoard opens `tune export --tensorboard`: EventAccumulator's values, and the table of
HParams over HTTP, also of a TensorBoard that runs while a metric appears. Needs `tensorboard`."""
import contextlib
import json
import math
import os
import pathlib
import re
import struct
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

import tools

NOT_CURVES = {"training_iteration", "done", "timestamp", "pid", "time_since_restore", "iterations_since_restore"}
ODD = 'a "b"\n<i>ü'  # a slash would make it two keys


def as_float(value):
    try:
        return struct.unpack("<f", struct.pack("<f", value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)


def same(a, b):
    return a == b or (math.isnan(a) and math.isnan(b))


def check_values(folder, runs):
    from tensorboard.backend.event_processing import event_accumulator
    count = 0
    for name, _, results in tools.results_of(folder):
        accumulator = event_accumulator.EventAccumulator(str(runs / name), size_guidance={"scalars": 0})
        accumulator.Reload()
        found = {tag: accumulator.Scalars(tag) for tag in accumulator.Tags()["scalars"]}
        expected = {}
        for step, result in enumerate(results, 1):
            for path, value in tools.numbers(result):
                if path not in NOT_CURVES:
                    expected.setdefault(path, []).append((step, as_float(value), result["timestamp"]))
        assert found.keys() == expected.keys(), (name, found.keys() ^ expected.keys())
        for tag, points in expected.items():
            assert len(points) == len(found[tag]), (name, tag)
            for (step, value, at), seen in zip(points, found[tag]):
                assert seen.step == step and same(seen.value, value) and seen.wall_time == at, (name, tag, seen)
                count += 1
    return count


@contextlib.contextmanager
def served(logdir, *more):
    command = [sys.executable, "-m", "tensorboard.main", "--logdir", str(logdir), "--port", "0", "--host", "127.0.0.1",
               "--reload_interval", "1", *more]
    server = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    try:
        said = ""
        address = None
        for line in server.stderr:
            said += line
            if found := re.search(r"http://\S+?:\d+/", line):
                address = found[0].rstrip("/")
                break
        assert address, said
        threading.Thread(target=server.stderr.read, daemon=True).start()
        yield address
    finally:
        server.terminate()
        server.wait()


def hparams(address):
    columns = post(address, "experiment", {"experimentName": "", "includeMetrics": True})
    metrics = columns.get("metricInfos", [])
    request = {"experimentName": "", "startIndex": 0, "sliceSize": 10000, "aggregationType": "AGGREGATION_AVG",
               "allowedStatuses": ["STATUS_UNKNOWN", "STATUS_SUCCESS", "STATUS_FAILURE", "STATUS_RUNNING"],
               "colParams": [{"metric": metric["name"], "includeInResult": True} for metric in metrics] +
                            [{"hparam": info["name"], "includeInResult": True} for info in columns.get("hparamInfos", [])]}
    groups = post(address, "session_groups", request).get("sessionGroups", [])
    return columns, {group["name"]: group for group in groups}


def post(address, what, request):
    call = urllib.request.Request(f"{address}/data/plugin/hparams/{what}", json.dumps(request).encode(),
                                  {"Content-Type": "application/json"})
    with urllib.request.urlopen(call, timeout=60) as answer:
        return json.load(answer)


def eventually(what, tell):
    end = time.monotonic() + 60
    while time.monotonic() < end:
        try:
            if what():
                return
        except (KeyError, urllib.error.HTTPError):
            pass
        time.sleep(0.25)
    raise AssertionError(tell())


def check_table(address, folder):
    trials = list(tools.results_of(folder))
    eventually(lambda: len(hparams(address)[1]) == len(trials), lambda: hparams(address)[1].keys())
    columns, rows = hparams(address)
    names = {info["name"] for info in columns["hparamInfos"]}
    metrics = {info["name"]["tag"] for info in columns["metricInfos"]}
    assert columns["metricInfos"][0]["name"]["tag"] == "accuracy"
    assert {"accuracy", ODD, "late"} <= metrics, metrics
    for name, config, results in trials:
        row = rows[name]
        shown = {key: value for key, value in config.items() if value is not None}
        assert row.get("hparams", {}) == shown, (row, shown)
        assert shown.keys() <= names
        values = {value["name"]["tag"]: value["value"] for value in row.get("metricValues", [])}
        for tag in ("accuracy", "late"):
            points = [(step, result[tag]) for step, result in enumerate(results, 1) if tag in result]
            if points and isinstance(points[-1][1], float):
                assert math.isclose(values[tag], points[-1][1], rel_tol=1e-6), (name, tag, values)
    status = {name: row["sessions"][0].get("status", "STATUS_UNKNOWN") for name, row in rows.items()}
    assert status[tools.TRIAL.format(100)] == "STATUS_SUCCESS"
    assert status[tools.TRIAL.format(101)] == "STATUS_FAILURE"
    assert status[tools.TRIAL.format(102)] == "STATUS_UNKNOWN"


def main():
    tools.need("tensorboard", "tensorboard")
    build = tools.build_folder()
    with tempfile.TemporaryDirectory(prefix="tune-test-") as temporary:
        folder = pathlib.Path(temporary) / "s"
        tools.make_experiment(folder, trials=20, reports=9)
        odd = {"accuracy": 0.5, ODD: 1e300, "deep": {"er": -3}, "flag": True, "no": None, "up": "inf", "word": "x"}
        config = {"lr": 0.1, "momentum": 0.5, "optimiser": "adam", "width": 9}
        tools.add_trial(folder, 100, config, [odd, {"accuracy": 0.75}, {"accuracy": 0.8, ODD: 2}])
        tools.add_trial(folder, 101, config, [], "ERROR")
        tools.add_trial(folder, 102, config, [{"accuracy": 0.25}], "RUNNING")
        runs = folder / "tensorboard"
        tools.tune(build, "export", "--tensorboard", folder)
        print(f"{check_values(folder, runs)} values are equal as floats")

        with served(runs) as address:
            eventually(lambda: len(hparams(address)[1]) == 23, lambda: hparams(address))
            metrics = {info["name"]["tag"] for info in hparams(address)[0]["metricInfos"]}
            assert "late" not in metrics
            # As a logger does when a metric appears: the columns go, TensorBoard gathers them from
            # the trials, and they come back with all names.
            tools.add_trial(folder, 103, config, [{"accuracy": 0.5, "late": 7.5}])
            (runs / "events.out.tfevents.0000000000.tune").unlink()
            eventually(lambda: "." not in urllib_runs(address), lambda: urllib_runs(address))
            tools.tune(build, "export", "--tensorboard", folder)
            eventually(lambda: "late" in {info["name"]["tag"] for info in hparams(address)[0]["metricInfos"]},
                       lambda: hparams(address)[0])
            check_table(address, folder)
        check_values(folder, runs)
        with served(runs, "--load_fast=false") as address:
            check_table(address, folder)
    print("TensorBoard shows the table of all trials")


def urllib_runs(address):
    with urllib.request.urlopen(f"{address}/data/runs", timeout=60) as answer:
        return json.load(answer)


if __name__ == "__main__":
    main()
