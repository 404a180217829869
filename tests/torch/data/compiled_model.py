"""Compiles a small network ahead of time, for tests of CompiledModel:

    python3 tests/torch/data/compiled_model.py FOLDER VERSION

Ends with 77 when this Python's torch is not of that version. The folder then holds net.pt2, for batches of 1 to 64;
net.txt, what Python's network makes of sines; model.pt, other weights for it; other.txt, what it makes of the same
with these; and foreign.pt2, which calls what this torch does not have, as a package of another version may.
"""
import os
import sys
import zipfile

import torch
from torch import nn


def write(file, output):
    with open(file, "w") as out:
        out.writelines(f"{value:.9g}\n" for value in output.flatten().tolist())


def write_foreign(package, to):
    known = b"aoti_torch_delete_tensor_object\0"
    with zipfile.ZipFile(package) as old, zipfile.ZipFile(to, "w") as new:
        for entry in old.infolist():
            content = old.read(entry)
            if entry.filename.endswith(".so"):
                assert known in content
                content = content.replace(known, b"aoti_torch_delete_tensor_future\0")
            new.writestr(entry, content)


def main():
    folder, version = sys.argv[1:3]
    if torch.__version__.split("+")[0] != version:
        print("torch is", torch.__version__)
        sys.exit(77)
    place = lambda name: os.path.join(folder, name)
    torch.manual_seed(0)
    torch.set_num_threads(1)
    net = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 2)).eval()
    for tensor in net.state_dict().values():
        if tensor.is_floating_point():  # as after a training: equal numbers become a constant all the same
            tensor.add_(torch.rand_like(tensor))
    x = torch.sin(torch.arange(24.0)).view(6, 4)
    batch = torch.export.Dim("batch", min=1, max=64)
    program = torch.export.export(net, (x,), dynamic_shapes=({0: batch},))
    keep = {"always_keep_tensor_constants": True}
    torch._inductor.aoti_compile_and_package(program, package_path=place("net.pt2"), inductor_configs=keep)
    write_foreign(place("net.pt2"), place("foreign.pt2"))
    with torch.no_grad():
        write(place("net.txt"), net(x))
        for tensor in net.state_dict().values():
            if tensor.is_floating_point():
                tensor.mul_(0.5).add_(0.1)
        write(place("other.txt"), net(x))
    torch.save(net.state_dict(), place("model.pt"))


main()
