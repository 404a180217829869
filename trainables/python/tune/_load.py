"""A trainable by its name: "train.py:Train", or "package.module:Train"."""

from __future__ import annotations

import difflib
import importlib
import importlib.util
import inspect
import os
import sys
import traceback
from types import ModuleType
from typing import Any, Iterable, List

from ._entry import Entry, entry_of
from ._trainable import Trainable

_PACKAGE = os.path.dirname(os.path.abspath(__file__))
_IMPORTERS = (_PACKAGE, os.path.dirname(importlib.__file__), "<frozen")


class LoadError(Exception):
    """Why it cannot be loaded: one text that names file and line."""


def preload(modules: Iterable[str]) -> None:
    for name in modules:
        try:
            importlib.import_module(name)
        except BaseException as error:
            raise LoadError(f"importing {name}: {_where(error)}") from error


def add_path_of(target: str) -> None:
    """The folder in which its neighbours are found: that of the file, as Python does for a program, or
    the working directory."""
    place = target.rpartition(":")[0]
    folder = os.path.dirname(os.path.abspath(place)) if place.endswith(".py") else os.getcwd()
    if folder not in sys.path:
        sys.path.insert(0, folder)


def load(target: str) -> Entry:
    """Imports the module of "<file or module>:<name>" and looks the name up in it."""
    place, colon, name = target.rpartition(":")
    if not colon or not place or not name:
        raise LoadError(
            f"{target!r} names no trainable: write train.py:Train, a file or module and the class or "
            "function in it"
        )
    add_path_of(target)
    module = _import_file(place) if place.endswith(".py") else _import_module(place)
    found = module
    for part in name.split("."):
        if not hasattr(found, part):
            raise LoadError(_is_not_there(module, place, name))
        found = getattr(found, part)
    try:
        entry = entry_of(found)
    except TypeError as error:
        raise LoadError(f"{target}: {error}") from error
    entry.name = name
    return entry


def _import_file(path: str) -> ModuleType:
    path = os.path.abspath(path)
    if not os.path.isfile(path):
        raise LoadError(f"there is no file {path}")
    name = os.path.basename(path)[: -len(".py")]
    if not name.isidentifier() or name in sys.modules:
        name = "tune_trainable_" + "".join(c if c.isalnum() else "_" for c in name)
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # so that what is pickled is found again
    try:
        spec.loader.exec_module(module)
    except BaseException as error:
        where = _where(error)
        if not where.startswith(path):
            where = f"importing {path}: {where}"
        raise LoadError(where) from error
    return module


def _import_module(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except BaseException as error:
        raise LoadError(f"importing {name}: {_where(error)}") from error


def _where(error: BaseException) -> str:
    """"/a/train.py:12: NameError: ...": the last place in code that is not Python's own."""
    if isinstance(error, SyntaxError) and error.filename:
        text = f" in {error.text.strip()!r}" if error.text else ""
        return f"{error.filename}:{error.lineno}: {type(error).__name__}: {error.msg}{text}"
    words = "".join(traceback.format_exception_only(type(error), error)).strip()
    own = (_PACKAGE, os.path.dirname(os.__file__), "<frozen")
    places = [
        f"{frame.filename}:{frame.lineno}: "
        for frame in traceback.extract_tb(error.__traceback__)
        if not frame.filename.startswith(own) or "site-packages" in frame.filename
    ]
    return (places[-1] if places else "") + words


def print_users_traceback(failure: LoadError) -> None:
    """From the first frame that is neither this package's nor the import's; nothing without one."""
    cause = failure.__cause__
    frames = cause.__traceback__ if cause is not None else None
    while frames is not None and frames.tb_frame.f_code.co_filename.startswith(_IMPORTERS):
        frames = frames.tb_next
    if cause is not None and frames is not None:
        traceback.print_exception(type(cause), cause, frames)
        sys.stderr.flush()


def _is_not_there(module: ModuleType, place: str, name: str) -> str:
    names = _candidates(module)
    near = difflib.get_close_matches(name, names, 1)
    meant = f" (did you mean '{near[0]}'?)" if near else ""
    return f"there is no '{name}' in {place}{meant}; it has: {', '.join(names) or 'none'}"


def _candidates(module: ModuleType) -> List[str]:
    def fits(value: Any) -> bool:
        if inspect.isclass(value):
            return value is not Trainable and callable(getattr(value, "step", None))
        return inspect.isfunction(value)

    return [
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and fits(value) and value.__module__ == module.__name__
    ]
