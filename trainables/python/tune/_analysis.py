"""Analysis: what an experiment found, read from its folder."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any, Callable, Dict, List, Optional, Tuple, TypeVar, Union

from ._errors import BadInput
from ._programs import environment, tune_program
from ._trainable import Context


class TrialSummary:
    """One trial as its folder tells."""

    def __init__(self, directory: Path, told: Dict[str, Any]) -> None:
        self.id: str = told["trial_id"]
        #: PENDING, RUNNING, PAUSED, TERMINATED or ERROR
        self.status: str = told["status"]
        self.config: Dict[str, Any] = told["config"]
        #: empty when it never reported
        self.last_result: Dict[str, Any] = _numbers(told["result"])
        self.directory = directory / self.id

    @property
    def results(self) -> List[Dict[str, Any]]:
        """Every result, in order."""
        try:
            text = (self.directory / "result.json").read_text("utf-8", "replace")
        except FileNotFoundError:
            return []
        return [_numbers(json.loads(line)) for line in text.splitlines() if line.endswith("}")]

    @property
    def error(self) -> str:
        """error.txt, with the traceback; empty when it did not fail."""
        try:
            text: str = (self.directory / "error.txt").read_text("utf-8", "replace")
        except FileNotFoundError:
            return ""
        return text

    def __repr__(self) -> str:
        return f"TrialSummary({self.id!r}, {self.status!r}, config={self.config!r})"


class Analysis:
    """Works for finished, running and killed experiments, and for folders that were moved."""

    def __init__(self, directory: Union[str, Path]) -> None:
        self.directory = Path(directory).resolve()
        self._best: Optional[Dict[str, Any]] = None
        self._trials: Optional[List[TrialSummary]] = None

    @classmethod
    def load(cls, directory: Union[str, Path]) -> "Analysis":
        """Of an experiment's folder, as in results/latest."""
        path = Path(directory)
        if not (path / "experiment.json").is_file():
            raise BadInput(f"{directory} is not an experiment: it has no experiment.json")
        return cls(path)

    @property
    def trials(self) -> List[TrialSummary]:
        if self._trials is None:
            lines = _ask("results", str(self.directory), "--json").splitlines()
            self._trials = [TrialSummary(self.directory, json.loads(line)) for line in lines]
        return self._trials

    @property
    def pareto(self) -> List[TrialSummary]:
        """The trials that no other one dominates, by several objectives; the best by the first of
        them comes first. With one metric the best trial alone."""
        lines = _ask("best", str(self.directory), "--json").splitlines()
        return [TrialSummary(self.directory, json.loads(line)) for line in lines]

    @property
    def best_trial(self) -> TrialSummary:
        """By metric and mode, over the trials' last results. Raises BadInput where there are several
        objectives: see ``pareto``."""
        return TrialSummary(self.directory, self._best_told())

    @property
    def best_config(self) -> Dict[str, Any]:
        config: Dict[str, Any] = self._best_told()["config"]
        return config

    @property
    def best_result(self) -> Dict[str, Any]:
        result: Dict[str, Any] = _numbers(self._best_told()["result"])
        return result

    @property
    def best_checkpoint(self) -> Path:
        """Of the best trial, the saved one with the best metric. Raises BadInput that names the
        setting when nothing was saved."""
        return Path(_ask("best", str(self.directory), "--checkpoint").strip())

    @property
    def results(self) -> List[Dict[str, Any]]:
        """Every result of every trial, with its ``trial_id``."""
        return [
            {"trial_id": trial.id, **result} for trial in self.trials for result in trial.results
        ]

    def rows(self) -> List[Dict[str, Any]]:
        """One flat row a trial: trial_id, status, config/..., and its last result."""
        rows = []
        for trial in self.trials:
            row: Dict[str, Any] = {"trial_id": trial.id, "status": trial.status}
            row.update(_flat(trial.config, "config/"))
            row.update(_flat(trial.last_result, ""))
            rows.append(row)
        return rows

    def dataframe(self) -> Any:
        """``rows()`` as a pandas.DataFrame."""
        try:
            import pandas  # type: ignore[import-untyped,unused-ignore]
        except ImportError:
            raise ImportError(
                "dataframe() needs pandas: pip install pandas, or take rows()"
            ) from None
        return pandas.DataFrame(self.rows())

    def write_csv(self, path: Union[str, Path]) -> None:
        """results.csv, one row a trial."""
        _ask("results", str(self.directory), "--csv", str(path))

    def _best_told(self) -> Dict[str, Any]:
        if self._best is None:
            spec = json.loads((self.directory / "experiment.json").read_text("utf-8"))
            if spec.get("objectives"):
                raise BadInput(
                    f"{self.directory}: it has {len(spec['objectives'])} objectives, of which none "
                    "is the best alone: take analysis.pareto"
                )
            self._best = json.loads(_ask("best", str(self.directory), "--json"))
        best: Dict[str, Any] = self._best
        return best

    def __repr__(self) -> str:
        return f"Analysis({str(self.directory)!r})"


T = TypeVar("T")


def restore(kind: Callable[[], T], directory: Union[str, Path]) -> T:
    """An object of this class in this process, set up with the best configuration of the experiment
    in the folder and loaded from its best checkpoint. Raises BadInput when nothing was saved."""
    analysis = Analysis.load(directory)
    trial = analysis.best_trial
    checkpoint = analysis.best_checkpoint
    iteration = int(checkpoint.name.split("_")[1].split("-")[0])
    trainable: Any = kind()
    trainable.context = Context(trial.id, trial.directory, iteration=iteration)
    # The model is that of the checkpoint, which a replaced trial may have saved with other values.
    trainable.setup(_config_at(analysis.directory, trial, iteration))
    trainable.load(checkpoint)
    restored: T = trainable
    return restored


def _config_at(directory: Path, trial: TrialSummary, iteration: int) -> Dict[str, Any]:
    """The configuration that the trial's result of this iteration came of."""
    config = None
    with open(directory / "events.jsonl", encoding="utf-8", errors="replace") as events:
        for line in events:
            if '"replaced"' not in line:
                continue
            event = json.loads(line)
            if event["event"] != "replaced" or event["trial"] != trial.id:
                continue
            if event["iteration"] < iteration:
                config = event["new"]
            elif config is None:
                config = event["old"]
    return trial.config if config is None else config


def _ask(*words: str) -> str:
    done = subprocess.run(
        [tune_program(), *words], env=environment(), capture_output=True, text=True, check=False
    )
    out: str = done.stdout
    if done.returncode != 0:
        raise BadInput(done.stderr.strip().replace("error: ", "", 1))
    return out


def _numbers(result: Any) -> Any:
    """As results are stored: null is NaN, "inf" and "-inf" are infinite."""
    if isinstance(result, dict):
        return {key: _numbers(value) for key, value in result.items()}
    if result is None:
        return float("nan")
    if result in ("inf", "-inf"):
        return float(result)
    return result


def _flat(value: Dict[str, Any], prefix: str) -> Dict[str, Any]:
    leaves: List[Tuple[str, Any]] = []
    for key, item in value.items():
        if isinstance(item, dict):
            leaves.extend(_flat(item, f"{prefix}{key}/").items())
        else:
            leaves.append((prefix + key, item))
    return dict(leaves)
