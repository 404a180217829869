"""Means, ranks and tests of the table, without a library."""
import math
import statistics


def stratified_mean(groups):
    """The mean of the groups' means, and half of its 95 % interval: what another draw of seeds would
    change, the groups (tasks) being the same. Not a number with one run a group."""
    mean = statistics.mean(statistics.mean(group) for group in groups)
    if any(len(group) < 2 for group in groups):
        return mean, math.nan
    variance = sum(statistics.variance(group) / len(group) for group in groups)
    return mean, 1.96 * math.sqrt(variance) / len(groups)


def ranks_of(values):
    """From 1, the least first; equals share the mean of their ranks."""
    order = sorted(range(len(values)), key=lambda i: values[i])
    ranks = [0.0] * len(values)
    at = 0
    while at < len(order):
        end = at
        while end < len(order) and values[order[end]] == values[order[at]]:
            end += 1
        for i in order[at:end]:
            ranks[i] = (at + 1 + end) / 2
        at = end
    return ranks


def mean_ranks(values):
    """By name: a list of values, one a task each."""
    names = list(values)
    if not names:
        return {}
    columns = [ranks_of(column) for column in zip(*(values[name] for name in names))]
    return {name: statistics.mean(column[i] for column in columns) for i, name in enumerate(names)}


def wilcoxon(first, second):
    """Two-sided p of the signed-rank test, exact: over all signs of the ranks found. Pairs without a
    difference are left out."""
    differences = [a - b for a, b in zip(first, second) if a != b]
    if not differences:
        return 1.0
    doubled = [round(2 * rank) for rank in ranks_of([abs(d) for d in differences])]
    ways = {0: 1}
    for rank in doubled:
        more = dict(ways)
        for total, count in ways.items():
            more[total + rank] = more.get(total + rank, 0) + count
        ways = more
    positive = sum(rank for rank, d in zip(doubled, differences) if d > 0)
    smaller = min(positive, sum(doubled) - positive)
    tail = sum(count for total, count in ways.items() if total <= smaller)
    return min(1.0, 2 * tail / 2 ** len(differences))


def holm(p_values):
    """Corrected for so many tests, by name."""
    corrected, least = {}, 0.0
    for i, name in enumerate(sorted(p_values, key=p_values.get)):
        least = max(least, min(1.0, (len(p_values) - i) * p_values[name]))
        corrected[name] = least
    return corrected
