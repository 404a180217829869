"""Search spaces of Ray Tune as ours. Ray is not imported: its domains are known by their classes'
names and read by their fields."""

from __future__ import annotations

import math
from typing import Any, List, Optional, Tuple

_MODULE = "ray.tune.search.sample"


def is_of_ray(value: Any) -> bool:
    return type(value).__module__ == _MODULE


def domain_of_ray(value: Any, path: str) -> Tuple[str, List[Any]]:
    """The name and arguments of our domain. Raises TypeError for what has none here."""
    kind = type(value).__name__
    if kind == "Categorical":
        return "choice", list(value.categories)
    if kind not in ("Float", "Integer"):
        raise TypeError(
            f"{path}: ray.tune's {'sample_from' if kind == 'Function' else kind} has no counterpart: "
            "compute in the trainable what follows from other parameters"
        )
    sampler, q = _sampler_of(value)
    is_whole = kind == "Integer"
    if sampler == "_Normal":
        normal = value.sampler.sampler if q is not None else value.sampler
        arguments = [normal.mean, normal.sd]
        return ("randn", arguments) if q is None else ("qrandn", [*arguments, q])
    if sampler not in ("_Uniform", "_LogUniform"):
        raise TypeError(f"{path}: ray.tune's sampler {sampler} has no counterpart: use tune's domains")
    return _bounded(value, sampler == "_LogUniform", is_whole, q, path)


def _sampler_of(value: Any) -> Tuple[str, Optional[float]]:
    """Its class, and the step of a quantised one."""
    sampler = value.sampler
    if type(sampler).__name__ == "Quantized":
        return type(sampler.sampler).__name__, sampler.q
    return type(sampler).__name__, None


def _bounded(
    value: Any, is_log: bool, is_whole: bool, q: Optional[float], path: str
) -> Tuple[str, List[Any]]:
    low, high = value.lower, value.upper
    if is_whole and q == 1:
        q = None  # Ray leaves the upper bound out then, as randint does
    if q is None:
        name = {(0, 0): "uniform", (1, 0): "loguniform", (0, 1): "randint", (1, 1): "lograndint"}
        return name[is_log, is_whole], [low, high]
    if is_whole and is_log:
        raise TypeError(
            f"{path}: whole numbers on a logarithmic scale have no step here: use lograndint, and round "
            "in the trainable"
        )
    # Ray draws the multiples of q between the bounds.
    low, high = math.ceil(low / q - 1e-9) * q, math.floor(high / q + 1e-9) * q
    if high < low:
        raise TypeError(f"{path}: there is no multiple of {q} between {value.lower} and {value.upper}")
    return ("qrandint" if is_whole else "qloguniform" if is_log else "quniform"), [low, high, q]
