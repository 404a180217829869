"""Writes the files of state_dict/: what Python's torch.save makes of a model (made with torch 2.11.0).

    python3 tests/torch/data/state_dict.py    # in the folder of this script

Every number is its place in its tensor, divided by 4, plus the tensor's place in the model.
"""
import os

import torch
from torch import nn

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "state_dict")


def numbers(shape, place, dtype=torch.float):
    return (torch.arange(torch.Size(shape).numel()) / 4 + place).to(dtype).view(shape)


def model():
    net = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3), nn.ReLU(), nn.Linear(3, 2))
    with torch.no_grad():
        for place, (_, tensor) in enumerate(net.state_dict().items()):
            tensor.copy_(numbers(tensor.shape, place))
    return net


def save(value, name, **how):
    torch.save(value, os.path.join(FOLDER, name), **how)


def main():
    os.makedirs(FOLDER, exist_ok=True)
    net = model()
    save(net.state_dict(), "model.pt")
    save(net.state_dict(), "protocol_4.pt", pickle_protocol=4)
    save(net.state_dict(), "old_format.pt", _use_new_zipfile_serialization=False)
    save(dict(net.named_parameters()), "parameters.pt")
    save({"epoch": 3, "net": net.state_dict(), "rate": 0.1, "loss": None}, "training.pt")
    save(net, "module.pt")
    base = numbers([3, 4], 0)
    save(
        {
            "base": base,
            "turned": base.t(),
            "row": base[1],
            "every_other": base[:, ::2],
            "f64": numbers([2], 1, torch.double),
            "f16": numbers([2], 2, torch.half),
            "bf16": numbers([2], 3, torch.bfloat16),
            "i64": torch.tensor([-(2**62), 7]),
            "i32": numbers([5], 4, torch.int),
            "i16": numbers([5], 5, torch.short),
            "i8": numbers([5], 6, torch.int8),
            "u8": numbers([5], 7, torch.uint8),
            "bool": torch.tensor([True, False, True]),
            "scalar": torch.tensor(2.5),
            "empty": torch.zeros(0, 4),
        },
        "tensors.pt",
    )
    save({"sparse": torch.eye(2).to_sparse()}, "sparse.pt")


main()
