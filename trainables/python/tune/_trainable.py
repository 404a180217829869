"""What users write: a class derived from Trainable, or a function that reports."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Callable, Dict, List, Optional, TypeVar, Union

from . import _once

T = TypeVar("T")


class Results:
    """Files that a trial hands out while it runs, below ``results/`` in its folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def submit(self, name: str, data: Union[bytes, str]) -> None:
        """Writes the bytes under this name, "worker/0/data.json". Readers see all of them or none; a
        name given again replaces what it held."""
        parts = name.split("/")
        if not name or any(part in ("", ".", "..") for part in parts) or name != name.strip("\0"):
            raise ValueError(
                f"submitting the result {name!r}: name it like worker/0/data.json, without '..'"
            )
        path = self.folder.joinpath(*parts)
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f".{path.name}.tmp-{os.getpid()}")
        temporary.write_bytes(data.encode() if isinstance(data, str) else data)
        os.replace(temporary, path)


class Context:
    """The place of this worker: which trial it is, and what it may use."""

    def __init__(
        self,
        trial_id: str = "",
        trial_directory: Union[str, Path] = ".",
        attempt: int = 1,
        seed: int = 0,
        iteration: int = 0,
        rank: int = 0,
        world_size: int = 1,
        local_rank: int = 0,
        cpus: int = 1,
        gpu_ids: Optional[List[str]] = None,
        once_directory: Union[str, Path, None] = None,
        said_alone: Optional[Callable[[bool], None]] = None,
    ) -> None:
        self.trial_id = trial_id
        self.trial_directory = Path(trial_directory)
        #: 1, 2, ...: the launches of this trial
        self.attempt = attempt
        #: of this trial; the same on all ranks
        self.seed = seed
        #: steps completed since the trial began
        self.iteration = iteration
        self.rank = rank
        self.world_size = world_size
        self.local_rank = local_rank
        #: threads this rank should use
        self.cpus = cpus
        #: the entries of CUDA_VISIBLE_DEVICES
        self.gpu_ids = list(gpu_ids or [])
        self._once_directory = once_directory
        self._said_alone = said_alone

    def once_per_node(self, name: str, function: Callable[[], Any]) -> None:
        """One process of the node runs ``function``, the others wait until it is done; its exception
        is raised in all of them. When that process dies, the next one runs it. Once an experiment."""
        if self._once_directory is None:
            function()
        else:
            _once.run_once(Path(self._once_directory), name, function)

    def alone(self, function: Callable[[], T]) -> T:
        """Runs ``function`` on this rank, for which the other ranks of the trial wait for longer than
        for one that is only late (``alone_timeout_s``), and returns its value."""
        if self._said_alone is None:
            return function()
        self._said_alone(True)
        try:
            return function()
        finally:
            self._said_alone(False)

    @property
    def results(self) -> Results:
        return Results(self.trial_directory / "results")


class Trainable:
    """Derive from it and write ``setup`` and ``step``; with ``save`` and ``load`` trials can be
    resumed, retried and restored. One object lives in one process, for one attempt of a trial."""

    context: Context = Context()

    def setup(self, config: Dict[str, Any]) -> None:
        """Called first, with the trial's configuration."""

    def step(self) -> Dict[str, Any]:
        """Trains for a while and returns its result, ``{"loss": 0.1}``. ``done: True`` in it ends the
        trial."""
        raise NotImplementedError(f"{type(self).__name__} has no step")

    def save(self, directory: Path) -> None:
        """Writes a checkpoint into an empty folder that belongs to it alone."""
        raise NotImplementedError

    def load(self, directory: Path) -> None:
        """Reads it, after ``setup``."""
        raise NotImplementedError
