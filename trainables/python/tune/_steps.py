"""The actions of one rank of an attempt at its step boundaries: what trainables/worker_machine.h is in
C++, where the reasons stand. It counts steps and time, says when a result is reported, a checkpoint
is written and the next step begins, and keeps the ranks of a group in step.

All that it does to the world goes through an ``Edge``, so that tests play it without one.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, Optional

from . import _contract as contract
from ._pack import find_number, pack

Save = Callable[[Any], None]


class AttemptFailed(Exception):
    """The attempt has failed for this cause, which begins with its phase: "save: disk full"."""


class Edge:
    """The process around the steps."""

    def now(self) -> int:
        """Nanoseconds of a clock that does not go back."""
        raise NotImplementedError

    def send(self, message: bytes) -> None:
        raise NotImplementedError

    def wait(self) -> Any:
        """The agent's next command."""
        raise NotImplementedError

    def poll(self) -> Optional[Any]:
        """The same if one is there already."""
        raise NotImplementedError

    def prepare(self, iteration: int) -> None:
        """Makes the temporary folder of this checkpoint, empty, for all ranks."""
        raise NotImplementedError

    def write(self, iteration: int, save: Optional[Save]) -> None:
        """Writes this rank's part of it and flushes it."""
        raise NotImplementedError

    def leave_at_once(self) -> None:
        """The user's code reports though it was told to return: ends the process."""
        raise NotImplementedError


class Steps:
    def __init__(self, start: contract.StartWorker, edge: Edge) -> None:
        launch = start.launch
        self._start = start
        self._launch = launch
        self._edge = edge
        self._leads = start.rank == 0
        self._in_group = launch.ranks > 1
        self.iteration = launch.restore_iteration  # steps completed since the trial began
        self._saved = launch.restore_iteration  # iteration of the newest checkpoint; 0: none
        self._until = launch.until
        self._step_began = 0
        self._time_total = launch.time_total
        self._time_since_restore = 0
        self._timesteps_total: Optional[float] = launch.timesteps_total or None
        self._save: Optional[Save] = None  # of the step that was reported
        self._save_was_missed = False
        self._has_begun = False
        self._waits = False  # for the verdict on its report
        self._held = False  # at a step boundary, by the agent
        self._ending: Optional[int] = None  # how the attempt ends when the checkpoint is written
        self._outcome: Optional[int] = None
        self._failure: Optional[AttemptFailed] = None  # the first

    # ---- The way to the first step. False: the attempt is over.

    def set_up(self) -> None:
        """The trainable is set up, and is still to be loaded from its checkpoint."""
        if self._in_group:
            self._edge.send(contract.phase_done())

    def ready(self) -> bool:
        """Everything is set up and loaded."""
        self.set_up()
        return self._guarded(self._await_word)

    # ---- The end of a step

    def report(self, result: Dict[str, Any], save: Optional[Save]) -> bool:
        """A step has ended with this result. With ``save`` a checkpoint can be written until the
        next step. False: the attempt is over."""
        if self._failure is not None:
            raise self._failure
        if self._outcome is not None:
            self._edge.send(self.last_word())
            self._edge.leave_at_once()
        ended = self._edge.now()
        packed = pack(result)
        if len(packed) > contract.MAX_FRAME_BYTES - 1024:
            raise ValueError(
                f"report: the result has {len(packed)} bytes, at most {contract.MAX_FRAME_BYTES} go "
                "into a message: write large values to a file"
            )
        self.iteration += 1
        self._save = save
        if self._leads:
            return self._guarded(lambda: self._lead(ended, result, packed))
        self._edge.send(contract.phase_done())
        return self._guarded(self._await_word)

    def _lead(self, ended: int, result: Dict[str, Any], packed: bytes) -> bool:
        report = self._make_report(ended, result)
        self._waits = report.waiting
        self._edge.send(
            contract.reported(self._launch.trial, self._launch.attempt, report, packed)
        )
        policy = self._start.experiment.checkpoint
        if report.final:
            return self._save_and_end(contract.COMPLETED, policy.at_end)
        if policy.frequency == 0 or self.iteration % policy.frequency != 0:
            return self._await_word()
        self._miss_save(
            f"checkpoint frequency is {policy.frequency}, but results are reported without a save: "
            "give one to report, or no checkpoint is written"
        )
        return self._save_now()

    def _make_report(self, ended: int, result: Dict[str, Any]) -> contract.Report:
        step = ended - self._step_began
        self._time_total += step
        self._time_since_restore += step
        more = find_number(result, "timesteps_this_iter")
        if more is not None:
            self._timesteps_total = (self._timesteps_total or 0) + more
        report = contract.Report(
            self.iteration,
            step,
            self._time_total,
            self._time_since_restore,
            self.iteration - self._launch.restore_iteration,
            self._timesteps_total,
        )
        report.final = self._is_final(result, report)
        report.waiting = not report.final and self._is_due(result, report)
        return report

    def _is_final(self, result: Dict[str, Any], report: contract.Report) -> bool:
        if result.get("done") is True:
            return True
        limit = self._start.experiment.max_trial_time
        if 0 < limit <= report.time_total:
            return True
        for rule in self._start.experiment.stop:
            found = _number(result, report, rule.path)
            if found is not None and (
                found <= rule.bound if rule.at_most else found >= rule.bound
            ):
                return True
        return False

    def _is_due(self, result: Dict[str, Any], report: contract.Report) -> bool:
        if not self._until.attribute:
            return False
        reached = _number(result, report, self._until.attribute)
        return reached is not None and reached >= self._until.value

    # ---- Words of the agent

    def _await_word(self) -> bool:
        while True:
            if not self._leads or self._waits or self._held:
                command = self._edge.wait()
            else:
                command = self._edge.poll()
            if command is None:
                return self._begin()
            if self._leads:
                more = self._obey(command)
            else:
                more = self._heed(command)
            if more is not None:
                return more

    def _begin(self) -> bool:
        """The agent has nothing against the next step. A rank alone announces its first one, as a
        sign of life."""
        shows_life = not self._has_begun and self._start.experiment.hang_timeout > 0
        if self._in_group or shows_life:
            self._edge.send(contract.group_step(self.iteration + 1, contract.STEP))
        self._has_begun = True
        self._step_began = self._edge.now()
        return True

    def _obey(self, command: Any) -> Optional[bool]:
        """Rank 0. None: it listens on."""
        if isinstance(command, contract.StopAttempt):
            pauses = command.kind == contract.PAUSE
            stops = command.kind == contract.STOP
            at_end = self._start.experiment.checkpoint.at_end
            return self._save_and_end(
                contract.PAUSED if pauses else contract.STOPPED, pauses or (stops and at_end)
            )
        if isinstance(command, contract.HoldGroup):
            self._held = command.hold
            return None
        if not isinstance(command, contract.Continue):
            raise AttemptFailed("the agent sent a command that does not fit a step boundary")
        self._until = command.until
        self._waits = False
        if not command.save:
            return None
        if self.iteration > self._launch.restore_iteration:
            self._miss_save(
                "the scheduler asks for a checkpoint, but results are reported without a save: give "
                "one to report, or no trial can go on from another one's"
            )
        self._write_checkpoint()
        return None

    def _heed(self, word: Any) -> Optional[bool]:
        """Rank r > 0: follows rank 0's words until a step or the end."""
        if not isinstance(word, contract.GroupStep):
            raise AttemptFailed("the agent sent a command that does not fit a step boundary")
        if word.action == contract.SAVE:
            self._edge.write(self.iteration, self._save)
            self._say_saved()
            return None
        if word.action == contract.END:
            self._ending = contract.COMPLETED
            return self._end()
        if word.iteration == self.iteration + 1:
            return self._begin_following()
        raise AttemptFailed(
            f"rank {self._start.rank} has done {self.iteration} steps when rank 0 begins step "
            f"{word.iteration}: all ranks must report equally often"
        )

    def _begin_following(self) -> bool:
        self._has_begun = True
        self._step_began = self._edge.now()
        return True

    # ---- Checkpoints

    def _save_now(self) -> bool:
        self._write_checkpoint()
        return self._end() if self._ending is not None else self._await_word()

    def _write_checkpoint(self) -> None:
        """Rank 0: on all ranks, unless it is there or cannot be saved."""
        if self._save is None or self._saved == self.iteration:
            return
        self._edge.prepare(self.iteration)
        if self._in_group:
            self._edge.send(contract.group_step(self.iteration, contract.SAVE))
        self._edge.write(self.iteration, self._save)
        self._say_saved()

    def _say_saved(self) -> None:
        self._saved = self.iteration
        self._edge.send(
            contract.rank_saved(self.iteration, self._time_total, self._timesteps_total)
        )

    def _miss_save(self, text: str) -> None:
        if self._save is None and not self._save_was_missed:
            self._save_was_missed = True
            self._edge.send(contract.warning(text))

    # ---- The end

    def _save_and_end(self, outcome: int, wants_save: bool) -> bool:
        self._ending = outcome
        if wants_save:
            self._write_checkpoint()
        return self._end()

    def _end(self) -> bool:
        is_safe = self._saved > 0 and self._saved == self.iteration
        lost = self._ending == contract.PAUSED and not is_safe
        self._outcome = contract.LOST if lost else self._ending
        if self._leads and self._in_group:
            self._edge.send(contract.group_step(self.iteration, contract.END))
        return False

    def returned(self) -> None:
        """A function trainable has returned: it is completed unless its outcome is known already."""
        if self._failure is not None:
            raise self._failure
        if self._outcome is None:
            self._ending = contract.COMPLETED
            self._end()

    def last_word(self) -> bytes:
        """Of a rank that ends without an error, sent when everything is cleared away."""
        done = contract.COMPLETED if self._outcome is None else self._outcome
        return contract.worker_ended(done)

    def _guarded(self, part: Callable[[], bool]) -> bool:
        """An action that failed has ended the attempt, even if the user's code catches it."""
        try:
            return part()
        except AttemptFailed as failure:
            self._failure = failure
            raise


def _number(result: Dict[str, Any], report: contract.Report, path: str) -> Optional[float]:
    """Of the result as reported, else of what the framework adds to it."""
    found = find_number(result, path)
    if found is not None:
        return found
    if path == "training_iteration":
        return report.iteration
    if path == "iterations_since_restore":
        return report.iterations_since_restore
    if path == "timesteps_total":
        return report.timesteps_total
    times = {
        "time_total_s": report.time_total,
        "time_this_iter_s": report.time_this_iter,
        "time_since_restore": report.time_since_restore,
    }
    return times[path] / contract.NANOSECONDS if path in times else None
