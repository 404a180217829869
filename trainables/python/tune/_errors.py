"""Errors that callers of the package see."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ._analysis import Analysis


class Error(Exception):
    """The input, the machine or the store refused something; the message says what and the way out."""

    __module__ = "tune"  # as callers name it, in tracebacks too


class BadInput(Error, ValueError):
    """An option, a configuration or a trainable that cannot be used. All mistakes come at once."""

    __module__ = "tune"


class TrialError(Error):
    """All trials have ended, and some failed. ``analysis`` holds what was found."""

    __module__ = "tune"

    def __init__(self, message: str, analysis: Analysis) -> None:
        super().__init__(message)
        self.analysis = analysis


class InterruptedRun(KeyboardInterrupt):
    """The run was interrupted: its trials are saved, and it can be resumed from ``directory``."""

    __module__ = "tune"

    def __init__(self, message: str, directory: str) -> None:
        super().__init__(message)
        self.directory = directory


class TrialOver(BaseException):
    """Raised by ``report`` when the trial is over, so that a function trainable ends there.

    It is not an ``Exception``: ``except Exception`` lets it pass, ``finally`` blocks run.
    """

    __module__ = "tune"
