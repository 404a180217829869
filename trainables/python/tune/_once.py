"""One of many processes of a node runs a function, the others wait for it, by the kernel's
lock (flock): what trainables/once_per_node.h is in C++."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from typing import Any, Callable, Tuple


def run_once(directory: Path, name: str, function: Callable[[], Any]) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    key = "once-python-" + name.encode().hex()[:160]
    outcome = directory / (key + ".outcome")
    failures_before = _read(outcome)[1]
    descriptor = os.open(directory / (key + ".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        is_done, failures, error = _read(outcome)
        if is_done:
            return
        # The function threw while this process waited. A process that comes later tries again.
        if failures > failures_before:
            raise RuntimeError(error)
        try:
            function()
        except BaseException as failure:
            _write(outcome, f"-{failures + 1} {type(failure).__name__}: {failure}")
            raise
        _write(outcome, "+")
    finally:
        os.close(descriptor)


def _read(path: Path) -> Tuple[bool, int, str]:
    try:
        text = path.read_text("utf-8", "replace")
    except FileNotFoundError:
        return False, 0, ""
    if not text.startswith("-"):
        return text.startswith("+"), 0, ""
    failures, _, error = text[1:].partition(" ")
    return False, int(failures), error


def _write(path: Path, text: str) -> None:
    fresh = path.with_name(path.name + ".new")
    fresh.write_text(text, "utf-8", "replace")
    os.replace(fresh, path)
