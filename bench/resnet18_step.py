"""The ResNet-18 of examples/resnet.cc in Python, for bench/resnet18_step.cc: prints
"step <milliseconds> ms", the median.

python resnet18_step.py cpu|gpu|autocast STEPS
"""

import os
import statistics
import sys
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel

from ddp_step import RANKS, free_port

CLASSES = 1000
CPU_BATCH, CPU_SIDE = 8, 64
GPU_BATCH, GPU_SIDE = 128, 224


def convolution(inputs, outputs, kernel, stride):
    layer = nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, bias=False)
    nn.init.kaiming_normal_(layer.weight, mode="fan_out", nonlinearity="relu")
    return layer


class BasicBlock(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1 = convolution(inputs, outputs, 3, stride)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = convolution(outputs, outputs, 3, 1)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.relu = nn.ReLU(inplace=True)
        self.downsample = None
        if stride != 1 or inputs != outputs:
            self.downsample = nn.Sequential(convolution(inputs, outputs, 1, stride),
                                            nn.BatchNorm2d(outputs))

    def forward(self, x):
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        out += x if self.downsample is None else self.downsample(x)
        return self.relu(out)


def stage(inputs, outputs, stride):
    return nn.Sequential(BasicBlock(inputs, outputs, stride), BasicBlock(outputs, outputs, 1))


def resnet18():
    return nn.Sequential(
        convolution(3, 64, 7, 2), nn.BatchNorm2d(64), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1),
        stage(64, 64, 1), stage(64, 128, 2), stage(128, 256, 2), stage(256, 512, 2),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, CLASSES))


def milliseconds_a_step(steps, step):
    times = []
    for _ in range(steps + steps // 10 + 2):
        began = time.perf_counter()
        step()
        times.append(time.perf_counter() - began)
    return 1e3 * statistics.median(times[steps // 10 + 2:])


def train_on_cpu(rank, port, steps):
    os.setsid()  # as ranks of tune have it: on a loaded machine a session has a share of its own
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=RANKS)
    torch.manual_seed(1)
    model = DistributedDataParallel(resnet18())
    x = torch.randn(CPU_BATCH, 3, CPU_SIDE, CPU_SIDE)
    y = torch.randint(CLASSES, (CPU_BATCH,))

    def step():
        model.zero_grad()
        cross_entropy(model(x), y).backward()

    ms = milliseconds_a_step(steps, step)
    dist.barrier()
    if rank == 0:
        print(f"step {ms:.4f} ms", flush=True)
    dist.destroy_process_group()


def train_on_gpu(steps, mixed):
    torch.manual_seed(1)
    model = resnet18().cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    scaler = torch.amp.GradScaler("cuda", enabled=mixed)
    x = torch.randn(GPU_BATCH, 3, GPU_SIDE, GPU_SIDE, device="cuda")
    y = torch.randint(CLASSES, (GPU_BATCH,), device="cuda")

    def ten_steps():
        for _ in range(10):
            optimizer.zero_grad()
            with torch.autocast("cuda", torch.float16, enabled=mixed):
                loss = cross_entropy(model(x), y)
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
        torch.cuda.synchronize()

    print(f"step {milliseconds_a_step(steps, ten_steps) / 10:.4f} ms", flush=True)


if __name__ == "__main__":
    kind, count = sys.argv[1], int(sys.argv[2])
    if kind == "cpu":
        mp.spawn(train_on_cpu, (free_port(), count), RANKS)
    else:
        train_on_gpu(count, kind == "autocast")
