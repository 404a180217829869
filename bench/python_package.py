"""What the Python package promises, measured; beside Ray Tune where its environment is there.

    python3 bench/python_package.py [--tiny] [--runs 5] [--build build] [WORK]...

Works: import, trials, launch, reports. `launch` imports torch, where this Python has it, and `trials`
numpy. The environment of Ray is that of bench/peers/setup.sh; `--ray ""` leaves it out.
"""

import argparse
import mmap
import os
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PEERS = Path(os.environ.get("TUNE_CACHE_DIR", Path.home() / ".cache/tune")) / "peers"


# ---- The works, each in a process of its own -----------------------------------------------------


def load(module):
    """Whether it is there."""
    try:
        __import__(module)
        return True
    except ImportError:
        return False


def work_import(count):
    start = time.perf_counter()
    import tune  # noqa: F401

    return 1e3 * (time.perf_counter() - start)


def work_trials(count):
    """Trials a second, each one report in a process of its own."""
    import tune

    load("numpy")
    start = time.perf_counter()
    analysis = tune.run(
        lambda config: tune.report(x=config["lr"]), {"lr": tune.uniform(0, 1)}, num_samples=count,
        metric="x", mode="max", searcher=tune.random_search(), quiet=True,  # as Ray Tune's; a model's proposals cost more
    )
    seconds = time.perf_counter() - start
    assert len(analysis.trials) == count
    return count / seconds


class Timed:
    """The first line of its step, and when its process was asked for."""

    asked = mmap.mmap(-1, 8)  # shared with the zygote

    def setup(self, config):
        pass

    def step(self):
        now = time.monotonic()
        time.sleep(0.1)  # a trial is not an empty step
        return {"begun": now, "ms": 1e3 * (now - struct.unpack("d", Timed.asked[:])[0]), "done": True}


def work_launch(count):
    """Milliseconds from the request for a worker, as the zygote hears it, to the first line of step."""
    import tune
    from tune import _zygote

    load("torch")
    handle = _zygote._Zygote._handle

    def timed_handle(zygote, *request):
        Timed.asked[:] = struct.pack("d", time.monotonic())
        handle(zygote, *request)

    _zygote._Zygote._handle = timed_handle
    analysis = tune.run(
        Timed, {"lr": tune.uniform(0, 1)}, num_samples=count, metric="begun", mode="max", cpus=1,
        quiet=True, max_trial_time_s=60,
    )
    return statistics.median(trial.last_result["ms"] for trial in analysis.trials)


def work_reports(count):
    """Reports a second of one trial."""
    import tune

    def train(config):
        start = time.perf_counter()
        for step in range(count - 1):
            tune.report({"x": step})
        tune.report({"x": count, "seconds": time.perf_counter() - start})

    start = time.perf_counter()
    analysis = tune.run(train, metric="x", mode="max", quiet=True)
    seconds = time.perf_counter() - start
    assert analysis.best_result["training_iteration"] == count
    return count / seconds


WORKS = {  # count, tiny count, unit, Ray's work and its count
    "import": (1, 1, "ms", None, 0),
    "trials": (1000, 8, "/s", "trials", 20),
    "launch": (100, 4, "ms", "trials", 5),
    "reports": (200_000, 500, "/s", "reports", 2000),
}


# ---- Measuring -----------------------------------------------------------------------------------


def environment(build):
    environ = dict(os.environ, PYTHONPATH=str(ROOT / "trainables/python"))
    # As an installed package is: compiled once.
    environ.pop("PYTHONDONTWRITEBYTECODE", None)
    environ["PYTHONPYCACHEPREFIX"] = os.path.join(tempfile.gettempdir(), f"tune-bench-{os.getuid()}")
    environ.setdefault("TUNE_PROGRAM", str(Path(build).resolve() / "bin/tune"))
    return environ


def measure(work, count, build):
    with tempfile.TemporaryDirectory(prefix="tune-bench-") as folder:
        done = subprocess.run(
            [sys.executable, __file__, "--work", work, "--count", str(count)], cwd=folder,
            env=environment(build), capture_output=True, text=True,
        )
    if done.returncode != 0:
        raise SystemExit(f"{work}: {done.stderr}")
    return float(done.stdout.split()[-1])


def ray_seconds(python, work, count):
    """The whole program's time."""
    with tempfile.TemporaryDirectory(prefix="tune-bench-") as folder:
        start = time.perf_counter()
        subprocess.run(
            [python, str(ROOT / "bench/peers/ray_work.py"), work, str(count), folder],
            capture_output=True, check=True,
        )
        return time.perf_counter() - start


def beside_ray(python, work):
    """Ray's figure, without its start: a run of one is taken off."""
    _, _, unit, ray_work, count = WORKS[work]
    if ray_work is None:
        return ""
    seconds = ray_seconds(python, ray_work, count) - ray_seconds(python, ray_work, 1)
    each = seconds / (count - 1)
    return f"   Ray Tune {1e3 * each:.1f} ms each" if unit == "ms" else f"   Ray Tune {1 / each:.2f} /s"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("works", nargs="*", metavar="WORK")
    parser.add_argument("--tiny", action="store_true", help="in moments, as a test")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--build", default=str(ROOT / "build"))
    parser.add_argument("--ray", default=str(PEERS / "ray/bin/python"), help="a Python with Ray Tune")
    parser.add_argument("--work", help=argparse.SUPPRESS)
    parser.add_argument("--count", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.work:
        print(globals()["work_" + arguments.work](arguments.count))
        return
    for work in arguments.works or WORKS:
        count, tiny, unit, _, _ = WORKS[work]
        runs = 1 if arguments.tiny else arguments.runs
        if work == "import":
            measure(work, 1, arguments.build)  # compiles it
        values = [measure(work, tiny if arguments.tiny else count, arguments.build) for _ in range(runs)]
        ray = ""
        if not arguments.tiny and arguments.ray and os.access(arguments.ray, os.X_OK):
            ray = beside_ray(arguments.ray, work)
        print(
            f"{work:8} {statistics.median(values):10.1f} {unit:3} "
            f"({min(values):.1f} to {max(values):.1f}){ray}", flush=True,
        )


if __name__ == "__main__":
    main()
