#!/usr/bin/env python3
"""Optuna opens `tune export --optuna`: every trial with its state, values, parameters and
distributions; so does optuna-dashboard, where it is. Needs `optuna`."""
import importlib.util
import json
import math
import pathlib
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request

import tools


def main():
    optuna = tools.need("optuna", "optuna")
    from optuna.storages import JournalStorage
    from optuna.storages.journal import JournalFileBackend
    build = tools.build_folder()
    with tempfile.TemporaryDirectory(prefix="tune-test-") as temporary:
        folder = pathlib.Path(temporary) / "s"
        tools.make_experiment(folder, trials=200, reports=9)
        conditional(folder)
        config = {"lr": 0.1, "momentum": 0.5, "optimiser": "adam", "width": 9}
        plain = {"kind": "plain"}
        tools.add_trial(folder, 300, {**config, "model": {"kind": "deep", "layers": 3}}, [{"accuracy": 0.5}])
        tools.add_trial(folder, 301, {**config, "model": plain}, [], "ERROR")
        tools.add_trial(folder, 302, {**config, "model": plain}, [{"accuracy": 0.25}], "PAUSED")
        tools.add_trial(folder, 303, {**config, "model": plain, "lr": 5.0}, [{"accuracy": None}])
        file = pathlib.Path(temporary) / "study.journal"
        tools.tune(build, "export", "--optuna", file, folder)
        study = optuna.load_study(study_name=None, storage=JournalStorage(JournalFileBackend(str(file))))
        check(optuna, study, folder)
        # A copy checks each trial as if it were added by hand.
        copied = optuna.create_study(direction="maximize")
        copied.add_trials([trial for trial in study.trials if trial.state.is_finished()])
        assert copied.best_value == study.best_value
        in_dashboard(study, file)
        several(optuna, build, folder, pathlib.Path(temporary) / "several.journal")
        print(f"{len(study.trials)} trials are equal, the best is {study.best_value}")


def in_dashboard(study, file):
    """optuna-dashboard opens the file, and has every trial with its values and parameters."""
    if importlib.util.find_spec("optuna_dashboard") is None:
        print("there is no optuna-dashboard: only Optuna itself has opened the file")
        return
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = "from optuna_dashboard._cli import main; main()"
    server = subprocess.Popen([sys.executable, "-c", words, str(file), "--port", str(port)], stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL)
    try:
        told, = asked(port, "studies", server)["study_summaries"]
        assert told["study_name"] == study.study_name, told
        trials = asked(port, f"studies/{told['study_id']}", server)["trials"]
    finally:
        server.kill()
        server.wait()
    assert len(trials) == len(study.trials)
    for theirs, ours in zip(trials, study.trials):
        assert theirs["state"] == ours.state.name.capitalize(), theirs
        assert theirs.get("values") == ours.values, theirs
        assert {one["name"]: one["param_external_value"] for one in theirs["params"]} == {name: str(value) for name, value in ours.params.items()}
        points = {one["step"]: math.nan if one["value"] == "nan" else one["value"] for one in theirs["intermediate_values"]}
        assert str(points) == str(dict(sorted(ours.intermediate_values.items()))), theirs


def asked(port, what, server):
    end = time.monotonic() + 120
    while True:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/{what}", timeout=30) as answer:
                return json.load(answer)
        except OSError:
            assert time.monotonic() < end and server.poll() is None, "optuna-dashboard does not answer"
            time.sleep(0.2)


def conditional(folder):
    """Adds a choice of maps to the space."""
    spec = json.loads((folder / "experiment.json").read_text())
    spec["config"]["model"] = {"choice": [{"kind": "plain"}, {"kind": "deep", "layers": {"randint": [1, 9]}}]}
    (folder / "experiment.json").write_text(json.dumps(spec))


def several(optuna, build, folder, file):
    """The same experiment with two objectives."""
    from optuna.storages import JournalStorage
    from optuna.storages.journal import JournalFileBackend
    spec = json.loads((folder / "experiment.json").read_text())
    del spec["metric"], spec["mode"]
    spec["objectives"] = [{"metric": "accuracy"}, {"metric": "loss", "mode": "min"}]
    (folder / "experiment.json").write_text(json.dumps(spec))
    tools.tune(build, "export", "--optuna", file, folder)
    study = optuna.load_study(study_name=None, storage=JournalStorage(JournalFileBackend(str(file))))
    assert study.directions == [optuna.study.StudyDirection.MAXIMIZE, optuna.study.StudyDirection.MINIMIZE]
    assert study.metric_names == ["accuracy", "loss"]
    complete = [trial for trial in study.trials if trial.state == optuna.trial.TrialState.COMPLETE]
    last = {name: results[-1] for name, _, results in tools.results_of(folder) if results}
    assert complete and study.best_trials
    for trial in complete:
        result = last[trial.user_attrs["trial_id"]]
        assert trial.values == [result["accuracy"], result["loss"]], trial
    copied = optuna.create_study(directions=["maximize", "minimize"])
    copied.add_trials([trial for trial in study.trials if trial.state.is_finished()])
    assert len(copied.best_trials) == len(study.best_trials)


def check(optuna, study, folder):
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
    from optuna.trial import TrialState
    trials = list(tools.results_of(folder))
    outcomes, statuses = {}, {}
    for line in (folder / "events.jsonl").read_text().splitlines():
        event = json.loads(line)
        if event["event"] == "attempt_ended":
            outcomes[event["trial"]] = event["outcome"]
        if event["event"] == "trial_ended":
            statuses[event["trial"]] = event["status"]
    assert len(study.trials) == len(trials)
    assert study.directions == [optuna.study.StudyDirection.MAXIMIZE]
    assert study.metric_names == ["accuracy"]
    distributions = {"lr": FloatDistribution(1e-4, 1.0, log=True), "momentum": FloatDistribution(0.1, 0.99),
                     "optimiser": CategoricalDistribution(["sgd", "adam", "rmsprop"]), "width": IntDistribution(8, 511),
                     "model/layers": IntDistribution(1, 8)}
    best = -math.inf
    for number, ((name, config, results), trial) in enumerate(zip(trials, study.trials)):
        assert trial.number == number and trial.user_attrs["trial_id"] == name
        values = [result["accuracy"] for result in results]
        same = [math.nan if value is None else value for value in values]
        seen = [trial.intermediate_values[step] for step in range(1, len(values) + 1)]
        assert str(seen) == str(same), (name, seen, same)
        last = values[-1] if values else None
        if statuses.get(name) == "ERROR" or (statuses.get(name) == "TERMINATED" and last is None):
            expected = TrialState.FAIL
        elif statuses.get(name) == "TERMINATED":
            expected = TrialState.PRUNED if outcomes.get(name) == "stopped" else TrialState.COMPLETE
        else:
            expected = TrialState.RUNNING
        assert trial.state == expected, (name, trial.state, expected)
        if expected in (TrialState.COMPLETE, TrialState.PRUNED):
            assert trial.value == last
            assert trial.datetime_complete >= trial.datetime_start
        if expected == TrialState.COMPLETE:
            best = max(best, last)
        for key in ("lr", "momentum", "optimiser", "width"):
            if key == "lr" and config[key] > 1:
                assert key not in trial.params and trial.user_attrs["config/lr"] == config[key]
                continue
            assert trial.params[key] == config[key] and type(trial.params[key]) is type(config[key]), (name, key)
            assert trial.distributions[key] == distributions[key], trial.distributions[key]
        layers = config.get("model", {}).get("layers")
        assert trial.params.get("model/layers") == layers
        if layers is not None:
            assert trial.distributions["model/layers"] == distributions["model/layers"]
    assert study.best_value == best


if __name__ == "__main__":
    main()
