"""How a configuration is drawn: constants, nested maps, and these domains. The table of
tune/README.md, "Search spaces", says what each draws."""

from __future__ import annotations

from typing import Any, Dict, Iterable, List, Sequence

from ._ray import domain_of_ray, is_of_ray


class Domain:
    """One way to draw a value: what the functions of this module return."""

    def __init__(self, name: str, arguments: Sequence[Any]) -> None:
        self.name = name
        self.arguments = list(arguments)

    def __repr__(self) -> str:
        return f"tune.{self.name}({', '.join(map(repr, self.arguments))})"


def uniform(low: float, high: float) -> Domain:
    """A float in [low, high)."""
    return Domain("uniform", [low, high])


def quniform(low: float, high: float, q: float) -> Domain:
    """The nearest multiple of q of a uniform draw, high included."""
    return Domain("quniform", [low, high, q])


def loguniform(low: float, high: float) -> Domain:
    """A float in [low, high), uniform in its logarithm; bounds are values, never exponents."""
    return Domain("loguniform", [low, high])


def qloguniform(low: float, high: float, q: float) -> Domain:
    """As loguniform, rounded to a multiple of q."""
    return Domain("qloguniform", [low, high, q])


def randint(low: int, high: int) -> Domain:
    """An integer in [low, high): high is excluded."""
    return Domain("randint", [low, high])


def qrandint(low: int, high: int, q: int = 1) -> Domain:
    """A multiple of q in [low, high]: high is included."""
    return Domain("qrandint", [low, high, q])


def lograndint(low: int, high: int) -> Domain:
    """An integer in [low, high), uniform in its logarithm."""
    return Domain("lograndint", [low, high])


def randn(mean: float = 0.0, sd: float = 1.0) -> Domain:
    """A normal number."""
    return Domain("randn", [mean, sd])


def qrandn(mean: float, sd: float, q: float) -> Domain:
    """A normal number rounded to a multiple of q."""
    return Domain("qrandn", [mean, sd, q])


def choice(options: Iterable[Any]) -> Domain:
    """One of the values; an option that is a map may hold domains, drawn when it is taken."""
    return Domain("choice", list(options))


def grid_search(values: Iterable[Any]) -> Domain:
    """Every value is tried: trials = num_samples x the product of all grids."""
    return Domain("grid_search", list(values))


# ---- The shape of YAML ---------------------------------------------------------------------------

def describe(space: Any, path: str = "config") -> Any:
    """The space as YAML writes it: domains as maps of one key."""
    if is_of_ray(space):
        space = _of_ray(space, path)
    if isinstance(space, Domain):
        if space.name == "choice":
            return {"choice": _options(space.arguments, path)}
        return {space.name: _plain(space.arguments)}
    if isinstance(space, dict):
        if _is_old_grid(space):  # Ray Tune's {"grid_search": [...]}
            return {"grid_search": _plain(list(space["grid_search"]))}
        return {key: describe(value, f"{path}/{key}") for key, value in space.items()}
    return _constant(space)


def from_ray(space: Any, path: str = "config") -> Any:
    """A search space of Ray Tune with our domains in place of its own, for a look at what is drawn:
    ``tune.run`` takes such a space as it is. Raises TypeError, with the parameter's path, for
    ``sample_from`` and others that have no counterpart."""
    if is_of_ray(space):
        domain = _of_ray(space, path)
        return Domain(domain.name, [from_ray(one, path) for one in domain.arguments])
    if isinstance(space, dict):
        return {key: from_ray(value, f"{path}/{key}") for key, value in space.items()}
    return space


def _of_ray(value: Any, path: str) -> Domain:
    return Domain(*domain_of_ray(value, path))


def _options(options: List[Any], path: str) -> List[Any]:
    if not any(_holds_domain(option) for option in options):
        return options
    return [describe(option, path) for option in options]


def _is_domain(value: Any) -> bool:
    return isinstance(value, Domain) or is_of_ray(value)


def _holds_domain(value: Any) -> bool:
    if isinstance(value, dict):
        return any(_is_domain(item) or _holds_domain(item) for item in value.values())
    return _is_domain(value)


def _constant(value: Any) -> Any:
    if callable(value) and not hasattr(value, "item"):
        raise TypeError(
            f"config: {value!r} is a function: a search space holds values and domains; compute "
            "what follows from them in the trainable"
        )
    if isinstance(value, (list, tuple)):
        for item in value:
            if _holds_domain(item):
                raise TypeError(
                    "config: a domain within a list is not drawn: give it a key of its own"
                )
    return _plain(value)


def _is_old_grid(space: Dict[str, Any]) -> bool:
    return len(space) == 1 and isinstance(space.get("grid_search"), (list, tuple))


def _plain(value: Any) -> Any:
    if isinstance(value, Domain):
        raise TypeError(f"config: {value!r} stands where only constants do")
    return list(value) if isinstance(value, tuple) else value


def nested(flat: Dict[str, Any]) -> Dict[str, Any]:
    """{"loss/test": 1} as {"loss": {"test": 1}}."""
    tree: Dict[str, Any] = {}
    for path, value in flat.items():
        at = tree
        *above, last = path.split("/")
        for key in above:
            at = at.setdefault(key, {})
        at[last] = value
    return tree
