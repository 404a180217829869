"""What a process that forks, or is forked, has to put in order."""

from __future__ import annotations

import ctypes
import gc
import os
import random
import signal
import sys
from typing import Callable, List, Optional

from ._programs import signals_library

_PR_SET_PDEATHSIG = 1
_SIGNALS_OF_AGENT = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)

_libc = ctypes.CDLL(None, use_errno=True)


def die_with_parent(signal_number: int) -> None:
    """The kernel sends this process the signal when its parent ends."""
    _libc.prctl(_PR_SET_PDEATHSIG, int(signal_number), 0, 0, 0)


def close_on_exec(keep: int = -1) -> None:
    """Marks every open descriptor above 2: the experiment's lock, above all, must not live on in
    programs that a worker starts."""
    for name in os.listdir("/proc/self/fd"):
        descriptor = int(name)
        if descriptor > 2 and descriptor != keep:
            try:
                os.set_inheritable(descriptor, False)
            except OSError:
                pass  # that of the listing


def leave_output() -> None:
    """Whoever reads what the program prints must see its end."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor in (1, 2):
        os.dup2(nothing, descriptor)
    os.close(nothing)


def forget_signal_handlers() -> None:
    """Handlers of the process that was forked are not for its children; what Python itself ignores
    (SIGPIPE) stays ignored."""
    signal.set_wakeup_fd(-1)
    for number in signal.valid_signals():
        if callable(signal.getsignal(number)):
            signal.signal(number, signal.SIG_DFL)


def ignore_signals() -> None:
    for number in (*_SIGNALS_OF_AGENT, signal.SIGQUIT):
        signal.signal(number, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # waitpid needs it


_signals: Optional[ctypes.CDLL] = None


def find_signal_handler() -> None:
    """Called in the zygote, so that no worker has to look. Without it a signal to every process of a
    job, as batch systems send it, ends trials before they have saved."""
    global _signals
    path = signals_library()
    if path is None:
        return
    try:
        _signals = ctypes.CDLL(path)
    except OSError as error:
        print(f"warning: {error}: a signal to every process ends trials unsaved", file=sys.stderr)


def obey_only(agent: int) -> None:
    """SIGTERM, SIGINT and SIGHUP end this process, a future worker, only when they come from the agent
    or from itself (trainables/worker_signals.h)."""
    for number in (*_SIGNALS_OF_AGENT, signal.SIGQUIT):
        signal.signal(number, signal.SIG_DFL)
    if _signals is not None:
        _signals.tune_obey_only(agent)


def is_worker_now() -> None:
    if _signals is not None:
        _signals.tune_is_worker_now()


def live_threads() -> int:
    return len(os.listdir("/proc/self/task"))


def cuda_is_initialised(descriptors: str = "/proc/self/fd") -> bool:
    """A process with CUDA cannot be forked: its children could not use a GPU. Whatever library
    has initialised it, CUDA holds the driver's devices open."""
    torch = sys.modules.get("torch")
    if torch is not None:
        try:
            if torch.cuda.is_initialized():
                return True
        except Exception:
            pass
    for name in os.listdir(descriptors):
        try:
            if os.readlink(f"{descriptors}/{name}").startswith("/dev/nvidia"):
                return True
        except OSError:
            pass
    return False


# ---- Libraries that are loaded once and used by many ---------------------------------------------

_set_blas_threads: Optional[Callable[[int], None]] = None
_blas_was_sought = False


def find_libraries() -> None:
    """Called in the zygote, so that no worker has to look."""
    global _set_blas_threads, _blas_was_sought
    if _blas_was_sought or "numpy" not in sys.modules:
        return
    _blas_was_sought = True
    import numpy.random  # noqa: F401  numpy itself leaves that to the first use
    for path in _mapped("openblas"):
        try:
            library = ctypes.CDLL(path)
        except OSError:
            continue
        for name in ("scipy_openblas_set_num_threads64_", "openblas_set_num_threads64_",
                     "scipy_openblas_set_num_threads", "openblas_set_num_threads"):
            if hasattr(library, name):
                _set_blas_threads = getattr(library, name)
                return


def _mapped(part: str) -> List[str]:
    found: List[str] = []
    with open("/proc/self/maps") as maps:
        for line in maps:
            path = line[line.find("/") :].rstrip() if "/" in line else ""
            if part in os.path.basename(path) and path not in found:
                found.append(path)
    return found


def prepare_libraries(threads: int, seed: int) -> None:
    """In a worker: libraries that were loaded before the fork have not read its environment, and
    would draw the same random numbers in all trials."""
    random.seed(seed)
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed(seed % (1 << 32))
        if _set_blas_threads is not None:
            _set_blas_threads(threads)
    torch = sys.modules.get("torch")
    if torch is not None and hasattr(torch, "set_num_threads"):
        torch.set_num_threads(threads)
        torch.manual_seed(seed % (1 << 63))


def collect_garbage() -> None:
    """Before forks: what lives stays out of collections, whose marks would copy its pages."""
    gc.collect()
    gc.disable()
    gc.freeze()
