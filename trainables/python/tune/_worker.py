"""A worker: one rank of one attempt, a process's whole life after the fork (trainables/worker.h)."""

from __future__ import annotations

import faulthandler
import gc
import os
import re
import shutil
import sys
import time
import traceback
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Dict, Iterator, Optional

from . import _contract as contract
from . import _process
from ._channel import Channel
from ._entry import Entry
from ._errors import TrialOver
from ._pack import unpack
from ._session import Save, Session, set_session
from ._steps import AttemptFailed, Edge, Steps
from ._trainable import Context

_PACKAGE = os.path.dirname(os.path.abspath(__file__))


def run_worker(entry: Entry, descriptor: int) -> int:
    """Reads StartWorker from the socket to the agent, runs the trainable until its attempt is over and
    reports the end. Returns the exit code; the caller ends the process with it. Never raises."""
    channel = Channel(descriptor)
    try:
        return _run_attempt(entry, channel)
    except BaseException:
        _print_traceback()
        return 1  # not even the error could be said; the agent reports the exit code


def _run_attempt(entry: Entry, channel: Channel) -> int:
    try:
        start = channel.wait()
        if not isinstance(start, contract.StartWorker):
            raise AttemptFailed("setup: the agent's first word was not a start")
        with _in_phase("setup"):
            _prepare_process(start)
        attempt = _Attempt(start, channel)
        attempt.run_function(entry) if entry.is_function else attempt.run_class(entry)
        _flush_output()
        channel.send(attempt.steps.last_word())
        return 0
    except contract.OtherContract as other:
        channel.send(contract.worker_ended(contract.EXCEPTION, str(other)))
        return 1
    except SystemExit as end:
        return _exit_code(end)
    except BaseException as error:
        return _fail(error, channel)


def _fail(error: BaseException, channel: Channel) -> int:
    """Said at once, while the trainable still stands: the other ranks of a group wait in vain."""
    cause = str(error) if isinstance(error, AttemptFailed) else _describe(error)
    _print_traceback()
    print(f"error: {cause}", file=sys.stderr)
    _flush_output()
    origin = error.__cause__ if isinstance(error, AttemptFailed) else error
    channel.send(contract.worker_ended(contract.EXCEPTION, cause, _is_of_group(origin)))
    return 1


def _exit_code(end: SystemExit) -> int:
    """sys.exit in a trial: the process exits on its own, which counts as a failure."""
    if end.code is not None and not isinstance(end.code, int):
        print(end.code, file=sys.stderr)
    _flush_output()
    return end.code if isinstance(end.code, int) else int(end.code is not None)


# ---- The attempt ---------------------------------------------------------------------------------


class _Attempt(Edge):
    def __init__(self, start: contract.StartWorker, channel: Channel) -> None:
        self._start = start
        self._channel = channel
        self._saves = False
        self._folder = Path(start.trial_directory)
        self.steps = Steps(start, self)
        self.context = Context(
            trial_id=start.trial_id,
            trial_directory=self._folder,
            attempt=start.launch.attempt,
            seed=start.launch.seed,
            iteration=start.launch.restore_iteration,
            rank=start.rank,
            world_size=start.launch.ranks,
            local_rank=start.local_rank,
            cpus=start.threads,
            gpu_ids=start.gpu_devices,
            once_directory=start.once_directory,
            said_alone=self._say_alone if start.launch.ranks > 1 else None,
        )
        self.send = channel.send  # type: ignore[method-assign]
        self.wait = channel.wait  # type: ignore[method-assign]
        self.poll = channel.poll  # type: ignore[method-assign]
        self.now = time.monotonic_ns  # type: ignore[method-assign]

    def run_class(self, entry: Entry) -> None:
        with _in_phase("setup"):
            trainable = entry.what()
            trainable.context = self.context
            trainable.setup(self._config())
        checkpoint = self._checkpoint()
        if checkpoint is not None:
            self.steps.set_up()
            with _in_phase("load"):
                trainable.load(_existing(checkpoint))
        save: Optional[Save] = trainable.save if entry.can_save else None
        more = self.steps.ready()
        while more:
            with _in_phase("step"):
                result = trainable.step()
                if not isinstance(result, dict):
                    raise TypeError(f"it returned {result!r}: return a result such as {{'loss': 0.1}}")
                more = self._end_step(result, save)
        with _in_phase("end"):
            del trainable, save

    def run_function(self, entry: Entry) -> None:
        checkpoint = self._checkpoint()
        if checkpoint is not None:
            self.steps.set_up()
            with _in_phase("load"):
                _existing(checkpoint)
        session = Session(self.context, checkpoint, self._end_step)
        set_session(session)
        if not self.steps.ready():
            return
        with _in_phase("function"):
            try:
                config = self._config()
                entry.what(config, session) if entry.takes_session else entry.what(config)
            except TrialOver:
                pass
        self.steps.returned()

    def _end_step(self, result: Dict[str, Any], save: Optional[Save]) -> bool:
        more = self.steps.report(result, save)
        self.context.iteration = self.steps.iteration
        return more

    def _config(self) -> Dict[str, Any]:
        config: Dict[str, Any] = unpack(self._start.launch.config)
        return config

    def _checkpoint(self) -> Optional[Path]:
        launch = self._start.launch
        if launch.restore_iteration == 0:
            return None
        if self._start.restore_folder:
            return Path(self._start.restore_folder)
        return self._folder / checkpoint_name(launch.restore_iteration, launch.restore_attempt)

    # ---- What the steps do to the world

    def prepare(self, iteration: int) -> None:
        with _in_phase("save"):
            folder = self._temporary(iteration)
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)

    def write(self, iteration: int, save: Optional[Save]) -> None:
        folder = self._temporary(iteration)
        self._saves = True
        with _in_phase("save"):
            if self._start.rank > 0:
                folder.mkdir(parents=True, exist_ok=True)  # rank 0's may be on another machine
            if save is not None:
                save(folder)
            _flush_checkpoint(folder)
        self._saves = False

    def leave_at_once(self) -> None:
        print("report was called after the end of the trial; the process ends here", file=sys.stderr)
        _flush_output()
        os._exit(0)

    def _temporary(self, iteration: int) -> Path:
        return self._folder / f".checkpoint_{iteration:06}.tmp-{self._start.launch.attempt}"

    def _say_alone(self, begins: bool) -> None:
        if not self._saves:  # the agent knows of a save
            self._channel.send(contract.rank_alone(begins))


def checkpoint_name(iteration: int, attempt: int) -> str:
    """core/checkpoint_name.h."""
    return f"checkpoint_{iteration:06}" + (f"-a{attempt}" if attempt > 1 else "")


def _existing(folder: Path) -> Path:
    if not folder.is_dir():
        raise AttemptFailed(
            f"load: the checkpoint {folder} is not there; was it moved or deleted?"
        )
    return folder


def _flush_checkpoint(folder: Path) -> None:
    """Returns when every file and folder in it, and itself, is on the disk."""
    for path, _, files in os.walk(folder):
        for name in files:
            _flush(os.path.join(path, name), 0)
        _flush(path, os.O_DIRECTORY)


def _flush(path: str, flags: int) -> None:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | flags)
    except (FileNotFoundError, OSError) as error:
        if isinstance(error, FileNotFoundError) or os.path.islink(path):
            return  # gone again, or a link
        raise
    try:
        os.fsync(descriptor)
    except OSError:
        if not flags:  # some file systems cannot flush a folder
            raise
    finally:
        os.close(descriptor)


# ---- The process ---------------------------------------------------------------------------------


def _prepare_process(start: contract.StartWorker) -> None:
    os.environ.update(start.experiment.environment)
    os.environ.update(start.environment)
    os.makedirs(start.trial_directory, exist_ok=True)
    suffix = f".{start.rank}" if start.rank else ""
    line = f"--- attempt {start.launch.attempt} ---\n".encode()
    for descriptor, name in ((1, "stdout"), (2, "stderr")):
        path = os.path.join(start.trial_directory, name + suffix)
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        os.dup2(file, descriptor)
        os.close(file)
        os.write(descriptor, line)
        # Lines can be followed while the trial runs. A notebook's own stream would go nowhere.
        stream = open(
            descriptor, "w", buffering=1, encoding="utf-8", errors="backslashreplace", closefd=False
        )
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)
    faulthandler.enable(2)  # a crash in a library names the line that led there
    _process.prepare_libraries(start.threads, start.launch.seed)
    gc.enable()


def _flush_output() -> None:
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            pass


# ---- Errors --------------------------------------------------------------------------------------


@contextmanager
def _in_phase(phase: str) -> Iterator[None]:
    """Any exception within becomes AttemptFailed "<phase>: <its words>"."""
    try:
        yield
    except (AttemptFailed, TrialOver):
        raise
    except Exception as error:
        raise AttemptFailed(f"{phase}: {_describe(error)}") from error


def _describe(error: BaseException) -> str:
    return "".join(traceback.format_exception_only(type(error), error)).strip()


def _print_traceback() -> None:
    """From the user's own first frame on."""
    kind, error, frames = sys.exc_info()
    if isinstance(error, AttemptFailed):
        if error.__cause__ is None:
            return
        error = error.__cause__
        kind, frames = type(error), error.__traceback__
    while frames is not None and os.path.dirname(frames.tb_frame.f_code.co_filename) == _PACKAGE:
        frames = frames.tb_next
    traceback.print_exception(kind, error, frames)


_OF_GROUP = re.compile(
    r"gloo|NCCL|ProcessGroup|TCPStore|c10d|connection (closed|reset|refused)|broken pipe", re.I
)


def _is_of_group(error: Optional[BaseException]) -> bool:
    """Whether the end of another rank may be the cause: an error of torch.distributed."""
    if type(error).__module__.startswith("torch.distributed"):
        return True
    return isinstance(error, (RuntimeError, ConnectionError)) and bool(_OF_GROUP.search(str(error)))
