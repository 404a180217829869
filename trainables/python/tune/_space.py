"""How a configuration is drawn: constants, nested maps, and these domains. The table of
tune/README.md, "Search spaces", says what each draws."""

from __future__ import annotations

from typing import Any, Dict, Iterable, List, Sequence


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

def describe(space: Any) -> Any:
    """The space as YAML writes it: domains as maps of one key."""
    if isinstance(space, Domain):
        if space.name == "choice":
            return {"choice": _options(space.arguments)}
        return {space.name: _plain(space.arguments)}
    if isinstance(space, dict):
        if _is_old_grid(space):  # Ray Tune's {"grid_search": [...]}
            return {"grid_search": _plain(list(space["grid_search"]))}
        return {key: describe(value) for key, value in space.items()}
    return _constant(space)


def _options(options: List[Any]) -> List[Any]:
    if not any(_holds_domain(option) for option in options):
        return options
    return [describe(option) for option in options]


def _holds_domain(value: Any) -> bool:
    if isinstance(value, dict):
        return any(isinstance(item, Domain) or _holds_domain(item) for item in value.values())
    return isinstance(value, Domain)


def _constant(value: Any) -> Any:
    if callable(value) and not hasattr(value, "item"):
        raise TypeError(
            f"config: {value!r} is a function: a search space holds values and domains; compute "
            "what follows from them in the trainable"
        )
    if isinstance(value, (list, tuple)):
        for item in value:
            if isinstance(item, Domain) or _holds_domain(item):
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
