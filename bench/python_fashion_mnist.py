"""Fashion-MNIST, 16 configurations, ASHA: the same Python under tune and under Ray Tune, whole programs.

    bash bench/peers/setup.sh ray_torch
    python3 bench/python_fashion_mnist.py [--tiny] [--runs 3] [--build build] [--only tune|ray]

The network, its steps and its data are those of examples/fashion_mnist.cc; one CPU a trial, as many trials at a
time as there are cores. Both sides run by one Python, which has Ray Tune and torch: the set-up's. `--tiny` is a
test, of tune's side unless `--only ray` is said, by that Python or this one. Exits with 77 where there is no torch or
no data (dataset-fashion-mnist).
"""

import argparse
import gzip
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PEERS = Path(os.environ.get("TUNE_CACHE_DIR", Path.home() / ".cache/tune")) / "peers"
DATA = Path(os.environ.get("TUNE_FASHION_MNIST_DIR", "/usr/share/datasets/fashion-mnist"))
STEP, TEST = 4096, 5000  # images that a step learns, and that it is judged on


# ---- The training, the same for both -------------------------------------------------------------


def load():
    """Images and labels, to learn and to be judged on."""
    import numpy

    def read(name, offset):
        with gzip.open(DATA / name) as file:
            return numpy.frombuffer(file.read(), numpy.uint8, offset=offset).copy()

    return (
        read("train-images-idx3-ubyte.gz", 16).reshape(-1, 1, 28, 28), read("train-labels-idx1-ubyte.gz", 8),
        read("t10k-images-idx3-ubyte.gz", 16).reshape(-1, 1, 28, 28)[:TEST],
        read("t10k-labels-idx1-ubyte.gz", 8)[:TEST],
    )


def configuration(index):
    draw = random.Random(index)
    return {
        "lr": 10 ** draw.uniform(-3, 0), "momentum": draw.uniform(0.1, 0.9), "batch_size": draw.choice([32, 64, 128])
    }


def train(config, arrays, report, steps, step_size):
    import torch
    from torch import nn

    torch.set_num_threads(1)
    torch.manual_seed(config["index"])
    chosen = configuration(config["index"])
    images, labels, test_images, test_labels = map(torch.from_numpy, arrays)
    labels, test_labels = labels.long(), test_labels.long()
    model = nn.Sequential(
        nn.Conv2d(1, 10, 5), nn.MaxPool2d(2), nn.ReLU(), nn.Conv2d(10, 20, 5), nn.Dropout2d(), nn.MaxPool2d(2),
        nn.ReLU(), nn.Flatten(), nn.Linear(320, 50), nn.ReLU(), nn.Dropout(), nn.Linear(50, 10), nn.LogSoftmax(1),
    )
    optimiser = torch.optim.SGD(model.parameters(), lr=chosen["lr"], momentum=chosen["momentum"])
    order = torch.randperm(len(images))
    at = 0
    for _ in range(steps):
        model.train()
        end = at + step_size
        while at < end:
            batch = order[at % len(images):][:chosen["batch_size"]]
            at += len(batch)
            optimiser.zero_grad()
            nn.functional.nll_loss(model(images[batch].float() / 255), labels[batch]).backward()
            optimiser.step()
        model.eval()
        with torch.no_grad():
            right = sum(
                int((model(i.float() / 255).argmax(1) == l).sum())
                for i, l in zip(test_images.split(500), test_labels.split(500))
            )
        report({"mean_accuracy": right / len(test_labels)})


# ---- The two programs ----------------------------------------------------------------------------


def work_tune(trials, steps, step_size):
    import torch  # noqa: F401: once for all trials
    import tune

    arrays = load()
    analysis = tune.run(
        lambda config: train(config, arrays, tune.report, steps, step_size),
        {"index": tune.grid_search(range(trials))},
        metric="mean_accuracy", mode="max", scheduler=tune.asha(max_t=steps, grace_period=1, reduction_factor=3),
        quiet=True,
    )
    return analysis.best_result["mean_accuracy"]


def work_ray(trials, steps, step_size):
    """With the data in Ray's object store, as it wants large data to be shared."""
    import ray
    from ray import tune
    from ray.tune.schedulers import ASHAScheduler

    ray.init(num_cpus=os.cpu_count(), include_dashboard=False, log_to_driver=False)
    function = tune.with_parameters(
        lambda config, arrays: train(config, arrays, tune.report, steps, step_size), arrays=load()
    )
    results = tune.Tuner(
        tune.with_resources(function, {"cpu": 1}),
        param_space={"index": tune.grid_search(list(range(trials)))},
        tune_config=tune.TuneConfig(
            metric="mean_accuracy", mode="max",
            scheduler=ASHAScheduler(max_t=steps, grace_period=1, reduction_factor=3),
        ),
        run_config=tune.RunConfig(storage_path=os.getcwd(), verbose=0),
    ).fit()
    assert not results.errors, results.errors
    return results.get_best_result().metrics["mean_accuracy"]


# ---- Measuring -----------------------------------------------------------------------------------


def find_python():
    """A Python with torch and numpy, and whether it has Ray Tune as well; None: there is none."""
    for python in [str(PEERS / "ray_torch/bin/python"), sys.executable]:
        if not os.access(python, os.X_OK):
            continue
        code = "import numpy, torch, importlib.util as u; print(u.find_spec('ray') is not None)"
        asked = subprocess.run([python, "-c", code], capture_output=True, text=True)
        if asked.returncode == 0:
            return python, asked.stdout.split()[-1] == "True"
    return None, False


def environment(build):
    environ = dict(os.environ, OMP_NUM_THREADS="1", RAY_USAGE_STATS_ENABLED="0", PYTHONWARNINGS="ignore")
    environ["PYTHONPATH"] = str(ROOT / "trainables/python")
    environ.setdefault("TUNE_PROGRAM", str(Path(build).resolve() / "bin/tune"))
    return environ


def measure(work, python, environ, size):
    """Seconds of the whole program, and the accuracy it found."""
    with tempfile.TemporaryDirectory(prefix="tune-bench-") as folder:
        start = time.perf_counter()
        done = subprocess.run(
            [python, __file__, "--work", work, "--size", *map(str, size)], cwd=folder, env=environ,
            capture_output=True, text=True, timeout=1800,
        )
        seconds = time.perf_counter() - start
    if done.returncode != 0:
        raise SystemExit(f"{work} failed:\n{done.stdout[-1000:]}\n{done.stderr[-3000:]}")
    return seconds, float(done.stdout.split()[-1])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--tiny", action="store_true", help="in moments, as a test")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--build", default=str(ROOT / "build"))
    parser.add_argument("--only", choices=["tune", "ray"])
    parser.add_argument("--work", help=argparse.SUPPRESS)
    parser.add_argument("--size", type=int, nargs=3, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.work:
        print(globals()["work_" + arguments.work](*arguments.size))
        return
    python, has_ray = find_python()
    if python is None or not DATA.is_dir():
        print("skipped: there is no torch with numpy, or no Fashion-MNIST")
        sys.exit(77)
    works = [arguments.only] if arguments.only else ["tune"] if arguments.tiny else ["tune", "ray"]
    if "ray" in works and not has_ray:
        raise SystemExit(f"{python} has no Ray Tune: bash bench/peers/setup.sh ray_torch")
    environ = environment(arguments.build)
    size = (2, 2, 256) if arguments.tiny else (16, 9, STEP)
    found = {work: [] for work in works}
    for turn in range(1 if arguments.tiny else arguments.runs):
        for work in works if turn % 2 == 0 else reversed(works):
            found[work].append(measure(work, python, environ, size))
            print(f"{work}: {found[work][-1][0]:.1f} s, accuracy {found[work][-1][1]:.3f}", flush=True)
    medians = {work: statistics.median(seconds for seconds, _ in found[work]) for work in works}
    if len(medians) == 2:
        print(f"tune {medians['tune']:.1f} s, Ray Tune {medians['ray']:.1f} s: {medians['tune'] / medians['ray']:.2f}")


if __name__ == "__main__":
    main()
