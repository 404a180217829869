"""Writes distributed_sampler.txt: what PyTorch's DistributedSampler gives (made with torch 2.11.0).

    python3 tests/torch/data/distributed_sampler.py > tests/torch/data/distributed_sampler.txt

A line is: n world shuffle drop_last epoch seed : indices of rank 0 | indices of rank 1 | ...
"""
from torch.utils.data.distributed import DistributedSampler

SIZES = [1, 2, 3, 5, 7, 8, 10, 17, 33, 100]
WORLDS = [1, 2, 3, 4, 7]
EPOCHS_AND_SEEDS = [(0, 0), (3, 0), (1, 42), (7, 2**40 + 5)]


def line(n, world, shuffle, drop_last, epoch, seed):
    ranks = []
    for rank in range(world):
        sampler = DistributedSampler(range(n), world, rank, shuffle, seed, drop_last)
        sampler.set_epoch(epoch)
        ranks.append(" ".join(map(str, sampler)))
    case = f"{n} {world} {int(shuffle)} {int(drop_last)} {epoch} {seed}"
    return f"{case} : {' | '.join(ranks)}"


def main():
    for n in SIZES:
        for world in WORLDS:
            for drop_last in (False, True):
                if drop_last and n < world:
                    continue  # nothing is left, which tune refuses
                print(line(n, world, False, drop_last, 2, 9))
                for epoch, seed in EPOCHS_AND_SEEDS:
                    print(line(n, world, True, drop_last, epoch, seed))
    print(line(1000, 3, True, False, 1, 1))


main()
