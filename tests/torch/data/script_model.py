"""Writes the files of script_model/: models that Python wrote for C++ (made with torch 2.11.0).

    python3 tests/torch/data/script_model.py    # in the folder of this script

net.ts is a network in TorchScript, trained.txt the losses of five of its steps in Python, trained.pt its
state_dict after them. pair.ts takes two tensors and returns two; frozen.ts has no parameters left;
exported.pt2 is of torch.export.save, without compiled code.
"""
import os
import warnings

import torch
from torch import nn

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "script_model")


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.0))
        self.head = nn.Linear(8, 2)

    def forward(self, x):
        return self.head(self.layers(x))


class Pair(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.tensor([2.0]))

    def forward(self, a, b):
        return a + b, a * b * self.scale


def train(net):
    x = torch.sin(torch.arange(24.0)).view(6, 4)
    y = torch.arange(6) % 2
    optimizer = torch.optim.SGD(net.parameters(), lr=0.5)
    losses = []
    for _ in range(5):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def main():
    warnings.simplefilter("ignore")  # TorchScript is deprecated
    os.makedirs(FOLDER, exist_ok=True)
    place = lambda name: os.path.join(FOLDER, name)
    torch.manual_seed(0)
    net = Net()
    torch.jit.script(net).save(place("net.ts"))
    program = torch.export.export(net.eval(), (torch.zeros(2, 4),))
    torch.export.save(program, place("exported.pt2"))
    net.train()
    with open(place("trained.txt"), "w") as out:
        out.writelines(f"{loss:.9g}\n" for loss in train(net))
    torch.save(net.state_dict(), place("trained.pt"))
    torch.jit.script(Pair()).save(place("pair.ts"))
    torch.jit.freeze(torch.jit.script(Net().eval())).save(place("frozen.ts"))


main()
