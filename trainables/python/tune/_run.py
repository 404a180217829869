"""tune.run: the front door."""

from __future__ import annotations

import os
import select
import signal
import sys
import threading
from typing import Any, Callable, Dict, List, Optional, Union

from . import _process
from ._analysis import Analysis
from ._driver import Driver, executed_again, signal_of, start_driver, this_program
from ._entry import Entry, entry_of
from ._errors import BadInput, Error, InterruptedRun, TrialError
from ._methods import Method, named
from ._notebook import StatusView, make_view
from ._pack import PackError, pack
from ._space import describe, nested
from ._zygote import run_zygote

_earlier: List[str] = []  # folders of this process's earlier calls; its size numbers the calls
_has_warned_of_threads = False


class AtMost:
    def __init__(self, bound: float) -> None:
        self.bound = bound


def at_most(bound: float) -> AtMost:
    """For ``stop``: ends a trial whose value is at or below the bound."""
    return AtMost(bound)


def run(
    trainable: Union[str, type, Callable[..., Any]],
    config: Optional[Dict[str, Any]] = None,
    *,
    num_samples: int = 1,
    metric: Optional[str] = None,
    mode: Optional[str] = None,
    scheduler: Union[Method, str, Dict[str, Any], None] = None,
    searcher: Union[Method, str, Dict[str, Any], None] = None,
    stop: Optional[Dict[str, Any]] = None,
    resources_per_trial: Optional[Dict[str, Any]] = None,
    name: Optional[str] = None,
    storage: Optional[str] = None,
    seed: Optional[int] = None,
    checkpoint: Optional[Dict[str, Any]] = None,
    max_failures: int = 0,
    raise_on_failed_trial: bool = True,
    if_exists: str = "refuse",
    retry_errored: bool = False,
    quiet: bool = False,
    preload: Optional[List[str]] = None,
    **options: Any,
) -> Analysis:
    """Runs trials of ``trainable`` with configurations drawn from ``config`` and returns what was
    found, when every trial is over.

    ``trainable``: a class with setup, step, save and load (:class:`tune.Trainable`), a function
    ``f(config)`` or ``f(config, session)``, or the name of one, ``"train.py:Train"``. Trials of a
    class or function are forks of this process as it stands: data it has loaded is shared, closures
    work. Trials of a name are forks of a process that imports it, after the modules in ``preload``.

    ``resources_per_trial``: ``{"cpu": 2, "gpu": 1, "ranks": 2, "memory": "8GiB"}``. ``stop``:
    ``{"accuracy": 0.99, "loss": tune.at_most(0.1)}``. ``checkpoint``: ``{"frequency": 1, "keep": 1}``.
    ``if_exists``: "refuse", "resume" or "fresh". Further options are the fields of RunOptions in
    tune/spec/run_options.h: ``time_budget_s``, ``max_concurrent_trials``, ``points_to_evaluate``,
    ``env``, ``where``, ``hang_timeout_s`` and others.

    Raises :class:`tune.BadInput` with all mistakes at once; :class:`tune.TrialError` when all trials
    have ended and some failed, unless ``raise_on_failed_trial`` is False; after Ctrl-C
    :class:`tune.InterruptedRun`: trials are saved, and ``if_exists="resume"`` goes on.
    """
    given = dict(
        num_samples=num_samples, metric=metric, mode=mode, name=name, storage=storage, seed=seed,
        checkpoint=checkpoint, max_failures=max_failures, if_exists=if_exists, quiet=quiet,
        resources_per_trial=resources_per_trial, **options,
    )
    written = {key: value for key, value in given.items() if value is not None}
    for kind, method in (("scheduler", scheduler), ("searcher", searcher)):
        if method is not None:
            written[kind] = named(kind, method)
    if stop is not None:
        written["stop"] = nested({key: _bound(value) for key, value in stop.items()})
    written["config"] = describe(config or {})
    return _Run(trainable, written, preload or [], retry_errored).run(raise_on_failed_trial)


def _bound(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _bound(item) for key, item in value.items()}
    return {"<=": value.bound} if isinstance(value, AtMost) else value


class _Run:
    def __init__(
        self, trainable: Any, options: Dict[str, Any], preload: List[str], retry_errored: bool
    ) -> None:
        self._options = options
        self._call = len(_earlier) + 1
        self._order: Dict[str, Any] = {"options": options, "retry_errored": retry_errored}
        self._entry: Optional[Entry] = None
        if isinstance(trainable, str):
            self._order["python"] = {
                "target": _absolute(trainable), "preload": preload, "interpreter": sys.executable
            }
        else:
            self._entry = _checked_entry(trainable, preload)

    def run(self, raise_on_failed_trial: bool) -> Analysis:
        again = executed_again
        if again is not None and self._call < again["call"]:
            _earlier.append(again["earlier"][self._call - 1])
            return Analysis.load(_earlier[-1])
        if again is not None and self._call == again["call"]:
            self._be_executed_again(again)
        outcome = self._drive()
        if "error" in outcome:
            raise (BadInput if outcome["code"] == 2 else Error)(outcome["error"])
        directory = outcome["directory"]
        _earlier.append(directory)
        number, name = signal_of(outcome)
        if number:
            raise InterruptedRun(f"{name}: resume with: {self._how_to_resume(outcome)}", directory)
        analysis = Analysis.load(directory)
        if outcome["errored"] and raise_on_failed_trial:
            raise TrialError(_failed(outcome["errored"], directory), analysis)
        return analysis

    def _how_to_resume(self, outcome: Dict[str, Any]) -> str:
        program = self._order.get("program")
        if program is None or program["executable"]:
            command: str = outcome["resume"]
            return command
        name = os.path.basename(outcome["directory"])
        return f'tune.run(..., name="{name}", if_exists="resume")'  # a notebook

    def _be_executed_again(self, again: Dict[str, Any]) -> None:
        if again["role"] == "zygote":
            assert self._entry is not None
            run_zygote(int(again["control"]), [self._entry])
        self._order["resume"] = again["directory"]
        self._order["retry_errored"] = again.get("retry_errored", False)
        for flag in ("quiet", "wait_gpus"):
            if again.get(flag):
                self._options[flag] = True
        for option in ("num_samples", "time_budget_s"):
            if option in again:
                self._options[option] = again[option]
        self._options["listen"] = again["listen"]

    def _drive(self) -> Dict[str, Any]:
        if self._entry is not None:
            info = self._entry.info
            self._order["trainable"] = {
                "name": info.name, "can_save": info.can_save, "is_function": info.is_function
            }
            self._order["program"] = this_program(self._call, list(_earlier))
            _check_process()
        try:
            pack(self._order)
        except PackError as error:
            raise BadInput(str(error).replace("options/", "", 1)) from None
        view = None if self._options.get("quiet") else make_view()
        driver = start_driver(self._order, self._entry, view is not None)
        return _wait(driver, view)


def _checked_entry(trainable: Any, preload: List[str]) -> Entry:
    if preload:
        raise BadInput(
            "preload is for a trainable that is given by its name, 'train.py:Train': this process "
            "has imported its modules itself"
        )
    try:
        return entry_of(trainable)
    except TypeError as error:
        raise BadInput(str(error)) from None


def _absolute(target: str) -> str:
    place, colon, name = target.rpartition(":")
    return f"{os.path.abspath(place)}{colon}{name}" if place.endswith(".py") else target


def _check_process() -> None:
    """Trials are forks of this process: it must be fit for that."""
    global _has_warned_of_threads
    if _process.cuda_is_initialised():
        raise BadInput(
            "this process has initialised CUDA, so that its forks could not use a GPU: call tune.run "
            "before the first use of the GPU (torch.cuda.is_available() is harmless when "
            "PYTORCH_NVML_BASED_CUDA_CHECK=1), or put the trainable into a file and name it: "
            'tune.run("train.py:Train", ...)'
        )
    threads = _process.live_threads() - 1
    if threads <= 0 or _has_warned_of_threads:
        return
    _has_warned_of_threads = True
    names = [t.name for t in threading.enumerate() if t is not threading.main_thread()]
    listed = f" ({', '.join(names[:5])})" if names else " of libraries"
    print(
        f"warning: this process runs {threads} other thread{'s' if threads > 1 else ''}{listed}: "
        "its forks have none, and a lock that such a thread holds now stays locked there. "
        "Should trials hang, put the trainable into a file and name it: "
        'tune.run("train.py:Train", ...)',
        file=sys.stderr,
    )


# ---- While it runs -------------------------------------------------------------------------------


def _wait(driver: Driver, view: Optional[StatusView]) -> Dict[str, Any]:
    """Until the driver has ended. Ctrl-C is passed on: trials save, and the run ends; a second one
    ends it at once."""
    try:
        while True:
            try:
                _watch(driver, view)
                return driver.end()
            except KeyboardInterrupt:
                driver.signal(signal.SIGINT)
    except BaseException:
        driver.signal(signal.SIGTERM)
        raise


def _watch(driver: Driver, view: Optional[StatusView]) -> None:
    open_ends = [driver.outcome] if driver.status is None else [driver.outcome, driver.status]
    while True:
        ready = select.select(open_ends, [], [])[0]
        if driver.status in ready:
            data = os.read(driver.status, 1 << 16)
            assert view is not None
            view.take(data)
            if not data:
                open_ends.remove(driver.status)
        elif driver.outcome in ready:
            return


def _failed(errored: int, directory: str) -> str:
    trials = "1 trial has" if errored == 1 else f"{errored} trials have"
    return f"{trials} failed: see error.txt in the folders of {directory}"
