"""For tests that open with another tool (TensorBoard, Optuna) what tune has written for it.

Where the tool is missing the test says so and ends with 77, which ctest shows as skipped. A Python
that has it may be named in TUNE_EXPORT_PYTHON.
"""
import argparse
import importlib
import json
import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
SKIPPED = 77
TRIAL = "2f1e0_{:05}"


def need(module, package):
    try:
        return importlib.import_module(module)
    except ImportError:
        other = os.environ.get("TUNE_EXPORT_PYTHON")
        if other and os.path.abspath(other) != os.path.abspath(sys.executable):
            os.execv(other, [other, *sys.argv])
        print(f"skipped: there is no {package}: pip install {package}, or name a Python in TUNE_EXPORT_PYTHON")
        sys.exit(SKIPPED)


def build_folder():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", type=pathlib.Path, required=True)
    return parser.parse_args().build


def tune(build, *words, ok=True):
    done = subprocess.run([build / "bin/tune", *map(str, words)], capture_output=True, text=True)
    assert not ok or done.returncode == 0, done.stderr
    return done


def make_experiment(folder, **options):
    words = [str(word) for name, value in options.items() for word in (f"--{name}", value)]
    maker = HERE.parent / "view/make_experiment.py"
    subprocess.run([sys.executable, maker, folder, *words], check=True)


def add_trial(folder, number, config, results, status="TERMINATED"):
    """A further trial of an experiment, with lines as the driver writes them."""
    trial = folder / TRIAL.format(number)
    trial.mkdir()
    (trial / "params.json").write_text(json.dumps(config) + "\n", encoding="utf-8")
    lines = []
    for iteration, result in enumerate(results, 1):
        own = {"training_iteration": iteration, "done": iteration == len(results),
               "time_total_s": 0.5 * iteration, "timestamp": 1_795_000_000 + iteration, "pid": 7}
        lines.append(json.dumps({**result, **own}, separators=(",", ":"), ensure_ascii=False) + "\n")
    if lines:
        (trial / "result.json").write_text("".join(lines), encoding="utf-8")
    with open(folder / "events.jsonl", "a", encoding="utf-8") as events:
        tell = {"time": 1_795_000_000.5, "trial": trial.name, "attempt": 1}
        events.write(json.dumps({"event": "attempt_started", **tell}, separators=(",", ":")) + "\n")
        if status in ("TERMINATED", "ERROR"):
            end = {"event": "trial_ended", **tell, "status": status}
            events.write(json.dumps(end, separators=(",", ":")) + "\n")
        elif status == "PAUSED":
            end = {"event": "attempt_ended", **tell, "outcome": "paused"}
            events.write(json.dumps(end, separators=(",", ":")) + "\n")


def results_of(folder):
    """Of every trial: its configuration, and its results as lists of (path, value)."""
    for trial in sorted(folder.glob("2f1e0_*")):
        config = json.loads((trial / "params.json").read_text(encoding="utf-8"))
        file = trial / "result.json"
        lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
        yield trial.name, config, [json.loads(line) for line in lines]


def numbers(result, prefix=""):
    for key, value in result.items():
        if isinstance(value, dict):
            yield from numbers(value, f"{prefix}{key}/")
        elif value is None or value in ("inf", "-inf") or isinstance(value, (bool, int, float)):
            yield prefix + key, float("nan") if value is None else float(value)
