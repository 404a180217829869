"""The tables: regret, ranks, tests and time of a suggestion."""
import collections
import math
import statistics

import stats
from results import FRACTIONS, regrets


def print_tables(runs, references, tasks, kind_of):
    """`runs`: by their keys. `tasks`: those that count, by name."""
    tables = collections.defaultdict(lambda: collections.defaultdict(dict))
    for (name, _, task, _, setting), run in runs.items():
        cell = tables[kind_of(tasks[task]), setting][name].setdefault(task, [])
        cell.append((regrets(run, references[task]), run.get("suggestion_s")))
    for (kind, setting), methods in sorted(tables.items()):
        names = [name for name, task in tasks.items() if kind_of(task) == kind]
        budget = ("%d trials" % setting.trials if setting.trials
                  else "the time of %g trainings" % setting.trainings)
        print("\n%s, %d tasks: %s, %d workers, a start costs %g steps\n" % (
            setting.objectives or kind, len(names), budget, setting.workers, setting.start_cost))
        print_rows(rows_of(methods, names))


def rows_of(methods, tasks):
    whole = {name: cells for name, cells in methods.items() if set(cells) == set(tasks)}

    def means(name, at):
        return [statistics.mean(r[at] for r, _ in whole[name][task]) for task in tasks]

    ends = {name: means(name, -1) for name in whole}
    ranks = [stats.mean_ranks({name: means(name, i) for name in whole})
             for i in range(len(FRACTIONS))]
    tested = tested_against(ends)
    p_values = stats.holm({name: stats.wilcoxon(ends[tested], ends[name])
                           for name in ends if tested and name != tested})
    yield ["method", "runs"] + ["%d %%" % (100 * f) for f in FRACTIONS] + [
        "ranks", "p", "a suggestion"]
    for name in sorted(methods, key=lambda n: (n not in whole, statistics.mean(ends.get(n, [0])))):
        cells = methods[name]
        texts = [mean_text(cells, i) for i in range(len(FRACTIONS))]
        timed = [s for runs in cells.values() for _, s in runs if s is not None]
        yield [name if name in whole else "%s (%d tasks only)" % (name, len(cells)),
               "%d" % sum(map(len, cells.values())), *texts,
               " ".join("%.1f" % rank[name] for rank in ranks) if name in whole else "",
               "%.2g" % p_values[name] if name in p_values else "",
               time_text(statistics.median(timed)) if timed else ""]


def tested_against(ends):
    """What tune does when nothing is chosen; without it, the best of its methods: chosen afterwards, so
    that its p is a little too small."""
    own = [name for name in ends if name.startswith("tune:")]
    if "tune: auto" in own or not own:
        return "tune: auto" if own else None
    return min(own, key=lambda name: statistics.mean(ends[name]))


def mean_text(cells, at):
    mean, half = stats.stratified_mean([[r[at] for r, _ in runs] for runs in cells.values()])
    return "%.3f" % mean + (" ± %.3f" % half if not math.isnan(half) else "")


def time_text(seconds):
    return "%.2g ms" % (1e3 * seconds) if seconds < .0995 else "%.2g s" % seconds


def print_rows(rows):
    """As Markdown reads them, in columns."""
    rows = list(rows)
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    rows.insert(1, ["-" * width for width in widths])
    for row in rows:
        print("| " + " | ".join(text.ljust(width) for text, width in zip(row, widths)) + " |")
