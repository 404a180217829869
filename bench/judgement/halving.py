"""Asynchronous successive halving in its plainest form, without a library: for peers that only search,
and to check tune's own against (agreement_test.py). More is better."""


class Stopping:
    """At a rung a trial goes on when it is among the best max(floor(n / eta), 1), itself included."""

    def __init__(self, rungs, eta=3):
        self.rungs, self.eta, self.values = rungs, eta, {rung: [] for rung in rungs}

    def goes_on(self, rung, value):
        values = self.values[rung]
        better = sum(other >= value for other in values)  # of equal ones the earlier
        values.append(value)
        return better < max(len(values) // self.eta, 1)


class Promotion:
    """Every trial waits at its rung; a free worker takes, from the top rung down, the best that waits
    among the best floor(n / eta)."""

    def __init__(self, rungs, eta=3):
        self.rungs, self.eta = rungs, eta
        self.waiting = {rung: [] for rung in rungs}  # [-value, how many came before, trial, promoted]

    def add(self, rung, trial, value):
        self.waiting[rung].append([-value, len(self.waiting[rung]), trial, False])

    def promoted(self):
        """A trial and the rung where it waited, or nothing."""
        for rung in reversed(self.rungs):
            best = sorted(self.waiting[rung])[:len(self.waiting[rung]) // self.eta]
            for entry in best:
                if not entry[3]:
                    entry[3] = True
                    return entry[2], rung
        return None
