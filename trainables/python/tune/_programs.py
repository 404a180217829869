"""Where the programs are that do the work: in the wheel, beside the package in a build or an
installation, or in PATH."""

from __future__ import annotations

import os
import shutil
import sys
from typing import Dict, List, Optional

from ._errors import Error

_PACKAGE = os.path.dirname(os.path.abspath(__file__))


def tune_program() -> str:
    """The path of the program `tune`; $TUNE_PROGRAM names another one."""
    given = os.environ.get("TUNE_PROGRAM")
    places = [given] if given else [
        os.path.join(_PACKAGE, "_bin", "tune"),
        os.path.join(_PACKAGE, "..", "..", "..", "..", "bin", "tune"),  # share/tune/python/tune
    ]
    for place in places:
        if place and os.access(place, os.X_OK):
            return os.path.abspath(place)
    found = None if given else shutil.which("tune")
    if found is None:
        raise Error(
            f"there is no program {given or 'tune'}: install the wheel (trainables/python/README.md), "
            "or name it in TUNE_PROGRAM"
        )
    return found


def signals_library() -> Optional[str]:
    """The path of libtune_signals.so: in the wheel, else beside the program."""
    name = "libtune_signals.so"
    places = [os.path.join(_PACKAGE, "_lib", name)]
    try:
        prefix = os.path.dirname(os.path.dirname(os.path.realpath(tune_program())))
        places += [os.path.join(prefix, folder, name) for folder in _library_folders()]
    except Error:
        pass
    return next((place for place in places if os.path.isfile(place)), None)


def _library_folders() -> List[str]:
    import sysconfig

    multiarch = sysconfig.get_config_var("MULTIARCH")
    return ["lib", *([f"lib/{multiarch}"] if multiarch else []), "lib64"]


def environment() -> Dict[str, str]:
    """For the program: this interpreter, this package, and the wheel's redis-server."""
    added = dict(os.environ)
    added.setdefault("TUNE_PYTHON", sys.executable)
    redis = os.path.join(_PACKAGE, "_bin", "redis-server")
    if os.access(redis, os.X_OK):
        added.setdefault("TUNE_REDIS_SERVER", redis)
    return added


def main() -> None:
    """The console script `tune`."""
    program = tune_program()
    os.execve(program, [program, *sys.argv[1:]], environment())
