"""Adam's step of a ResNet-18's parameters on one thread, for bench/optimizer_step.cc: prints
"step <milliseconds> ms", the median.

python optimizer_step.py fused|default STEPS
"""

import sys

import torch

from resnet18_step import milliseconds_a_step, resnet18

if __name__ == "__main__":
    kind, count = sys.argv[1], int(sys.argv[2])
    torch.set_num_threads(1)
    torch.manual_seed(1)
    parameters = list(resnet18().parameters())
    for parameter in parameters:
        parameter.grad = torch.randn_like(parameter)
    optimizer = torch.optim.Adam(parameters, lr=1e-3, fused=kind == "fused" or None)
    print(f"step {milliseconds_a_step(count, optimizer.step):.4f} ms", flush=True)
