"""The zygote: a process that has imported everything once and then only forks workers
(trainables/zygote.h)."""

from __future__ import annotations

import os
import select
import signal
import socket
import sys
import time
from typing import Callable, Dict, List, NoReturn, Optional, Tuple

from . import _contract as contract
from . import _process
from ._entry import Entry
from ._pack import PackError
from ._worker import run_worker

_AGENT_GONE_EXIT_CODE = 1
_RENDEZVOUS = "TUNE_RENDEZVOUS_FD"
_MOMENT_S = 0.01


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
        self._spare: Optional[_Spare] = None
        self._ending: List[int] = []  # processes in between

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
            if self._spare is None and not error and not self._is_asked():
                self._spare = self._make_spare()
            packet, descriptors = receive(self._control)
            if not packet:
                os._exit(0)
            self._handle(packet, descriptors)
            for descriptor in descriptors:
                os.close(descriptor)

    def _is_asked(self) -> bool:
        """Within a moment. Where trials come so fast, a spare would only take their time."""
        return bool(select.select([self._control], [], [], _MOMENT_S)[0])

    def _handle(self, packet: bytes, descriptors: List[int]) -> None:
        try:
            spawn = contract.decode_spawn_request(packet)
        except PackError as error:
            return self._refuse(0, str(error))
        entry = self._entries.get(spawn.trainable)
        if entry is None or not descriptors:
            return self._refuse(spawn.request, f'there is no trainable "{spawn.trainable}"')
        _reserve_port(descriptors)
        spare, self._spare = self._spare, None
        worker = spare.take(entry.name, descriptors) if spare is not None else 0
        if not worker:
            try:
                worker = self._fork(lambda: run_worker(entry, descriptors[0]))
            except OSError as error:
                return self._refuse(spawn.request, f"fork: {error.strerror}")
        self._control.send(contract.spawned(spawn.request, worker))

    def _make_spare(self) -> Optional[_Spare]:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            return _Spare(self._fork(lambda: self._be_spare(ours, theirs)), ours)
        except OSError:  # what is wrong is told when a worker is wanted
            ours.close()
            return None
        finally:
            theirs.close()

    def _be_spare(self, ours: socket.socket, theirs: socket.socket) -> int:
        ours.close()
        packet, descriptors = receive(theirs)
        if not packet:
            return 0  # the zygote has ended
        theirs.close()
        return run_worker(self._entries[packet.decode()], descriptors[0])

    def _fork(self, main: Callable[[], int]) -> int:
        """A worker that runs `main`, which gives its exit code: the agent's child, so that the process
        in between only forks and ends. Returns its pid."""
        for stream in (sys.stdout, sys.stderr):
            _flush(stream)
        told, tell = os.pipe()
        try:
            intermediate = os.fork()
            if intermediate == 0:
                self._fork_again(tell, main)
            os.close(tell)
            tell = -1
            self._ending.append(intermediate)
            answer = os.read(told, 64)
        finally:
            os.close(told)
            if tell >= 0:
                os.close(tell)
            self._reap()
        kind, _, number = answer.decode().partition(" ")
        if kind == "pid":
            return int(number)
        if kind == "errno":
            raise OSError(int(number), os.strerror(int(number)))
        raise OSError(0, "the process that starts it has died")

    def _reap(self) -> None:
        """Those in between that have ended. None is waited for: to end takes one as long as a fork."""
        self._ending = [pid for pid in self._ending if os.waitpid(pid, os.WNOHANG)[0] == 0]

    def _fork_again(self, tell: int, main: Callable[[], int]) -> NoReturn:
        try:
            # Done here, so that a signal of the agent is never ignored, and one of others never acts.
            _process.obey_only(self._agent)
            intermediate = os.getpid()
            worker = os.fork()
            if worker == 0:
                self._be_worker(main, intermediate)
            os.write(tell, f"pid {worker}".encode())
        except OSError as error:
            os.write(tell, f"errno {error.errno}".encode())
        finally:
            os._exit(0)

    def _be_worker(self, main: Callable[[], int], intermediate: int) -> NoReturn:
        code = 1
        try:
            _process.is_worker_now()
            self._control.close()
            if self._spare is not None:
                self._spare.close()
            os.setsid()
            while os.getppid() == intermediate:
                time.sleep(2e-5)
            _process.die_with_parent(signal.SIGKILL)
            if os.getppid() == self._agent:
                os.environ.pop(_RENDEZVOUS, None)
                code = main()
        finally:
            os._exit(code)

    def _refuse(self, request: int, why: str) -> None:
        self._control.send(contract.spawned(request, 0, why))


class _Spare:
    """A worker that is forked already, and waits for what to run. A process that has torch in it costs
    two forks of 8 ms each and as much to end the one in between: a trial that has to wait for that
    begins 30 ms late. The spare is made while trials run."""

    def __init__(self, pid: int, order: socket.socket) -> None:
        self._pid = pid
        self._order = order

    def take(self, trainable: str, descriptors: List[int]) -> int:
        """Its pid, once it runs the trainable; 0 when it has died."""
        try:
            socket.send_fds(self._order, [trainable.encode()], descriptors)
            return self._pid
        except OSError:
            return 0
        finally:
            self.close()

    def close(self) -> None:
        self._order.close()


def receive(control: socket.socket) -> Tuple[bytes, List[int]]:
    """A packet with at most two descriptors; empty at the end."""
    packet, descriptors, _, _ = socket.recv_fds(control, contract.MAX_SPAWN_PACKET_BYTES, 2)
    for descriptor in descriptors:
        os.set_inheritable(descriptor, False)
    return packet, descriptors


def _reserve_port(descriptors: List[int]) -> None:
    """The agent hands rank 0 of a group a listening socket, for MASTER_PORT. A Python program listens
    there itself (init_process_group), and could not beside it. So the socket is replaced by one that
    only holds the port's number: with SO_REUSEADDR two may be bound to it while one listens.

    To close it and no more, the simpler way, gives the port back before the program has taken it:
    another trial's group may be given it meanwhile.
    """
    if len(descriptors) < 2:
        return
    with socket.socket(fileno=descriptors.pop()) as listening:
        address = listening.getsockname()
    reserved = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        reserved.bind(address[:2])
    except OSError:
        pass  # rank 0 will say that it is taken
    descriptors.append(reserved.detach())


def _flush(stream: object) -> None:
    try:
        stream.flush()  # type: ignore[attr-defined]
    except Exception:
        pass
