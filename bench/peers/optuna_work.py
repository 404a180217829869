"""One of the works of bench/peers/run.py by Optuna, whose trials run in the program itself, with a
journal on disk. Prints "<number> <unit>" as its last line.

    python optuna_work.py WORK COUNT FOLDER
"""
import os
import resource
import sys
import time

import optuna
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend

optuna.logging.set_verbosity(optuna.logging.WARNING)


def study(folder, name, pruner=None):
    storage = JournalStorage(JournalFileBackend(os.path.join(folder, name + ".journal")))
    return optuna.create_study(study_name=name, storage=storage, direction="maximize", pruner=pruner,
                               sampler=optuna.samplers.RandomSampler(seed=1), load_if_exists=True)


def optimize(folder, name, trials, count, jobs=1):
    def objective(trial):
        trial.suggest_float("lr", 0, 1)
        for step in range(count):
            trial.report(step, step)
        return count

    found = study(folder, name)
    found.optimize(objective, n_trials=trials, n_jobs=jobs)
    assert len(found.trials) == trials


def start_up(count, folder):
    """One trial of one step; the time is taken around this program."""
    optimize(folder, "start_up", 1, 1)


def trials(count, folder):
    """That many trials of one step."""
    optimize(folder, "trials", count, 1)


def reports(count, folder):
    """That many reports of one trial."""
    optimize(folder, "reports", 1, count)


def reports8(count, folder):
    """That many reports of 8 trials at once: threads."""
    optimize(folder, "reports8", 8, count // 8, jobs=8)


def resume(count, folder):
    """What `trials` left in the folder is loaded."""
    start = time.perf_counter()
    assert len(study(folder, "trials").trials) == count
    print(time.perf_counter() - start, "s")


def decision(count, folder):
    """CPU time of a decision with that many values in the rung, everything in memory."""
    pruner = optuna.pruners.SuccessiveHalvingPruner(min_resource=1, reduction_factor=4)
    found = optuna.create_study(direction="maximize", pruner=pruner,
                                sampler=optuna.samplers.RandomSampler(seed=1))
    values = iter(optuna.samplers.RandomSampler(seed=2)._rng.rng.random(2 * count + 1000))
    found.add_trials([
        optuna.trial.create_trial(value=float(value), intermediate_values={1: float(value)},
                                  system_attrs={"completed_rung_0": float(value)})
        for value, _ in zip(values, range(count))])
    decisions = max(5, min(100, 20_000 // count))
    seconds = 0.0
    for _ in range(decisions):
        trial = found.ask()
        trial.report(float(next(values)), 1)
        start = time.process_time()
        trial.should_prune()
        seconds += time.process_time() - start
        found.tell(trial, state=optuna.trial.TrialState.PRUNED)
    print(seconds / decisions, "s")


def memory(count, folder):
    """The program's largest resident memory after that many trials of one step."""
    optimize(folder, "memory%d" % count, count, 1)
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024, "bytes")


if __name__ == "__main__":
    globals()[sys.argv[1]](int(sys.argv[2]), sys.argv[3])
