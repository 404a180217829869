"""The zygote: a process that has imported everything once and then only forks workers
(trainables/zygote.h)."""

from __future__ import annotations

import array
import os
import signal
import socket
import sys
import time
from typing import Dict, List, NoReturn, Optional, Tuple

from . import _contract as contract
from . import _process
from ._entry import Entry
from ._pack import PackError
from ._worker import run_worker

_AGENT_GONE_EXIT_CODE = 1
_RENDEZVOUS = "TUNE_RENDEZVOUS_FD"


def run_zygote(control: int, entries: List[Entry], error: str = "", note: str = "") -> NoReturn:
    """Says ZygoteReady on ``control`` (SOCK_SEQPACKET to the agent, this process's parent), then forks
    a worker for each SpawnRequest, until the agent closes it. Never returns, whatever happens."""
    try:
        _Zygote(control, entries).run(error, note)
    except (BrokenPipeError, ConnectionResetError):
        os._exit(_AGENT_GONE_EXIT_CODE)
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        os._exit(1)


class _Zygote:
    def __init__(self, control: int, entries: List[Entry]) -> None:
        self._control = socket.socket(fileno=control)
        self._control.setblocking(True)
        self._entries: Dict[str, Entry] = {entry.name: entry for entry in entries}
        self._agent = os.getppid()

    def run(self, error: str, note: str) -> NoReturn:
        os.environ.pop("LD_BIND_NOW", None)
        _process.close_on_exec()
        with open(os.devnull) as null:
            os.dup2(null.fileno(), 0)
        _process.forget_signal_handlers()
        _process.ignore_signals()
        _process.find_signal_handler()
        _process.find_libraries()
        _process.collect_garbage()
        infos = [entry.info for entry in self._entries.values()]
        self._control.send(contract.zygote_ready(error, infos, note))
        while True:
            packet, descriptors = self._receive()
            if not packet:
                os._exit(0)
            self._handle(packet, descriptors)
            for descriptor in descriptors:
                os.close(descriptor)

    def _receive(self) -> Tuple[bytes, List[int]]:
        room = socket.CMSG_SPACE(2 * array.array("i").itemsize)
        packet, ancillary, _, _ = self._control.recvmsg(contract.MAX_SPAWN_PACKET_BYTES, room)
        descriptors = array.array("i")
        for level, kind, data in ancillary:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                descriptors.frombytes(data[: len(data) - len(data) % descriptors.itemsize])
        for descriptor in descriptors:
            os.set_inheritable(descriptor, False)
        return packet, list(descriptors)

    def _handle(self, packet: bytes, descriptors: List[int]) -> None:
        try:
            spawn = contract.decode_spawn_request(packet)
        except PackError as error:
            return self._refuse(0, str(error))
        entry = self._entries.get(spawn.trainable)
        if entry is None or not descriptors:
            return self._refuse(spawn.request, f'there is no trainable "{spawn.trainable}"')
        reserved = _reserve_port(descriptors)
        for stream in (sys.stdout, sys.stderr):
            _flush(stream)
        try:
            intermediate = os.fork()
        except OSError as error:
            return self._refuse(spawn.request, f"fork: {error.strerror}")
        if intermediate == 0:
            self._fork_worker(spawn.request, entry, descriptors[0])
        if reserved is not None:
            reserved.close()
        _, status = os.waitpid(intermediate, 0)
        if status != 0:
            self._refuse(
                spawn.request, f"the process that starts it ended with status {status}"
            )

    def _fork_worker(self, request: int, entry: Entry, descriptor: int) -> NoReturn:
        """The process in between only forks and ends, so that the agent becomes the worker's
        parent."""
        code = 1
        try:
            # Done here, so that a signal of the agent is never ignored, and one of others never acts.
            _process.obey_only(self._agent)
            intermediate = os.getpid()
            worker = os.fork()
            if worker == 0:
                self._be_worker(entry, descriptor, intermediate)
            self._control.send(contract.spawned(request, worker))
            code = 0
        except OSError as error:
            self._refuse(request, f"fork: {error.strerror}")
            code = 0
        finally:
            os._exit(code)

    def _be_worker(self, entry: Entry, descriptor: int, intermediate: int) -> NoReturn:
        code = 1
        try:
            _process.is_worker_now()
            self._control.close()
            os.setsid()
            while os.getppid() == intermediate:
                time.sleep(2e-5)
            _process.die_with_parent(signal.SIGKILL)
            if os.getppid() == self._agent:
                os.environ.pop(_RENDEZVOUS, None)
                code = run_worker(entry, descriptor)
        finally:
            os._exit(code)

    def _refuse(self, request: int, why: str) -> None:
        self._control.send(contract.spawned(request, 0, why))


def _reserve_port(descriptors: List[int]) -> Optional[socket.socket]:
    """The agent hands rank 0 of a group a listening socket, for MASTER_PORT. A Python program listens
    there itself (init_process_group), and could not beside it. So the socket is replaced by one that
    only holds the port's number: with SO_REUSEADDR two may be bound to it while one listens.

    To close it and no more, the simpler way, gives the port back before the program has taken it:
    another trial's group may be given it meanwhile.
    """
    if len(descriptors) < 2:
        return None
    listening = socket.socket(fileno=descriptors.pop())
    address = listening.getsockname()
    listening.close()
    reserved = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        reserved.bind(address[:2])
    except OSError:
        pass  # rank 0 will say that it is taken
    return reserved


def _flush(stream: object) -> None:
    try:
        stream.flush()  # type: ignore[attr-defined]
    except Exception:
        pass
