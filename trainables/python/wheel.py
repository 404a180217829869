#!/usr/bin/env python3
"""Makes the package's wheel: pure Python, and the programs of a build with what they link.

    python3 wheel.py [--build BUILD] [--output DIR]

It is the build backend of `pip install ./trainables/python` as well (PEP 517), and needs Python alone. The build is
--build or $TUNE_BUILD_DIR, else build or build-no-torch of the clone, where one has bin/tune, else
build-wheel, which is made then: the programs alone, without LibTorch. The wheel runs on machines whose
C library is not older than this one's.
"""

import argparse
import base64
import hashlib
import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
CLONE = HERE.parents[1]
PACKAGE = HERE / "tune"
NAME = "tune_cpp"
# Of the C library and the compiler: each machine has its own, which plugins are linked to as well.
OF_THE_SYSTEM = re.compile(
    r"^(ld-linux.*|lib(c|m|dl|rt|pthread|resolv|stdc\+\+|gcc_s))\.so|^linux-vdso|^libtune_"
)
PROGRAMS = ("tune", "tune-worker")
PROGRAM_OF_PAGES = "tune-view"  # where Boost is
SET_UP = "All that it is built with is installed by: bash config/setup.sh --without-torch"


# ---- What goes in --------------------------------------------------------------------------------


def version():
    text = (PACKAGE / "_version.py").read_text()
    return re.search(r'^__version__ = "([^"]+)"', text, re.M).group(1)


def has_programs(build):
    return all((build / "bin" / name).is_file() for name in PROGRAMS)


def find_build():
    given = os.environ.get("TUNE_BUILD_DIR")
    if given:
        if has_programs(Path(given)):
            return Path(given)
        raise SystemExit(
            f"wheel: there is no bin/tune in {given}, which --build or TUNE_BUILD_DIR names: build tune there, "
            "or name no build"
        )
    built = [place for place in (CLONE / "build", CLONE / "build-no-torch") if has_programs(place)]
    return built[0] if built else make_build(CLONE / "build-wheel")


def find_redis():
    return shutil.which("redis-server", path=os.environ.get("PATH", "") + ":/usr/bin:/usr/sbin")


def make_build(build):
    """The programs alone, compiled: some minutes. The second time only what has changed."""
    if not (CLONE / "CMakeLists.txt").is_file():
        raise SystemExit(
            f"wheel: {CLONE} is not a clone of tune (pip before 21.3 copies what it installs): name a build "
            "in TUNE_BUILD_DIR"
        )
    missing = [name for name in ("cmake", "ninja", "c++") if shutil.which(name) is None]
    missing += [] if find_redis() else ["redis-server"]
    if missing:
        raise SystemExit(f"wheel: there is no {', '.join(missing)}. {SET_UP}")
    print(f"wheel: compiling into {build}, which takes some minutes", file=sys.stderr, flush=True)
    settings = [f"-DTUNE_{name}=OFF" for name in ("WITH_TORCH", "BUILD_TESTS", "BUILD_EXAMPLES", "BUILD_BENCH")]
    for command in (["cmake", "--preset", "default", "-B", build, *settings], ["cmake", "--build", build]):
        if subprocess.run(list(map(str, command)), cwd=CLONE, stdout=sys.stderr).returncode != 0:
            raise SystemExit(f"wheel: {' '.join(map(str, command[:2]))} failed, see above. {SET_UP}")
    return build


def libraries(program):
    """The shared libraries that it needs and that a machine may lack, by name."""
    words = subprocess.run(["ldd", str(program)], capture_output=True, text=True, check=True).stdout
    found = {}
    for line in words.splitlines():
        name, arrow, rest = line.strip().partition(" => ")
        if not arrow or OF_THE_SYSTEM.match(name):
            continue
        path = rest.split(" (")[0]
        if path == "not found":
            raise SystemExit(f"wheel: {program} needs {name}, which is not there")
        found[name] = Path(path)
    return found


def payload(build):
    """Names within the wheel, with their files or texts, and whether they are programs."""
    files = [(f"tune/{path.name}", path, False) for path in sorted(PACKAGE.glob("*.py"))]
    files.append(("tune/py.typed", PACKAGE / "py.typed", False))
    needed = {}
    for name in (*PROGRAMS, PROGRAM_OF_PAGES):
        program = build / "bin" / name
        if name == PROGRAM_OF_PAGES and not program.is_file():
            continue
        files.append((f"tune/_bin/{name}", program, True))
        needed.update(libraries(program))
    redis = find_redis()
    if redis is None:
        raise SystemExit("wheel: there is no redis-server to carry: install the package redis-server")
    redis = Path(redis).resolve()
    needed.update(libraries(redis))
    files.append(("tune/_bin/redis-server.program", redis, True))
    files.append(("tune/_bin/redis-server", START_REDIS, True))
    needed["libtune_signals.so"] = build / "lib/libtune_signals.so"
    files.extend((f"tune/_lib/{name}", path, False) for name, path in sorted(needed.items()))
    return files


# The programs of the build find their libraries by a path relative to themselves; Debian's does not.
START_REDIS = """#!/bin/sh
export LD_LIBRARY_PATH="${0%/*}/../_lib"
exec "${0%/*}/redis-server.program" "$@"
"""


def metadata():
    return (
        "Metadata-Version: 2.1\n"
        "Name: tune-cpp\n"
        f"Version: {version()}\n"
        "Summary: Hyperparameter search: trials are forks of your process\n"
        "License: Apache-2.0\n"
        "Requires-Python: >=3.9\n"
        "Provides-Extra: pandas\n"
        'Requires-Dist: pandas; extra == "pandas"\n'
    )


def platform_tag():
    name, glibc = os.confstr("CS_GNU_LIBC_VERSION").split()
    assert name == "glibc", name
    return f"manylinux_{glibc.replace('.', '_')}_{os.uname().machine}"


# ---- The archive ---------------------------------------------------------------------------------


def stripped(file):
    """Its bytes, of a program without what only a debugger reads."""
    data = file.read_bytes()
    strip = shutil.which("strip")
    if not data.startswith(b"\x7fELF") or strip is None:
        return data
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "copy"
        copy.write_bytes(data)
        subprocess.run([strip, "--strip-debug", str(copy)], check=True)
        return copy.read_bytes()


class Archive:
    def __init__(self, directory, tag):
        self.info = f"{NAME}-{version()}.dist-info"
        self.name = f"{NAME}-{version()}-{tag}.whl"
        self.records = []
        self.file = zipfile.ZipFile(Path(directory) / self.name, "w", zipfile.ZIP_DEFLATED)
        wheel = f"Wheel-Version: 1.0\nGenerator: tune wheel.py\nRoot-Is-Purelib: false\nTag: {tag}\n"
        self.tail = [
            (f"{self.info}/METADATA", metadata()),
            (f"{self.info}/WHEEL", wheel),
            (f"{self.info}/entry_points.txt", "[console_scripts]\ntune = tune._programs:main\n"),
        ]

    def add(self, name, content, is_program=False):
        data = content.encode() if isinstance(content, str) else stripped(Path(content))
        entry = zipfile.ZipInfo(name, (2020, 1, 1, 0, 0, 0))
        entry.external_attr = (stat.S_IFREG | (0o755 if is_program else 0o644)) << 16
        entry.compress_type = zipfile.ZIP_DEFLATED
        self.file.writestr(entry, data)
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        self.records.append(f"{name},sha256={digest},{len(data)}")

    def close(self):
        for name, text in self.tail:
            self.add(name, text)
        self.records.append(f"{self.info}/RECORD,,\n")
        self.file.writestr(f"{self.info}/RECORD", "\n".join(self.records))
        self.file.close()
        return self.name


# ---- PEP 517 and PEP 660 -------------------------------------------------------------------------


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    files = payload(find_build())  # first: a mistake leaves no half wheel
    archive = Archive(wheel_directory, f"py3-none-{platform_tag()}")
    for name, content, is_program in files:
        archive.add(name, content, is_program)
    return archive.close()


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    """The package in place; `tune` is that of PATH or $TUNE_PROGRAM."""
    archive = Archive(wheel_directory, "py3-none-any")
    archive.add("tune_cpp.pth", f"{HERE}\n")
    return archive.close()


def build_sdist(sdist_directory, config_settings=None):
    raise SystemExit("wheel: there is no source distribution: clone the repository")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", help="folder of a build of tune")
    parser.add_argument("--output", default=".", help="where the wheel goes (.)")
    arguments = parser.parse_args()
    if arguments.build:
        os.environ["TUNE_BUILD_DIR"] = arguments.build
    Path(arguments.output).mkdir(parents=True, exist_ok=True)
    print(Path(arguments.output) / build_wheel(arguments.output))


if __name__ == "__main__":
    sys.exit(main())
