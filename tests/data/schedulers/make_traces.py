"""Writes the traces beside this file: what other tools' schedulers decide, event by event.

    python3 -m venv V && V/bin/pip install 'syne-tune==0.13.0' 'ray[tune]==2.60.0'
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


if __name__ == "__main__":
    promotions()
