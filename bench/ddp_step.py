"""Python's DistributedDataParallel for bench/ddp_step.cc: prints "step <milliseconds> ms", the median.

python ddp_step.py STEPS
"""

import os
import socket
import statistics
import sys
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.nn.parallel import DistributedDataParallel

RANKS = 2
BATCH = 64


def train(rank, port, steps):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=RANKS)
    torch.manual_seed(1)
    net = torch.nn.Sequential(
        torch.nn.Linear(64, 256), torch.nn.ReLU(),
        torch.nn.Linear(256, 256), torch.nn.ReLU(),
        torch.nn.Linear(256, 10))
    model = DistributedDataParallel(net)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
    x = torch.randn(BATCH, 64)
    y = torch.randint(10, (BATCH,))
    times = []
    for _ in range(steps + steps // 10 + 2):
        began = time.perf_counter()
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
        times.append(time.perf_counter() - began)
    dist.barrier()
    if rank == 0:
        print(f"step {1e3 * statistics.median(times[steps // 10 + 2:]):.4f} ms", flush=True)
    dist.destroy_process_group()


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


if __name__ == "__main__":
    mp.spawn(train, (free_port(), int(sys.argv[1])), RANKS)
