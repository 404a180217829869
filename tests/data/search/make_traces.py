"""Writes the files beside this one: what Optuna's TPE and the package cmaes compute, for the tests
of tune/search to compute again.

    python3 -m venv V && V/bin/pip install 'optuna==5.0.0' 'cmaes==0.13.1' 'scipy==1.17.1'
    V/bin/python make_traces.py

Coordinates are of the unit interval, and densities are with respect to them.
"""

import math
import os

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))


def write(name, lines):
    with open(os.path.join(HERE, name), "w") as out:
        out.write("\n".join(lines) + "\n")


def words(*values):
    return " ".join(repr(float(v)) if not isinstance(v, str) else v for v in values)


# ---- Densities ----------------------------------------------------------------------------------

def stable_argsort():
    """Which of equal numbers comes first is not defined otherwise."""
    plain = np.argsort
    np.argsort = lambda a, **options: plain(a, kind="stable")


def distributions():
    """uniform(-3, 5), loguniform(1e-5, 1), randint(2, 12), lograndint(1, 64), a choice of four.

    The logarithms of whole numbers that tune draws lie in [log v, log(v + 1)). Optuna's lie in
    [log(v - .5), log(v + .5)]: these are the same cells, half a number further.
    """
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    cells = IntDistribution(1, 63, log=True)
    cells.low, cells.high = 1.5, 63.5
    return {
        "x": FloatDistribution(-3, 5),
        "lr": FloatDistribution(1e-5, 1, log=True),
        "n": IntDistribution(2, 11),
        "width": cells,
        "kind": CategoricalDistribution(["a", "b", "c", "d"]),
    }


def drawn(random, near):
    def unit():
        return min(max(near + 0.1 * random.standard_normal(), 0), 1) if near else random.random()

    return {
        "x": -3 + 8 * unit(),
        "lr": max(math.exp(math.log(1e-5) * (1 - unit())), 1e-5),
        "n": min(2 + int(10 * unit()), 11),
        "width": min(int(math.exp(math.log(64) * unit())), 63),
        "kind": int(random.integers(4)),
    }


def values(config):
    return words(config["x"], config["lr"], config["n"], config["width"], config["kind"])


def columns(configs, kernels):
    """As arrays. The kernel of a cell is in its middle, a point in it is half a number further."""
    found = {key: np.array([config[key] for config in configs], dtype=float) for key in distributions()}
    width = found["width"]
    found["width"] = np.sqrt(width * (width + 1)) if kernels else width + 0.5
    return found


def densities():
    from optuna.samplers import TPESampler

    stable_argsort()
    parameters = TPESampler()._parzen_estimator_parameters
    from optuna.samplers._tpe.parzen_estimator import _ParzenEstimator

    random = np.random.default_rng(13)
    lines = []
    for count, near in [(0, 0), (1, 0), (2, 0.9), (12, 0), (30, 0.2), (130, 0.5), (150, 0)]:
        trials = [drawn(random, near) for _ in range(count)]
        points = [drawn(random, 0) for _ in range(6)] + [drawn(random, near) for _ in range(6)]
        estimator = _ParzenEstimator(columns(trials, True), distributions(), parameters)
        mixture = estimator._mixture_distribution
        lines.append(f"estimator {count}")
        lines += [f"trial {values(trial)}" for trial in trials]
        lines.append("weights " + words(*mixture.weights))
        for key, made in zip(("x", "lr", "n", "width"), mixture.distributions):
            bounds = {"x": (-3, 5), "lr": (math.log(1e-5), 0), "n": (1.5, 11.5), "width": (0, math.log(64))}
            low, high = bounds[key]
            lines.append(f"places {key} " + words(*((made.mu - low) / (high - low))))
            lines.append(f"widths {key} " + words(*(made.sigma / (high - low))))
        ranges = math.log(8) + math.log(-math.log(1e-5))
        for point, value in zip(points, estimator.log_pdf(columns(points, False))):
            lines.append(f"at {values(point)} {words(value + ranges)}")
    return lines


def splits():
    import optuna
    from optuna.samplers._tpe.sampler import _split_trials, default_gamma
    from optuna.trial import TrialState, create_trial

    random = np.random.default_rng(14)
    lines = []
    for count, share in [(4, 0.5), (25, 0.0), (60, 0.7), (60, 0.97), (400, 0.4)]:
        study = optuna.create_study()
        lines.append(f"split {count}")
        for number in range(count):
            kind = "running" if random.random() < 0.1 else "pruned" if random.random() < share else "completed"
            step, value = int(random.integers(1, 9)), round(float(random.random()), 2)
            if kind == "completed":
                study.add_trial(create_trial(value=value))
            elif kind == "pruned":
                study.add_trial(create_trial(state=TrialState.PRUNED, value=value, intermediate_values={step: value}))
            else:
                study.add_trial(create_trial(state=TrialState.RUNNING))
            lines.append(f"trial {kind} {step} {value}")
        trials = study.get_trials(deepcopy=False)
        ended = sum(trial.state != TrialState.RUNNING for trial in trials)
        good, _ = _split_trials(study, trials, default_gamma(ended))
        lines.append("good " + " ".join(str(trial.number) for trial in good))
    return lines


# ---- CMA-ES -------------------------------------------------------------------------------------

def state(optimizer):
    lines = []
    if optimizer._use_gaussian:
        lines += [
            "mean " + words(*optimizer._mean),
            "step_size " + words(optimizer._sigma),
            "covariance " + words(*optimizer._C.ravel()),
            "scales " + words(*optimizer._A),
            "path_step " + words(*optimizer._p_sigma),
            "path " + words(*optimizer._pc),
        ]
    if optimizer._use_continuous:
        lines.append("ranges " + words(*optimizer._iqhist_values))
    if optimizer._use_integer:
        lines.append("mutation_rates " + words(*optimizer._pmut))
        lines.append("mutated " + words(*optimizer._int_succ))
    if optimizer._use_categorical:
        for chances, count in zip(optimizer._q, optimizer._K):
            lines.append("chances " + words(*chances[:count]))
        lines.append("stride " + words(optimizer._delta))
        lines.append("caution " + words(optimizer._Delta))
        lines.append("certainty " + words(optimizer._gamma))
        lines.append("direction " + words(*optimizer._s))
    return lines


def generations(name, continuous, cells, categories, best, count, seed):
    """`best` is where the numbers are best, near a bound or not. Cells are odd in number: the middle of
    the space, where it begins, is in one of them, not between two."""
    from cmaes import CatCMAwM

    middles = [[(i + 0.5) / cell for i in range(cell)] for cell in cells]
    optimizer = CatCMAwM(
        x_space=[[0, 1]] * continuous or None,
        z_space=middles or None,
        c_space=categories or None,
        seed=seed,
    )
    lines = [f"space {name} {optimizer.population_size}"] + state(optimizer)
    for generation in range(count):
        solutions = []
        for i in range(optimizer.population_size):
            solution = optimizer.ask()
            numbers = [] if solution.x is None else list(solution.x)
            numbers += [] if solution.z is None else list(solution.z)
            taken = [] if solution.c is None else [int(np.argmax(row)) for row in solution.c]
            loss = sum((number - best) ** 2 for number in numbers) + 0.1 * sum(option != 1 for option in taken)
            if generation == 2 and i == 1:
                loss = float("inf")
            raw = [] if solution._v_raw is None else list(solution._v_raw)
            lines.append(f"sample {words(loss, *raw)} {' '.join(str(option) for option in taken)}".rstrip())
            solutions.append((solution, loss))
        optimizer.tell(solutions)
        lines += ["generation"] + state(optimizer)
    return lines


if __name__ == "__main__":
    write("optuna_densities.txt", densities())
    write("optuna_splits.txt", splits())
    write(
        "cmaes_generations.txt",
        generations("continuous", 3, [], [], 0.95, 12, 1)
        + generations("mixed", 2, [5, 5], [3, 2], 0.1, 12, 2)
        + generations("categories", 0, [], [3, 4], 0, 8, 3)
        + generations("cells", 0, [7, 7, 7], [], 0.3, 12, 4),
    )
