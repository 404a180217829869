#!/usr/bin/env python3
"""A real `mlflow server` takes `tune export --mlflow`: runs, params, every value of every metric,
artifacts and a version of a model; a second export and one that was killed halfway make nothing
twice. Needs `mlflow`."""
import contextlib
import json
import math
import os
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request

import tools

NOT_CURVES = {"training_iteration", "done", "timestamp", "pid", "time_since_restore", "iterations_since_restore"}


def main():
    tools.need("mlflow", "mlflow")
    build = tools.build_folder()
    with tempfile.TemporaryDirectory(prefix="tune-test-") as temporary:
        folder = pathlib.Path(temporary) / "s"
        tools.make_experiment(folder, trials=12, reports=9)
        config = {"lr": 0.1, "momentum": 0.5, "optimiser": "adam", "width": 9}
        tools.add_trial(folder, 300, config, [{"accuracy": None, "a 'b'": 1, "Größe": 2}, {"accuracy": "inf"}])
        tools.add_trial(folder, 301, config, [], "ERROR")
        tools.add_trial(folder, 302, config, [{"accuracy": 2.0, **{f"k{i}": i for i in range(2000)}}])
        (folder / "2f1e0_00302/results").mkdir()
        (folder / "2f1e0_00302/results/a model.bin").write_bytes(b"weights" * 1000)
        with served(pathlib.Path(temporary) / "server") as address:
            os.environ["MLFLOW_TRACKING_URI"] = address
            killed_halfway(build, folder)
            tools.tune(build, "export", "--mlflow", "--register", "best", folder)
            check(folder)
            tools.tune(build, "export", "--mlflow", "--register", "best", folder)
            check(folder)


def killed_halfway(build, folder):
    export = subprocess.Popen([build / "bin/tune", "export", "--mlflow", folder], stderr=subprocess.DEVNULL)
    time.sleep(1.0)
    export.send_signal(signal.SIGKILL)
    export.wait()


@contextlib.contextmanager
def served(folder):
    folder.mkdir()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = [sys.executable, "-m", "mlflow", "server", "--host", "127.0.0.1", "--port", str(port), "--workers", "1",
             "--backend-store-uri", f"sqlite:///{folder}/mlflow.db", "--artifacts-destination", str(folder / "artifacts")]
    with open(folder / "log", "w") as log:
        server = subprocess.Popen(words, stdout=log, stderr=log, start_new_session=True)
    try:
        address = f"http://127.0.0.1:{port}"
        wait_for(address, server, folder / "log")
        yield address
    finally:
        os.killpg(server.pid, signal.SIGKILL)
        server.wait()


def wait_for(address, server, log):
    end = time.monotonic() + 120
    while time.monotonic() < end and server.poll() is None:
        with contextlib.suppress(OSError):
            with urllib.request.urlopen(f"{address}/health", timeout=5):
                return
        time.sleep(0.2)
    raise AssertionError(f"the server does not start: {log.read_text()}")


def check(folder):
    import mlflow
    client = mlflow.MlflowClient()
    experiment = client.get_experiment_by_name("s")
    runs = {run.info.run_name: run for run in all_runs(client, experiment.experiment_id)}
    count = len(all_runs(client, experiment.experiment_id))
    trials = [trial for trial in tools.results_of(folder) if begun(folder, trial[0])]
    assert count == len(runs) == len(trials) + 1, (count, sorted(runs))
    parent = runs.pop("s")
    assert parent.info.status == "FINISHED", parent.info
    values = 0
    for name, config, results in trials:
        values += check_trial(client, runs[name], parent.info.run_id, config, results)
    best = runs["2f1e0_00302"]
    assert parent.data.tags["tune.best_trial"] == "2f1e0_00302", parent.data.tags
    assert [item.path for item in client.list_artifacts(best.info.run_id, "results")] == ["results/a model.bin"]
    assert runs["2f1e0_00301"].info.status == "FAILED"
    versions = client.search_model_versions("name='best'")
    assert [version.run_id for version in versions] == [best.info.run_id], versions
    print(f"{len(trials)} trials with {values} values are equal")


def all_runs(client, experiment):
    runs, page = [], None
    while True:
        found = client.search_runs([experiment], max_results=100, page_token=page)
        runs += found
        page = found.token
        if not page:
            return runs


def begun(folder, name):
    return any(json.loads(line).get("trial") == name and json.loads(line)["event"] == "attempt_started"
               for line in (folder / "events.jsonl").read_text().splitlines())


def check_trial(client, run, parent, config, results):
    assert run.data.tags["mlflow.parentRunId"] == parent
    for key, value in config.items():
        if not isinstance(value, dict):
            told = run.data.params[key]
            assert (told if isinstance(value, str) else json.loads(told)) == value, (key, told)
    expected = {}
    for step, result in enumerate(results, 1):
        for path, value in tools.numbers(result):
            if path not in NOT_CURVES:
                expected.setdefault(path, []).append((step, value, int(result["timestamp"]) * 1000))
    values = 0
    odd = [key for key in expected if key == "a 'b'"]
    for path, points in expected.items():
        if path in odd or (path.startswith("k") and not path.endswith("00")):
            continue
        seen = [(point.step, point.value, point.timestamp) for point in client.get_metric_history(run.info.run_id, path)]
        seen.sort()
        assert len(seen) == len(points), (path, seen, points)
        for (step, value, at), (its_step, its_value, its_at) in zip(points, seen):
            # MLflow keeps infinity as the largest number.
            same = value == its_value or (math.isnan(value) and math.isnan(its_value)) or \
                (math.isinf(value) and abs(its_value) > 1e308)
            assert step == its_step and same and abs(at - its_at) < 1000, (path, seen)
            values += 1
    assert len(run.data.metrics) == len(expected), (len(run.data.metrics), len(expected))
    return values


if __name__ == "__main__":
    main()
