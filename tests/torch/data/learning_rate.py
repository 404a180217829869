"""Writes learning_rate.txt: what PyTorch's schedulers set, step by step (made with torch 2.11.0).

    python3 tests/torch/data/learning_rate.py > tests/torch/data/learning_rate.txt

A line is: name : rate of step 0, rate of step 1, ... The initial rate is 0.4.
"""
import warnings

import torch
from torch.optim import lr_scheduler

STEPS = 40
SCHEDULERS = {
    "multi_step": [lambda o: lr_scheduler.MultiStepLR(o, [3, 8, 8, 30], gamma=0.3)],
    "cosine": [lambda o: lr_scheduler.CosineAnnealingLR(o, T_max=12, eta_min=0.01)],
    "lambda": [lambda o: lr_scheduler.LambdaLR(o, lambda step: 0.95**step)],
    "exponential": [lambda o: lr_scheduler.ExponentialLR(o, gamma=0.9)],
    "one_cycle": [lambda o: lr_scheduler.OneCycleLR(o, max_lr=0.4, total_steps=40,
                                                    cycle_momentum=False)],
    "one_cycle_of_halves": [lambda o: lr_scheduler.OneCycleLR(o, max_lr=0.4, total_steps=41,
                                                          pct_start=0.5, div_factor=10,
                                                          final_div_factor=100,
                                                          cycle_momentum=False)],
    "warm_up": [lambda o: lr_scheduler.LinearLR(o, start_factor=0.25, total_iters=5)],
    "warm_up_multi_step": [
        lambda o: lr_scheduler.LinearLR(o, start_factor=0.25, total_iters=5),
        lambda o: lr_scheduler.MultiStepLR(o, [3, 8, 8, 30], gamma=0.3),
    ],
}


def rates(make):
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.4)
    schedulers = [m(optimizer) for m in make]
    for _ in range(STEPS):
        yield optimizer.param_groups[0]["lr"]
        optimizer.step()
        for scheduler in schedulers:
            scheduler.step()


warnings.simplefilter("error")
for name, make in SCHEDULERS.items():
    print(name, ":", *map(repr, rates(make)))
