"""What regret is measured by, for each task: the optimum that a local search finds, the median of
random configurations fully trained, and the median time of such a training.

    python references.py SERVER FOLDER METRIC,METRIC... < {"names": [...]}

The draws are numpy's: 3,000 configurations with seed 7, then twelve rounds of 800 around the best 20
of the round before, in steps that shrink. tune's own search (tune/simulate) is alike with another
generator; how far it gets depends on the draws, by up to a tenth of what lies between median and
optimum, so that all are measured by this one.
"""
import json
import sys

import numpy

from tasks import Server

DRAWN, ROUNDS, PARENTS, CHILDREN, FIRST_STEP, SHRINKING, REDRAWN = 3000, 12, 20, 40, .12, .75, .15


def reference(task):
    if task.trials < float("inf"):
        return task.reference()
    r = numpy.random.default_rng(7)
    width = len(task.parameters)
    is_choice = numpy.array([p.kind == "choice" for p in task.parameters])

    def ends(units):
        found = numpy.array(task.ends([task.config_at(u) for u in units]), dtype=float)
        return task.sign * found[:, 0], found[:, 1]

    units = r.random((DRAWN, width))
    scores, seconds = ends(units)
    median, best = numpy.median(scores), scores.max()
    parents = units[numpy.argsort(-scores)[:PARENTS]]
    for k in range(ROUNDS):
        children = numpy.repeat(parents, CHILDREN, 0)
        moved = numpy.clip(
            children + r.normal(0, FIRST_STEP * SHRINKING ** k, (PARENTS * CHILDREN, width)), 0, 1)
        if is_choice.any():  # a choice is kept or drawn again
            again = r.random(children.shape) < REDRAWN
            chosen = numpy.where(again, r.random(children.shape), children)
            moved = numpy.where(is_choice, chosen, moved)
        scores, _ = ends(moved)
        parents = moved[numpy.argsort(-scores)[:PARENTS]]
        best = max(best, scores.max())
    return {"optimum": float(task.sign * best), "median": float(task.sign * median),
            "training_s": float(numpy.median(seconds))}


def main():
    server = Server(sys.argv[1], sys.argv[2])
    tasks = server.tasks(sys.argv[3].split(","))
    for name in json.load(sys.stdin)["names"]:
        print(json.dumps([name, tasks[name].metric, reference(tasks[name])]), flush=True)


if __name__ == "__main__":
    main()
