"""Starts the driver of a tune.run, with this process as it stands as the zygote of its trials.

Workers must be the agent's children, as the agent learns from the kernel how they ended, and a worker
with this process's memory must come from this process by forks. So three processes are forked in a
row, each the child of the one before: the first executes `tune` as the driver, the second executes it
as the agent, which waits for the driver's order, and the third stays as it is, the zygote
(core/agent/agent_program.h, WaitingAgent). Nothing is pickled.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import warnings
from typing import Any, Dict, List, NoReturn, Optional, Tuple

from . import _process
from ._entry import Entry
from ._pack import pack
from ._programs import environment, tune_program
from ._zygote import run_zygote


class Driver:
    """The process, and what it says: `status` is readable while it shows what it does."""

    def __init__(self, pid: int, outcome: int, status: Optional[int]) -> None:
        self.pid = pid
        self.outcome = outcome
        self.status = status

    def signal(self, number: int) -> None:
        try:
            os.kill(self.pid, number)
        except ProcessLookupError:
            pass

    def end(self) -> Dict[str, Any]:
        """Its outcome, once `outcome` is at its end."""
        with os.fdopen(self.outcome, "rb") as stream:
            told = stream.read()
        if self.status is not None:
            os.close(self.status)
        _, status = os.waitpid(self.pid, 0)
        if told.strip():
            outcome: Dict[str, Any] = json.loads(told)
            return outcome
        how = (
            f"signal {os.WTERMSIG(status)}"
            if os.WIFSIGNALED(status)
            else f"exit code {os.WEXITSTATUS(status)}"
        )
        return {"error": f"the driver (pid {self.pid}) ended with {how}", "code": 3}


def start_driver(order: Dict[str, Any], entry: Optional[Entry], streams_status: bool) -> Driver:
    """With an entry the trials are forks of this process; else the order says what they are."""
    program = tune_program()
    environ = environment()
    outcome_read, outcome = os.pipe()
    status_read, status = os.pipe() if streams_status else (None, None)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError, AttributeError):
            pass
    caller = os.getpid()
    with warnings.catch_warnings():  # we have warned of threads already
        warnings.simplefilter("ignore", DeprecationWarning)
        pid = os.fork()
    if pid == 0:
        _be_driver(_Start(program, environ, order, entry, outcome, status, caller))
    os.close(outcome)
    if status is not None:
        os.close(status)
    return Driver(pid, outcome_read, status_read)


class _Start:
    def __init__(
        self,
        program: str,
        environ: Dict[str, str],
        order: Dict[str, Any],
        entry: Optional[Entry],
        outcome: int,
        status: Optional[int],
        caller: int,
    ) -> None:
        self.program = program
        self.environ = environ
        self.order = order
        self.entry = entry
        self.outcome = outcome
        self.status = status
        self.caller = caller


def _be_driver(start: _Start) -> NoReturn:
    """In the first child. Ends with the caller, by a signal that lets trials save."""
    try:
        os.setpgid(0, 0)  # Ctrl-C is passed on by the caller, once
        _process.die_with_parent(signal.SIGUSR1)  # kCallerGoneSignal of tune/drive/driver.cc
        if os.getppid() != start.caller:
            os._exit(1)
        inherited = [start.outcome]
        order = dict(start.order, outcome=start.outcome)
        if start.status is not None:
            inherited.append(start.status)
            order["status"] = start.status
        if start.entry is not None:
            ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            agent = os.fork()
            if agent == 0:
                ours.close()
                _be_agent(start, theirs)
            theirs.close()
            order["agent"] = {"pid": agent, "socket": ours.fileno()}
            inherited.append(ours.fileno())
        told = os.memfd_create("tune-order")
        data = pack(order)
        while data:
            data = data[os.write(told, data) :]
        os.lseek(told, 0, os.SEEK_SET)
        arguments = [start.program, "python-run", "--order-fd", str(told)]
        _execute(arguments, start.environ, [told, *inherited])
    except BaseException as error:
        text = json.dumps({"error": f"starting {start.program}: {error}", "code": 3})
        os.write(start.outcome, text.encode())
    finally:
        os._exit(1)


def _be_agent(start: _Start, order: socket.socket) -> NoReturn:
    """In the second child: it has the zygote as its child before it becomes the program."""
    try:
        for descriptor in (start.outcome, start.status):
            if descriptor is not None:
                os.close(descriptor)
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        zygote = os.fork()
        if zygote == 0:
            ours.close()
            order.close()
            assert start.entry is not None
            if _outlives_driver(start.order["options"]):
                _process.leave_output()
            run_zygote(theirs.detach(), [start.entry])
        theirs.close()
        told = {
            "TUNE_AGENT_ORDER": str(order.fileno()),
            "TUNE_AGENT_ZYGOTE": f"{zygote}:{ours.fileno()}",
        }
        descriptors = [order.fileno(), ours.fileno()]
        _execute([start.program, "agent"], {**start.environ, **told}, descriptors)
    finally:
        os._exit(1)


def _outlives_driver(options: Dict[str, Any]) -> bool:
    """Whether the agent does (own_agent_stays in tune/spec/pool_value.cc)."""
    pool = options.get("pool")
    if pool and not pool.get("local"):
        return False
    return bool(pool or options.get("listen") or options.get("patience_s") is not None)


def _execute(arguments: List[str], environ: Dict[str, str], inherited: List[int]) -> NoReturn:
    for descriptor in inherited:
        os.set_inheritable(descriptor, True)
    for number in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores them
        signal.signal(number, signal.SIG_DFL)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    os.execve(arguments[0], arguments, environ)


# ---- This program, executed again ----------------------------------------------------------------


def this_program(call: int, earlier: List[str]) -> Dict[str, Any]:
    """How this program is executed again, for `tune resume` or when its zygote has died
    (tune/drive/program_call.h). A prompt or notebook cannot be: its executable is empty."""
    words = _command_line()
    repeatable = bool(words) and not _is_interactive()
    return {
        "executable": sys.executable if repeatable else "",
        "arguments": words[1:] if repeatable else [],
        "working_directory": os.getcwd(),
        "call": call,
        "earlier": earlier,
    }


def _command_line() -> List[str]:
    with open("/proc/self/cmdline", "rb") as file:
        return [os.fsdecode(word) for word in file.read().split(b"\0")[:-1]]


def _is_interactive() -> bool:
    import __main__

    if hasattr(sys, "ps1") or "ipykernel" in sys.modules or sys.flags.interactive:
        return True
    has_code = "-c" in getattr(sys, "orig_argv", _command_line())
    return not hasattr(__main__, "__file__") and not has_code


def _executed_again() -> Optional[Dict[str, Any]]:
    told = os.environ.pop("TUNE_PROGRAM_CALL", None)  # not for programs that this one starts
    return None if told is None else json.loads(told)


#: why this process was executed; None for a program that a person started
executed_again = _executed_again()


def signal_of(outcome: Dict[str, Any]) -> Tuple[int, str]:
    number = outcome.get("signal", 0)
    return number, signal.Signals(number).name if number else ""
