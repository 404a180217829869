"""The worker contract (core/worker_contract.h) in Python: its messages, both ways."""

from __future__ import annotations

import struct
from dataclasses import dataclass, fields
from typing import Any, Dict, List, Optional, Type, TypeVar

from ._pack import PackError, pack, unpack

CONTRACT = 7  # kWorkerContract
MAX_FRAME_BYTES = 16 << 20
MAX_SPAWN_PACKET_BYTES = 64 << 10

# enum Outcome
COMPLETED, STOPPED, PAUSED, EXCEPTION, SIGNAL, EXIT, HUNG, LOST = range(8)
# enum StopKind
STOP, PAUSE, LEAVE = range(3)
# enum GroupAction
STEP, SAVE, END = range(3)

NANOSECONDS = 1_000_000_000


# ---- Agent to worker, each with its fields in the order of the contract ---------------------------


@dataclass
class Milestone:
    attribute: str = ""
    value: float = 0


@dataclass
class StopRule:
    path: str
    bound: float
    at_most: bool


@dataclass
class CheckpointPolicy:
    frequency: int
    at_end: bool
    keep: int


@dataclass
class WorkerExperiment:
    stop: List[StopRule]
    checkpoint: CheckpointPolicy
    max_trial_time: int
    hang_timeout: int
    environment: Dict[str, str]

    def __post_init__(self) -> None:
        self.stop = [_record(StopRule, rule) for rule in self.stop]
        self.checkpoint = _record(CheckpointPolicy, self.checkpoint)


@dataclass
class WorkerLaunch:
    trial: int
    attempt: int
    config: bytes
    seed: int
    ranks: int
    restore_iteration: int
    restore_attempt: int
    time_total: int
    timesteps_total: float
    until: Milestone

    def __post_init__(self) -> None:
        self.until = _record(Milestone, self.until)


@dataclass
class StartWorker:
    contract: int
    experiment: WorkerExperiment
    launch: WorkerLaunch
    trial_id: str
    trial_directory: str
    once_directory: str
    rank: int
    local_rank: int
    threads: int
    gpu_devices: List[str]
    environment: Dict[str, str]
    agent_pid: int
    restore_folder: str

    def __post_init__(self) -> None:
        self.experiment = _record(WorkerExperiment, self.experiment)
        self.launch = _record(WorkerLaunch, self.launch)


@dataclass
class Continue:
    trial: int
    attempt: int
    until: Milestone
    save: bool = False

    def __post_init__(self) -> None:
        self.until = _record(Milestone, self.until)


@dataclass
class StopAttempt:
    trial: int
    attempt: int
    kind: int
    grace: int


@dataclass
class GroupStep:
    iteration: int
    action: int


@dataclass
class HoldGroup:
    hold: bool


@dataclass
class OthersAlone:
    any: bool


_COMMANDS = (StartWorker, Continue, StopAttempt, GroupStep, HoldGroup, OthersAlone)

Record = TypeVar("Record")


class OtherContract(Exception):
    """The agent speaks another version of the contract."""

    def __init__(self, theirs: int) -> None:
        super().__init__(
            f"the agent speaks version {theirs} of the worker contract, this Python package version "
            f"{CONTRACT}: install the package of the tune that runs the sweep"
        )


def _record(kind: Type[Record], values: Any) -> Record:
    """A record of its fields; those beyond the known ones are skipped, added ones may be missing."""
    if not isinstance(values, list):
        raise PackError(f"{kind.__name__}: its fields are not a list")
    try:
        return kind(*values[: len(fields(kind))])  # type: ignore[arg-type]
    except TypeError as error:
        raise PackError(f"{kind.__name__}: {error}") from None


def decode_command(data: bytes) -> Any:
    """One message of the agent. Raises PackError; OtherContract for a start of another version."""
    message = unpack(data)
    if not isinstance(message, list) or len(message) != 2:
        raise PackError("a message is a kind and its fields")
    kind, values = message
    if not isinstance(kind, int) or not 0 <= kind < len(_COMMANDS):
        raise PackError(f"there is no message of kind {kind!r}")
    if kind == 0 and values[0] != CONTRACT:
        raise OtherContract(values[0])
    return _record(_COMMANDS[kind], values)


# ---- Worker to agent -----------------------------------------------------------------------------


@dataclass
class Report:
    """Reported, all but the trial and its result."""

    iteration: int = 0
    time_this_iter: int = 0
    time_total: int = 0
    time_since_restore: int = 0
    iterations_since_restore: int = 0
    timesteps_total: Optional[float] = None
    waiting: bool = False
    final: bool = False


_REPORTED_HEAD = struct.Struct(">BBBBQBQBQBqBqBqBQ").pack
_REPORTED_TAIL = struct.Struct(">BBBI").pack
_float64 = struct.Struct(">Bd").pack


def reported(trial: int, attempt: int, report: Report, result: bytes) -> bytes:
    """Reported. Written out, as a report's cost is a step's cost."""
    total = report.timesteps_total
    # [kind 0, [11 fields]]; 0xCF and 0xD3 open 64 bit integers.
    head = _REPORTED_HEAD(
        0x92, 0x00, 0x9B,
        0xCF, trial,
        0xCF, attempt,
        0xCF, report.iteration,
        0xD3, report.time_this_iter,
        0xD3, report.time_total,
        0xD3, report.time_since_restore,
        0xCF, report.iterations_since_restore,
    )
    return b"".join(
        (
            head,
            b"\xc0" if total is None else _float64(0xCB, total),
            _REPORTED_TAIL(
                0xC3 if report.waiting else 0xC2,
                0xC3 if report.final else 0xC2,
                0xC6,
                len(result),
            ),
            result,
        )
    )


def rank_saved(iteration: int, time_total: int, timesteps_total: Optional[float]) -> bytes:
    return pack([1, [iteration, time_total, timesteps_total]])


def group_step(iteration: int, action: int) -> bytes:
    return pack([2, [iteration, action]])


def worker_ended(outcome: int, cause: str = "", is_of_group: bool = False) -> bytes:
    return pack([3, [outcome, cause, is_of_group]])


def warning(text: str) -> bytes:
    return pack([4, [text]])


def phase_done() -> bytes:
    return pack([5, []])


def rank_alone(begins: bool) -> bytes:
    return pack([6, [begins]])


# ---- Zygote --------------------------------------------------------------------------------------


@dataclass
class TrainableInfo:
    name: str
    can_save: bool
    is_function: bool


@dataclass
class SpawnRequest:
    request: int
    trainable: str


def zygote_ready(error: str, trainables: List[TrainableInfo], note: str = "") -> bytes:
    infos = [[info.name, info.can_save, info.is_function] for info in trainables]
    return pack([0, [error[: MAX_SPAWN_PACKET_BYTES // 2], infos, note, CONTRACT]])


def spawned(request: int, pid: int, error: str = "") -> bytes:
    return pack([1, [request, pid, error[: MAX_SPAWN_PACKET_BYTES // 2]]])


def decode_spawn_request(data: bytes) -> SpawnRequest:
    return _record(SpawnRequest, unpack(data))
