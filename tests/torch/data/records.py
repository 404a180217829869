"""Writes the shards of records/, with Python's tarfile in its three formats.

    python3 tests/torch/data/records.py    # in the folder of this script

Record i of all 10 has i.cls, the number i, and i.data.txt, i times the letter x. Shard b has names that
are too long for a plain header, c a folder and a link among its files.
"""
import io
import os
import tarfile

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "records")
SHARDS = {
    "a.tar": (tarfile.USTAR_FORMAT, "", [0, 1, 2, 3]),
    "b.tar": (tarfile.PAX_FORMAT, "long/" * 60, [4, 5, 6]),
    "c.tar": (tarfile.GNU_FORMAT, "long/" * 60, [7, 8, 9]),
}


def add(tar, name, data, mtime):
    info = tarfile.TarInfo(name)
    info.size = len(data)
    info.mtime = mtime
    tar.addfile(info, io.BytesIO(data))


def main():
    os.makedirs(FOLDER, exist_ok=True)
    for shard, (form, folder, numbers) in SHARDS.items():
        with tarfile.open(os.path.join(FOLDER, shard), "w", format=form) as tar:
            for number in numbers:
                # Half a second wants a pax header.
                mtime = 1.5 if form == tarfile.PAX_FORMAT else 1
                add(tar, f"{folder}{number}.cls", str(number).encode(), mtime)
                if shard == "c.tar":
                    info = tarfile.TarInfo("folder")
                    info.type = tarfile.DIRTYPE
                    tar.addfile(info)
                    info = tarfile.TarInfo("link.cls")
                    info.type, info.linkname = tarfile.SYMTYPE, "7.cls"
                    tar.addfile(info)
                add(tar, f"{folder}{number}.data.txt", b"x" * number, mtime)


main()
