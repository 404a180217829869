"""Batches of 32 images from a folder of JPEGs, by torchvision's loader with two workers, for
bench/image_folder.cc: prints "step <milliseconds> ms", of one batch.

python image_folder.py FOLDER
"""

import sys
import time

import torch
from torchvision import datasets, transforms

if __name__ == "__main__":
    torch.set_num_threads(1)
    data = datasets.ImageFolder(sys.argv[1], transforms.Compose([
        transforms.RandomResizedCrop(224), transforms.RandomHorizontalFlip(), transforms.ToTensor(),
        transforms.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])]))
    loader = torch.utils.data.DataLoader(data, batch_size=32, shuffle=True, num_workers=2,
                                         persistent_workers=True)
    for _ in loader:  # the workers begin
        pass
    began = time.perf_counter()
    batches = sum(1 for _ in loader)
    print(f"step {1e3 * (time.perf_counter() - began) / batches:.4f} ms", flush=True)
