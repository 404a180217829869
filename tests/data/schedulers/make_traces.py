"""Writes the traces beside this file: what other tools' schedulers decide, event by event.

    python3 -m venv V && V/bin/pip install 'syne-tune==0.13.0' 'ray[tune]==2.60.0' 'pyarrow==17.0.0'
    V/bin/python make_traces.py

Values are drawn anew for every report, so that ranks change from rung to rung.
"""

import os
import random

HERE = os.path.dirname(os.path.abspath(__file__))


def write(name, lines):
    with open(os.path.join(HERE, name), "w") as out:
        out.write("\n".join(lines) + "\n")


def promotion(eta, max_t, mode, seed):
    """Syne Tune's promotion on four places, with the cut-off of the paper: the value at place
    floor(n / eta). Its own, numpy's quantile, lets floor((n - 1) / eta) + 1 go on."""
    from syne_tune.optimizer.schedulers import hyperband_stopping
    from syne_tune.optimizer.schedulers.hyperband_promotion import PromotionRungSystem

    def quantile(rung):
        places = len(rung.data) // eta
        return rung.data[places - 1].metric_val if places else None

    hyperband_stopping.Rung.quantile = quantile
    levels, level = [], 1
    while level < max_t:
        levels.append(level)
        level *= eta
    rungs = PromotionRungSystem(levels, [1 / eta] * len(levels), "m", mode, "t", max_t)
    draw = random.Random(seed)
    lines, running, at, trials = [], {}, {}, 0
    while True:
        while len(running) < 4:
            promoted = rungs.on_task_schedule(str(trials))
            if promoted:
                trial = int(promoted.pop("trial_id"))
                rungs.on_task_add(str(trial), 0, new_config=False, **promoted)
                running[trial] = promoted["milestone"]
            elif trials < 80:
                trial = trials
                trials += 1
                rungs.on_task_add(str(trial), 0)
                running[trial] = rungs.get_first_milestone(0)
            else:
                break
            lines.append(f"launch {trial} {running[trial]}")
        if not running:
            return lines
        trial = draw.choice(sorted(running))
        time = running.pop(trial)
        value = round(draw.random(), 9)
        at[trial] = time
        answer = rungs.on_task_report(str(trial), {"m": value, "t": time}, 0)
        assert not answer["task_continues"]
        rungs.on_task_remove(str(trial))
        lines.append(f"report {trial} {time} {value} {'stop' if time == max_t else 'pause'}")


def promotions():
    lines = []
    for eta, max_t, mode in [(2, 20, "max"), (3, 27, "min"), (4, 50, "max")]:
        lines.append(f"sweep {eta} {max_t} {mode}")
        lines += promotion(eta, max_t, mode, 10 * eta)
    write("syne_tune_promotion.txt", lines)


def stopping(eta, max_t, mode, seed):
    """Syne Tune's stopping on four places, each trial reporting every step, with the cut-off of rule
    top: the value at place max(floor(n / eta), 1) of the n that are there, the trial's own among
    them. Its own, numpy's quantile, lets floor((n - 1) / eta) + 1 go on."""
    from syne_tune.optimizer.schedulers import hyperband_stopping

    hyperband_stopping.Rung.quantile = (
        lambda rung: rung.data[max(len(rung.data) // eta, 1) - 1].metric_val)
    levels, level = [], 1
    while level < max_t:
        levels.append(level)
        level *= eta
    rungs = hyperband_stopping.StoppingRungSystem(
        levels, [1 / eta] * len(levels), "m", mode, "t", max_t)
    draw = random.Random(seed)
    lines, at, trials = [], {}, 0
    while True:
        while len(at) < 4 and trials < 50:
            rungs.on_task_add(str(trials), 0)
            lines.append(f"launch {trials} {rungs.get_first_milestone(0)}")
            at[trials] = 0
            trials += 1
        if not at:
            return lines
        trial = draw.choice(sorted(at))
        at[trial] += 1
        # Of few values, so that many are alike.
        value = round(draw.random(), 9 if mode == "max" else 1)
        answer = rungs.on_task_report(str(trial), {"m": value, "t": at[trial]}, 0)
        lines.append(f"report {trial} {at[trial]} {value} "
                     f"{'continue' if answer['task_continues'] else 'stop'}")
        if not answer["task_continues"]:
            rungs.on_task_remove(str(trial))
            del at[trial]


def stoppings():
    lines = []
    for eta, max_t, mode in [(2, 20, "max"), (3, 27, "min"), (4, 50, "max"), (2, 16, "min")]:
        lines.append(f"sweep {eta} {max_t} {mode}")
        lines += stopping(eta, max_t, mode, 10 * eta)
    write("syne_tune_stopping.txt", lines)


def curves(seed, trials, steps):
    """Values of trials that report in random order: (trial, step, value)."""
    draw = random.Random(seed)
    at = [0] * trials
    level = [draw.random() for _ in range(trials)]
    while live := [t for t in range(trials) if at[t] < steps]:
        trial = draw.choice(live)
        at[trial] += 1
        value = round(level[trial] + draw.random() * 0.6, 9)
        stopped = yield trial, at[trial], value
        if stopped:
            at[trial] = steps
        yield


def medians(name, decide, mode):
    lines = []
    source = curves(len(name), 40, 12)
    for trial, step, value in source:
        answer = "stop" if decide(trial, step, value) else "continue"
        source.send(answer == "stop")
        lines.append(f"report {trial} {step} {value} {answer}")
    write(name, lines)


def syne_tune_median():
    from types import SimpleNamespace

    from syne_tune.optimizer.scheduler import SchedulerDecision
    from syne_tune.optimizer.schedulers.median_stopping_rule import MedianStoppingRule

    class Continue:
        def on_trial_result(self, trial, result):
            return SchedulerDecision.CONTINUE

    rule = MedianStoppingRule.__new__(MedianStoppingRule)
    rule.scheduler, rule.metric, rule.resource_attr = Continue(), "m", "t"
    rule.rank_cutoff, rule.grace_time, rule.min_samples_required = 0.5, 1, 5
    rule.running_average, rule.mode = True, "min"
    from collections import defaultdict

    rule.sorted_results, rule.trial_to_results = defaultdict(list), defaultdict(list)

    def decide(trial, step, value):
        one = SimpleNamespace(trial_id=str(trial))
        answer = rule.on_trial_result(one, {"m": value, "t": step})
        return answer == SchedulerDecision.STOP

    medians("syne_tune_median.txt", decide, "min")


def ray_median():
    from ray.tune.schedulers import MedianStoppingRule, TrialScheduler

    class Trial:
        def __init__(self, number):
            self.trial_id = number

    rule = MedianStoppingRule("t", "m", "max", grace_period=2, min_samples_required=3)
    trials = [Trial(number) for number in range(40)]

    class Controller:
        def get_live_trials(self):
            return []

    def decide(trial, step, value):
        result = {"m": value, "t": step}
        return rule.on_trial_result(Controller(), trials[trial], result) == TrialScheduler.STOP

    medians("ray_median.txt", decide, "max")


def hyperbands():
    """Syne Tune's synchronous brackets on four places."""
    from syne_tune.optimizer.schedulers.synchronous import hyperband_bracket_manager as manager
    from syne_tune.optimizer.schedulers.synchronous import hyperband_rung_system as system

    lines = []
    for eta, max_t, mode, jobs in [(3, 27, "max", 160), (2, 20, "min", 260)]:
        lines.append(f"sweep {eta} {max_t} {mode}")
        rungs = system.SynchronousHyperbandRungSystem.geometric(1, max_t, eta)
        brackets = manager.SynchronousHyperbandBracketManager(rungs, mode)
        draw = random.Random(eta)
        running, trials = {}, 0
        while jobs or running:
            while jobs and len(running) < 4:
                jobs -= 1
                bracket, slot = brackets.next_job()
                if slot.trial_id is None:
                    slot.trial_id = trials
                    trials += 1
                running[slot.trial_id] = bracket, slot
                lines.append(f"launch {slot.trial_id} {slot.level}")
            trial = draw.choice(sorted(running))
            bracket, slot = running.pop(trial)
            slot.metric_val = round(draw.random(), 9)
            brackets.on_result((bracket, slot))
            answer = "stop" if slot.level == max_t else "pause"
            lines.append(f"report {trial} {slot.level} {slot.metric_val} {answer}")
    write("syne_tune_hyperband.txt", lines)


def population(name, sweeps, make):
    """Who is saved and who is replaced, by whom: trials report in random order, keep their own
    times, and end at 24. Of the donors that Ray's own draw may pick, those with a checkpoint."""
    from ray.tune.schedulers import pbt

    class Trial:
        def __init__(self, number):
            self.trial_id, self.experiment_tag, self.status = number, "", "RUNNING"
            self.config, self.finished = {"x": 0.5}, False

        def is_finished(self):
            return self.finished

    class Controller:
        search_alg = None

        def get_trials(self):
            return trials

        def _schedule_trial_save(self, trial, result):
            said.append("save")
            return "a checkpoint"

    lines = []
    for mode, quantile, burn_in in sweeps:
        lines.append(f"sweep {mode} {quantile} {burn_in}")
        rules = make(mode, quantile, burn_in)
        trials = [Trial(number) for number in range(10)]
        for trial in trials:
            rules._trial_state[trial] = pbt._PBTTrialState(trial)
        draw = random.Random(burn_in)
        said, at = [], [0] * len(trials)

        def choice(some):
            saved = [t for t in some if rules._trial_state[t].last_checkpoint]
            said.extend(["donors", len(saved), *[t.trial_id for t in saved]])
            return (saved or some)[0]

        def exploit(controller, trial, donor):
            said.insert(0, "replace")

        rules._exploit, pbt.random = exploit, type("random", (), {"choice": staticmethod(choice)})
        while live := [t for t in trials if not t.finished]:
            trial = draw.choice(live)
            at[trial.trial_id] += 1
            time, value = at[trial.trial_id], round(draw.random(), 9)
            said.clear()
            rules.on_trial_result(Controller(), trial, {"t": time, "m": value})
            answer = said[0] if said and said[0] in ("save", "replace") else "continue"
            donors = said[said.index("donors") + 1:] if answer == "replace" else []
            lines.append(" ".join(map(str, ["report", trial.trial_id, time, value, answer, *donors])))
            trial.finished = time == 24
    write(name, lines)


def ray_pbt():
    from ray.tune.schedulers.pbt import PopulationBasedTraining

    population("ray_pbt.txt", [("max", 0.25, 0), ("min", 0.5, 5)],
               lambda mode, quantile, burn_in: PopulationBasedTraining(
                   "t", "m", mode, 3, burn_in, {"x": [1]}, quantile_fraction=quantile))


def ray_pb2():
    """Without its model, which chooses values and nobody: GPy need not be there. It has no burn-in."""
    from ray.tune.schedulers import pb2

    pb2.import_pb2_dependencies = lambda: (True, True)
    population("ray_pb2.txt", [("min", 0.25, 0), ("max", 0.4, 0)],
               lambda mode, quantile, burn_in: pb2.PB2(
                   "t", "m", mode, 3, {"x": [0, 1]}, quantile_fraction=quantile))


def ray_explore():
    """Mutated configurations with the luck they came of, where ours is to be the same: within the
    bounds of the domain, and with whole numbers that change."""
    import json

    from ray.tune.schedulers import pbt
    from ray.tune.search.sample import Domain, loguniform, randint, uniform

    source, luck = random.Random(3), []

    def uniform_draw():
        luck.append(["uniform", round(source.random(), 6)])
        return luck[-1][1]

    def choice(some):
        luck.append(["index", source.randrange(len(some))])
        return some[luck[-1][1]]

    def sample(domain, spec):
        value = (source.randrange(domain.lower, domain.upper) if isinstance(domain.lower, int)
                 else round(source.uniform(domain.lower, domain.upper), 6))
        luck.append(["draw", value])
        return value

    Domain.sample = type(uniform(0, 1)).sample = type(randint(0, 1)).sample = sample
    pbt.random = type("random", (), {"random": staticmethod(uniform_draw),
                                     "choice": staticmethod(choice)})
    mutations = {"lr": loguniform(1e-4, 1.0), "dropout": uniform(0.0, 0.9),
                 "batch": randint(8, 4096), "act": ["relu", "tanh", "gelu"],
                 "model": {"layers": [1, 2, 4, 8]}}
    lines = []
    while len(lines) < 120:
        config = {"lr": round(10 ** source.uniform(-4, 0), 6), "seed": 7,
                  "dropout": round(source.uniform(0, 0.9), 6),
                  "batch": source.randrange(8, 4096),
                  "act": source.choice(["relu", "tanh", "gelu", "elu"]),
                  "model": {"layers": source.choice([1, 2, 4, 8]), "width": 64}}
        luck.clear()
        new, _ = pbt._explore(config, mutations, 0.25, (1.2, 0.8), None)
        fits = new["lr"] <= 1 and new["lr"] >= 1e-4 and new["dropout"] <= 0.9
        if fits and 8 <= new["batch"] < 4096 and new["batch"] != config["batch"]:
            lines.append(json.dumps({"config": config, "luck": luck, "new": new}))
    write("ray_explore.txt", lines)


def syne_tune_fronts():
    """The order of its moasha: fronts one after the other, each as an epsilon net that begins with
    the best by the first objective; lower is better. Of syne-tune 0.16.0. Ours differs in that each
    objective is measured by its range in the front, which is done here before the net is asked.
    (Its nondominated_sort takes the ranks of the net for an order, so that is put right here.)"""
    import json

    import numpy
    from syne_tune.optimizer.schedulers.multiobjective import non_dominated_priority as syne_tune

    draw = random.Random(5)
    lines = []
    for goals, count in [(2, 12), (2, 40), (3, 25), (3, 60), (4, 30)]:
        values = [[round(draw.random(), 6) for _ in range(goals)] for _ in range(count)]
        points, left, order = numpy.array(values), numpy.arange(count), []
        while left.size:
            is_front = syne_tune.pareto_efficient(points[left])
            front = points[left][is_front]
            widths = front.max(axis=0) - front.min(axis=0)
            ranks = syne_tune.compute_epsilon_net(front / numpy.where(widths > 0, widths, 1), dim=0)
            order += left[is_front][numpy.argsort(ranks)].tolist()
            left = left[~is_front]
        lines.append(json.dumps({"values": values, "order": order}))
    write("syne_tune_fronts.txt", lines)


if __name__ == "__main__":
    promotions()
    stoppings()
    syne_tune_fronts()
    syne_tune_median()
    ray_median()
    hyperbands()
    ray_pbt()
    ray_pb2()
    ray_explore()
