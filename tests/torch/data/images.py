"""Writes images/ and images.txt, transforms.txt: what Pillow reads from them, and what torchvision's
transforms make of one (made with Pillow 13.0.0, torchvision 0.26.0).

    python3 tests/torch/data/images.py    # in the folder of this script

A line is: name height width : red green blue of each pixel, row by row.
"""
import os
import struct
import zlib

import numpy as np
import torch
from PIL import Image
from torchvision.transforms import functional as F

FOLDER = os.path.dirname(os.path.abspath(__file__))


def path(name):
    return os.path.join(FOLDER, "images", name)


def pattern(height, width):
    """Smooth colours with an edge in it."""
    y, x = np.mgrid[0:height, 0:width]
    red = x * 255 // max(width - 1, 1)
    green = y * 255 // max(height - 1, 1)
    blue = np.where(x > y, 220, 30)
    return np.stack([red, green, blue], axis=2).astype(np.uint8)


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def write_png(name, header, rows):
    """What Pillow does not write: header is (width, height, depth, colour, 0, 0, interlace)."""
    with open(path(name), "wb") as out:
        out.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", *header)))
        out.write(chunk(b"IDAT", zlib.compress(b"".join(b"\0" + row for row in rows))))
        out.write(chunk(b"IEND", b""))


def adam7_rows(pixels):
    passes = [(0, 0, 8, 8), (0, 4, 8, 8), (4, 0, 8, 4), (0, 2, 4, 4), (2, 0, 4, 2), (0, 1, 2, 2)]
    for top, left, down, across in passes + [(1, 0, 2, 1)]:
        part = pixels[top::down, left::across]
        if part.size:
            yield from (row.tobytes() for row in part)


def write_images():
    os.makedirs(path(""), exist_ok=True)
    small = pattern(4, 5)
    image = Image.fromarray(small)
    alpha = np.dstack([small, np.arange(20, dtype=np.uint8).reshape(4, 5) * 12])
    image.save(path("rgb.png"))
    image.convert("L").save(path("grey.png"))
    image.convert("1").save(path("one_bit.png"))
    image.quantize(6).save(path("palette.png"), transparency=2)
    Image.fromarray(alpha).save(path("alpha.png"))
    Image.fromarray(alpha).convert("LA").save(path("grey_alpha.png"))
    wide = small.astype(">u2") * 257 - 3 * (small > 0)
    write_png("rgb16.png", (5, 4, 16, 2, 0, 0, 0), [row.astype(">u2").tobytes() for row in wide])
    grey = wide[:, :, 0].astype(">u2")
    write_png("grey16.png", (5, 4, 16, 0, 0, 0, 0), [row.tobytes() for row in grey])
    write_png("interlaced.png", (5, 4, 8, 2, 0, 0, 1), adam7_rows(small))
    write_png("huge.png", (100000, 100000, 8, 2, 0, 0, 0), [b"\0"])

    image = Image.fromarray(pattern(11, 18))
    image.save(path("rgb.jpg"), quality=90)
    image.save(path("progressive.jpg"), quality=80, progressive=True)
    image.convert("L").save(path("grey.jpg"))
    image.convert("CMYK").save(path("cmyk.jpg"))
    exif = Image.Exif()
    exif[0x0112] = 6  # turned by a quarter
    image.save(path("turned.jpg"), quality=90, exif=exif)


def line(name, pixels):
    height, width = pixels.shape[:2]
    return f"{name} {height} {width} : {' '.join(map(str, pixels.flatten()))}\n"


def main():
    write_images()
    with open(os.path.join(FOLDER, "images.txt"), "w") as out:
        for name in sorted(os.listdir(path(""))):
            if name in ("huge.png", "cmyk.jpg", "grey16.png"):  # tune refuses two, reads one otherwise
                continue
            out.write(line(name, np.asarray(Image.open(path(name)).convert("RGB"))))
    with open(os.path.join(FOLDER, "transforms.txt"), "w") as out:
        image = torch.from_numpy(pattern(11, 18)).permute(2, 0, 1)
        results = {
            "original": image,
            "resize_7": F.resize(image, [7], antialias=True),
            "resize_24": F.resize(image, [24], antialias=True),
            "resize_tall_7": F.resize(image.transpose(1, 2), [7], antialias=True),
            "resize_5x9": F.resize(image, [5, 9], antialias=True),
            "resize_20x3": F.resize(image, [20, 3], antialias=True),
            "center_crop_6": F.center_crop(image, [6]),
            "center_crop_5x7": F.center_crop(image, [5, 7]),
            "center_crop_14x13": F.center_crop(image, [14, 13]),
            "center_crop_13x21": F.center_crop(image, [13, 21]),
        }
        for name, result in results.items():
            out.write(line(name, result.permute(1, 2, 0).numpy()))


main()
