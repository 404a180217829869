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


if __name__ == "__main__":
    promotions()
    syne_tune_median()
    ray_median()
    hyperbands()
