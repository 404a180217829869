"""A trainable in Python without any package: a small network that learns to tell two moons apart.

Its sweep is config/python.yaml; run as a program it searches by itself:

    python3 examples/two_moons.py
"""

import json
import math
import random

import tune

POINTS = 200


def moons(seed):
    draw = random.Random(seed)
    points = []
    for i in range(POINTS):
        angle = math.pi * (i // 2) / (POINTS / 2)
        lower = i % 2
        x = 1 - math.cos(angle) if lower else math.cos(angle)
        y = 0.5 - math.sin(angle) if lower else math.sin(angle)
        points.append((x + draw.gauss(0, 0.15), y + draw.gauss(0, 0.15), lower))
    return points


class TwoMoons(tune.Trainable):
    def setup(self, config):
        self.lr, self.momentum = config["lr"], config["momentum"]
        self.train, self.test = moons(1), moons(2)
        self.random = random.Random(self.context.seed)
        # Of each hidden unit: two weights, a bias, its weight in the output.
        self.units = [[self.random.gauss(0, 1) for _ in range(4)] for _ in range(config["hidden"])]
        self.moved = [[0.0] * 4 for _ in self.units]

    def output(self, x, y):
        hidden = [math.tanh(a * x + b * y + bias) for a, b, bias, _ in self.units]
        score = sum(h * unit[3] for h, unit in zip(hidden, self.units))
        return hidden, 1 / (1 + math.exp(-max(-30.0, min(30.0, score))))

    def step(self):
        self.random.shuffle(self.train)
        for x, y, label in self.train:
            hidden, chance = self.output(x, y)
            error = label - chance
            for h, unit, moved in zip(hidden, self.units, self.moved):
                inner = error * unit[3] * (1 - h * h)
                for i, gradient in enumerate((inner * x, inner * y, inner, error * h)):
                    moved[i] = self.momentum * moved[i] + self.lr * gradient
                    unit[i] += moved[i]
        right = sum((self.output(x, y)[1] > 0.5) == label for x, y, label in self.test)
        return {"mean_accuracy": right / POINTS}

    def save(self, directory):
        state = {"units": self.units, "moved": self.moved}
        (directory / "model.json").write_text(json.dumps(state))

    def load(self, directory):
        state = json.loads((directory / "model.json").read_text())
        self.units, self.moved = state["units"], state["moved"]


if __name__ == "__main__":
    analysis = tune.run(
        TwoMoons,
        config={
            "lr": tune.loguniform(1e-3, 1),
            "momentum": tune.uniform(0, 0.9),
            "hidden": tune.randint(3, 13),
        },
        num_samples=16,
        metric="mean_accuracy",
        mode="max",
        scheduler=tune.asha(max_t=9, grace_period=1, reduction_factor=3),
    )
    print("Best config is:", analysis.best_config)
