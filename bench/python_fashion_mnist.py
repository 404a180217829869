"""Fashion-MNIST, 16 configurations, ASHA: the same Python under tune and under Ray Tune, whole programs.

    python3 bench/python_fashion_mnist.py [--tiny] [--runs 3] [--build build] [--only tune|ray]

The network, its steps and its data are those of examples/fashion_mnist.cc; one CPU a trial, as many trials at a
time as there are cores. Both sides run by the Python of bench/peers' Ray Tune, beside which bench/peers' torch is;
exits with 77 where there is no torch or no data (dataset-fashion-mnist).
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


LOADED = []


def data():
    """Images and labels, to learn and to judge. What was loaded before a fork is there after it."""
    if not LOADED:
        LOADED.extend(load())
    return LOADED


def load():
    import numpy
    import torch

    def read(name, offset):
        with gzip.open(DATA / name) as file:
            return torch.from_numpy(numpy.frombuffer(file.read(), numpy.uint8, offset=offset).copy())

    return (
        read("train-images-idx3-ubyte.gz", 16).view(-1, 1, 28, 28), read("train-labels-idx1-ubyte.gz", 8).long(),
        read("t10k-images-idx3-ubyte.gz", 16).view(-1, 1, 28, 28)[:TEST],
        read("t10k-labels-idx1-ubyte.gz", 8).long()[:TEST],
    )


def configuration(index):
    draw = random.Random(index)
    return {
        "lr": 10 ** draw.uniform(-3, 0), "momentum": draw.uniform(0.1, 0.9), "batch_size": draw.choice([32, 64, 128])
    }


def train(config, report, steps, step_size):
    import torch
    from torch import nn

    torch.set_num_threads(1)
    torch.manual_seed(config["index"])
    chosen = configuration(config["index"])
    images, labels, test_images, test_labels = data()
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
    import tune

    data()
    analysis = tune.run(
        lambda config: train(config, tune.report, steps, step_size), {"index": tune.grid_search(range(trials))},
        metric="mean_accuracy", mode="max", scheduler=tune.asha(max_t=steps, grace_period=1, reduction_factor=3),
        quiet=True,
    )
    return analysis.best_result["mean_accuracy"]


def work_ray(trials, steps, step_size):
    """Each trial loads the data: were it loaded here, all of it would be pickled for each."""
    import ray
    from ray import tune
    from ray.tune.schedulers import ASHAScheduler

    ray.init(num_cpus=os.cpu_count(), include_dashboard=False, log_to_driver=False)
    results = tune.Tuner(
        tune.with_resources(lambda config: train(config, tune.report, steps, step_size), {"cpu": 1}),
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
    """A Python with Ray, if there is one, and the folder of torch."""
    pythons = [*map(str, PEERS.glob("ray*/bin/python")), sys.executable]
    python = next(one for one in pythons if os.access(one, os.X_OK))
    torch = next(map(str, PEERS.glob("torch/lib/python3*/site-packages")), "")
    return python, torch


def environment(build, torch):
    environ = dict(os.environ, OMP_NUM_THREADS="1", RAY_AIR_NEW_OUTPUT="0")
    environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT / "trainables/python"), torch]))
    environ.setdefault("TUNE_PROGRAM", str(Path(build).resolve() / "bin/tune"))
    return environ


def measure(work, python, environ, size):
    """Seconds of the whole program, and the accuracy it found."""
    with tempfile.TemporaryDirectory(prefix="tune-bench-") as folder:
        start = time.perf_counter()
        done = subprocess.run(
            [python, __file__, "--work", work, "--size", *map(str, size)], cwd=folder, env=environ,
            capture_output=True, text=True,
        )
        seconds = time.perf_counter() - start
    if done.returncode != 0:
        raise SystemExit(f"{work}: {done.stderr[-3000:]}")
    return seconds, float(done.stdout.split()[-1])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--tiny", action="store_true", help="in moments, without Ray Tune")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--build", default=str(ROOT / "build"))
    parser.add_argument("--only", choices=["tune", "ray"])
    parser.add_argument("--work", help=argparse.SUPPRESS)
    parser.add_argument("--size", type=int, nargs=3, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.work:
        print(globals()["work_" + arguments.work](*arguments.size))
        return
    python, torch = find_python()
    environ = environment(arguments.build, torch)
    has_torch = subprocess.run([python, "-c", "import torch, numpy"], env=environ, capture_output=True)
    if has_torch.returncode != 0 or not DATA.is_dir():
        print("skipped: there is no torch with numpy, or no Fashion-MNIST")
        sys.exit(77)
    works = ["tune"] if arguments.tiny else [arguments.only] if arguments.only else ["tune", "ray"]
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
