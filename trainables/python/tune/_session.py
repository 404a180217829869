"""Session: the interface of a function trainable. ``report`` is its step boundary."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Callable, Dict, Optional

from ._errors import TrialOver
from ._trainable import Context

Save = Callable[[Path], Any]


class Session:
    """What a trial's function says and asks: handed to ``f(config, session)``, and behind
    :func:`tune.report`, :func:`tune.checkpoint` and :func:`tune.context`."""

    def __init__(
        self,
        context: Context,
        checkpoint: Optional[Path],
        end_step: Callable[[Dict[str, Any], Optional[Save]], bool],
    ) -> None:
        self.context = context
        self._checkpoint = checkpoint
        self._end_step = end_step
        self._process = os.getpid()

    def report(
        self,
        result: Optional[Dict[str, Any]] = None,
        save: Optional[Save] = None,
        **metrics: Any,
    ) -> bool:
        """One result: ``report({"loss": 0.1})`` or ``report(loss=0.1)``. training_iteration counts them.

        With ``save``, a function of a folder, the trial can be checkpointed here: it is called when a
        checkpoint is due. Returns True; when the trial is over it raises :class:`tune.TrialOver`,
        which ends the function, and which ``except Exception`` lets pass.
        """
        if os.getpid() != self._process:
            raise RuntimeError(
                "report: this is a child of the trial's process: report in the trial's own process"
            )
        if metrics:
            result = {**(result or {}), **metrics}
        if not isinstance(result, dict) or not result:
            raise TypeError(f"report: a result is a dict such as {{'loss': 0.1}}, not {result!r}")
        if not self._end_step(result, save):
            raise TrialOver()
        return True

    def checkpoint(self) -> Optional[Path]:
        """The folder to load at the start; None when the trial starts afresh."""
        return self._checkpoint


_current: Optional[Session] = None


def set_session(session: Optional[Session]) -> None:
    global _current
    _current = session


def session() -> Session:
    """The session of the trial that this process runs."""
    if _current is None:
        raise RuntimeError("this process runs no trial: call it in a function given to tune.run")
    return _current


def report(
    result: Optional[Dict[str, Any]] = None, save: Optional[Save] = None, **metrics: Any
) -> bool:
    """Reports one result of the trial that this process runs: see :meth:`tune.Session.report`."""
    return session().report(result, save, **metrics)


def checkpoint() -> Optional[Path]:
    """The folder of the checkpoint that this trial goes on from; None when it starts afresh."""
    return session().checkpoint()


def context() -> Context:
    """The place of this trial's process: trial id, seed, rank, CPUs, GPUs."""
    return session().context
