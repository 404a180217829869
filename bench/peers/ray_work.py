"""One of the works of bench/peers/run.py by Ray Tune. Prints "<number> <unit>" as its last line.

    python ray_work.py WORK COUNT FOLDER
"""
import os
import random
import resource
import sys
import time

os.environ["RAY_AIR_NEW_OUTPUT"] = "0"
os.environ["RAY_DEDUP_LOGS"] = "0"
os.environ["TUNE_DISABLE_AUTO_CALLBACK_LOGGERS"] = "0"  # its CSV and JSON, as ours


def steps(config):
    from ray import tune
    for step in range(config["steps"]):
        tune.report({"x": step})


def fit(folder, name, trials, count, slots=None):
    import ray
    from ray import tune
    ray.init(num_cpus=slots or os.cpu_count(), include_dashboard=False, log_to_driver=False)
    results = tune.Tuner(
        steps,
        param_space={"steps": count, "lr": tune.uniform(0, 1)},
        tune_config=tune.TuneConfig(num_samples=trials, metric="x", mode="max"),
        run_config=tune.RunConfig(name=name, storage_path=folder, verbose=0)).fit()
    assert len(results) == trials and not results.errors, results.errors


def start_up(count, folder):
    """One trial of one step; the time is taken around this program."""
    fit(folder, "start_up", 1, 1)


def trials(count, folder):
    """That many trials of one step."""
    fit(folder, "trials", count, 1)


def reports(count, folder):
    """That many reports of one trial."""
    fit(folder, "reports", 1, count)


def reports8(count, folder):
    """That many reports of 8 trials at once."""
    fit(folder, "reports8", 8, count // 8, slots=8)


def resume(count, folder):
    """What `trials` left in the folder is restored."""
    import ray
    from ray import tune
    ray.init(include_dashboard=False, log_to_driver=False)
    start = time.perf_counter()
    results = tune.Tuner.restore(os.path.join(folder, "trials"), trainable=steps).fit()
    assert len(results) == count
    print(time.perf_counter() - start, "s")


def decision(count, folder):
    """CPU time of a decision with that many values in the rung."""
    from ray.tune.schedulers import AsyncHyperBandScheduler

    class Trial:
        def __init__(self, number):
            self.trial_id = str(number)

    draw = random.Random(1)
    scheduler = AsyncHyperBandScheduler(metric="x", mode="max")
    bracket = scheduler._brackets[0]
    lowest = bracket._rungs[-1][1]
    for number in range(count):
        lowest[str(number)] = draw.random()
    decisions = max(5, min(1000, 200_000 // count))
    trials = [Trial(count + i) for i in range(decisions)]
    for trial in trials:
        scheduler._trial_info[trial.trial_id] = bracket
    start = time.process_time()
    for trial in trials:
        scheduler.on_trial_result(None, trial, {"training_iteration": 1, "x": draw.random()})
    print((time.process_time() - start) / decisions, "s")


def memory(count, folder):
    """The driver's largest resident memory after that many trials of one step."""
    fit(folder, "memory%d" % count, count, 1)
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024, "bytes")


if __name__ == "__main__":
    globals()[sys.argv[1]](int(sys.argv[2]), sys.argv[3])
