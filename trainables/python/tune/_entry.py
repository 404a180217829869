"""What trials can run: a class or a function, under a name."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any, Callable

from ._contract import TrainableInfo
from ._trainable import Trainable


@dataclass
class Entry:
    name: str
    what: Callable[..., Any]
    is_function: bool
    can_save: bool
    takes_session: bool = False

    @property
    def info(self) -> TrainableInfo:
        return TrainableInfo(self.name, self.can_save, self.is_function)


def entry_of(what: Any) -> Entry:
    """Raises TypeError for what can be no trainable, with the way out."""
    if inspect.isclass(what):
        return _class_entry(what)
    if not callable(what):
        raise TypeError(
            f"{what!r} is neither a class with setup and step nor a function of the configuration"
        )
    name = getattr(what, "__name__", type(what).__name__)
    return Entry(_plain_name(name), what, True, True, _takes_session(what))


def _class_entry(kind: type) -> Entry:
    if not callable(getattr(kind, "step", None)) or kind.step is Trainable.step:  # type: ignore
        raise TypeError(f"the class {kind.__name__} has no step: write def step(self), which returns a result")
    for theirs, ours in (("save_checkpoint", "save"), ("load_checkpoint", "load")):
        if hasattr(kind, theirs) and not _writes(kind, ours):
            raise TypeError(
                f"the class {kind.__name__} has {theirs}: here it is named {ours}, and takes the "
                "folder; rename it"
            )
    can_save = _writes(kind, "save") and _writes(kind, "load")
    return Entry(_plain_name(kind.__name__), kind, False, can_save)


def _writes(kind: type, method: str) -> bool:
    written = getattr(kind, method, None)
    return callable(written) and written is not getattr(Trainable, method)


def _plain_name(name: str) -> str:
    plain = "".join(c if c.isascii() and c.isalnum() else "_" for c in name).strip("_")
    return plain or "function"


def _takes_session(function: Callable[..., Any]) -> bool:
    """Whether it is f(config, session), and not f(config)."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return False
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    needed = [
        p for p in signature.parameters.values() if p.kind in kinds and p.default is p.empty
    ]
    if len(needed) in (1, 2):
        return len(needed) == 2
    if not needed and any(p.kind in kinds for p in signature.parameters.values()):
        return False
    raise TypeError(
        f"{getattr(function, '__name__', function)} takes {len(needed)} arguments: a function "
        "trainable is f(config) or f(config, session)"
    )
