"""The program that a sweep's ``python: train.py:Train`` starts: it imports what the sweep names, then
forks its trials. Started by the agent, see core/agent/python_command.h."""

from __future__ import annotations

from typing import List, NoReturn

from ._entry import Entry
from ._load import LoadError, add_path_of, load, preload, print_users_traceback
from ._zygote import run_zygote


def main(arguments: List[str]) -> NoReturn:
    """--control-fd N --target FILE:NAME [--preload MODULE]..."""
    control, target, modules = -1, "", []
    for option, value in zip(arguments[::2], arguments[1::2]):
        if option == "--control-fd":
            control = int(value)
        elif option == "--target":
            target = value
        elif option == "--preload":
            modules.append(value)
    entries: List[Entry] = []
    error = ""
    try:
        add_path_of(target)
        _preload(modules)
        entries.append(_load(target))
    except LoadError as failure:
        error = str(failure)  # begins with the key of the sweep that is wrong
        print_users_traceback(failure)
    run_zygote(control, entries, error)


def _preload(modules: List[str]) -> None:
    try:
        preload(modules)
    except LoadError as failure:
        raise LoadError(f"preload: {failure}") from failure.__cause__


def _load(target: str) -> Entry:
    try:
        return load(target)
    except LoadError as failure:
        raise LoadError(f"python: {failure}") from failure.__cause__
