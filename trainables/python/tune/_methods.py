"""Schedulers and searchers: the names and parameters of schedulers/README.md and tune/README.md. A
parameter that is not given keeps the program's default."""

from __future__ import annotations

from typing import Any, Dict, List, Optional

from ._space import describe


class Method:
    """A scheduler or searcher with its parameters."""

    def __init__(self, kind: str, name: str, parameters: Dict[str, Any]) -> None:
        self.kind = kind
        self.name = name
        self.parameters = {key: value for key, value in parameters.items() if value is not None}

    def __repr__(self) -> str:
        inside = ", ".join(f"{key}={value!r}" for key, value in self.parameters.items())
        return f"tune.{self.name}({inside})"


# ---- Schedulers ----------------------------------------------------------------------------------


def fifo() -> Method:
    """Stops no trial."""
    return Method("scheduler", "fifo", {})


def asha(
    max_t: Optional[float] = None,
    grace_period: Optional[float] = None,
    reduction_factor: Optional[float] = None,
    brackets: Optional[int] = None,
    time_attr: Optional[str] = None,
    metric: Optional[str] = None,
    mode: Optional[str] = None,
    stop_last_trials: Optional[bool] = None,
    rule: Optional[str] = None,
    min_rung_size: Optional[int] = None,
    type: Optional[str] = None,
    open_after: Optional[int] = None,
    open_silent: Optional[bool] = None,
) -> Method:
    """Asynchronous successive halving: stops what is worse than others at the same step; with
    ``type="promote"`` pauses all at rungs and lets the best go on, and low rungs open to all with
    ``open_after``."""
    return Method("scheduler", "asha", dict(locals()))


def hyperband(
    max_t: Optional[float] = None,
    grace_period: Optional[float] = None,
    reduction_factor: Optional[float] = None,
    time_attr: Optional[str] = None,
    metric: Optional[str] = None,
    mode: Optional[str] = None,
    stop_last_trials: Optional[bool] = None,
) -> Method:
    """HyperBand with synchronous brackets. The trainable must save and load."""
    return Method("scheduler", "hyperband", dict(locals()))


def median_stopping(
    grace_period: Optional[float] = None,
    min_samples_required: Optional[int] = None,
    rule: Optional[str] = None,
    time_attr: Optional[str] = None,
    metric: Optional[str] = None,
    mode: Optional[str] = None,
) -> Method:
    """Stops what is worse than half of the others at the same step."""
    return Method("scheduler", "median_stopping", dict(locals()))


def pbt(**parameters: Any) -> Method:
    """Population based training: its parameters are those of schedulers/README.md; values to try in
    ``hyperparam_mutations`` are domains or lists. The trainable must save and load."""
    return Method("scheduler", "pbt", {key: describe(value) for key, value in parameters.items()})


def pb2(**parameters: Any) -> Method:
    """Population based bandits: as pbt, and a model of the results so far proposes the values. Its
    parameters are those of schedulers/README.md. The trainable must save and load."""
    return Method("scheduler", "pb2", {key: describe(value) for key, value in parameters.items()})


def pbt_replay(schedule: List[Dict[str, Any]]) -> Method:
    """Plays on one trial what pbt has found."""
    return Method("scheduler", "pbt_replay", {"schedule": schedule})


def scheduler(name: str, **parameters: Any) -> Method:
    """Any scheduler of the program by its name."""
    return Method("scheduler", name, parameters)


# ---- Searchers -----------------------------------------------------------------------------------


def automatic() -> Method:
    """What fits the search; the default."""
    return Method("searcher", "auto", {})


def random_search() -> Method:
    """Independent draws: the same list of configurations whatever the order of results."""
    return Method("searcher", "random", {})


def every_cell(constant_grid_search: Optional[bool] = None) -> Method:
    """Every combination of the values of grid_search."""
    return Method("searcher", "grid", dict(locals()))


def halton() -> Method:
    """Halton's sequence: draws that fill the space more evenly."""
    return Method("searcher", "halton", {})


def basic_variant(constant_grid_search: Optional[bool] = None) -> Method:
    """Grid and random search mixed."""
    return Method("searcher", "basic_variant", dict(locals()))


def gp(start_up: Optional[int] = None, random_share: Optional[float] = None) -> Method:
    """A Gaussian process that learns from the trials so far."""
    return Method("searcher", "gp", dict(locals()))


def tpe(start_up: Optional[int] = None, random_share: Optional[float] = None) -> Method:
    """The tree-structured Parzen estimator."""
    return Method("searcher", "tpe", dict(locals()))


def cma_es(population: Optional[int] = None) -> Method:
    """CMA-ES, generation after generation."""
    return Method("searcher", "cma_es", dict(locals()))


def nsga2(population: Optional[int] = None, crossover: Optional[float] = None) -> Method:
    """NSGA-II, for several objectives and hundreds of trials."""
    return Method("searcher", "nsga2", dict(locals()))


def searcher(name: str, **parameters: Any) -> Method:
    """Any searcher of the program by its name."""
    return Method("searcher", name, parameters)


def named(kind: str, value: Any) -> Any:
    """A method as YAML writes it: its name, or {name: {parameters}}."""
    if isinstance(value, str) or value is None:
        return value
    if isinstance(value, Method):
        if value.kind != kind:
            raise TypeError(f"{kind}: {value!r} is a {value.kind}")
        return {value.name: value.parameters}
    if isinstance(value, dict) and len(value) == 1:
        return value
    raise TypeError(
        f"{kind}: expected tune.asha(...) or the like, or its name, found {value!r}"
        + (" (objects of Ray Tune do not work here)" if "ray" in type(value).__module__ else "")
    )
