"""MessagePack, as much of it as the worker contract (core/worker_contract.h) uses."""

from __future__ import annotations

import struct
from typing import Any, Callable, Dict, List, Optional, Tuple

MAX_NESTING = 64  # kMaxNesting of core/json.h

_INT64_MIN = -(1 << 63)
_INT64_MAX = (1 << 63) - 1
_float64 = struct.Struct(">Bd").pack
_int64 = struct.Struct(">Bq").pack
_unpack_float64 = struct.Struct(">d").unpack_from
_unpack_float32 = struct.Struct(">f").unpack_from


class PackError(ValueError):
    """A value that has no place in a message, with its key path; or bytes that are none."""


# ---- Writing -------------------------------------------------------------------------------------


def pack(value: Any) -> bytes:
    """The value's MessagePack form.

    None, bool, int, float, str, lists, tuples and maps with text keys; numbers and arrays of numpy,
    torch and the like become plain numbers and lists.
    """
    out = bytearray()
    _append(out, value, "", 0)
    return bytes(out)


def _append(out: bytearray, value: Any, path: str, depth: int) -> None:
    kind = type(value)
    if kind is float:
        out += _float64(0xCB, value)
    elif kind is int:
        _append_int(out, value, path)
    elif kind is str:
        _append_text(out, value)
    elif kind is bool:
        out.append(0xC3 if value else 0xC2)
    elif value is None:
        out.append(0xC0)
    elif isinstance(value, dict):
        _append_map(out, value, path, depth)
    elif isinstance(value, (list, tuple)):
        _append_list(out, value, path, depth)
    else:
        _append(out, _plain(value, path), path, depth)


def _append_int(out: bytearray, value: int, path: str) -> None:
    if 0 <= value < 0x80:
        out.append(value)
    elif _INT64_MIN <= value <= _INT64_MAX:
        out += _int64(0xD3, value)
    else:
        raise PackError(f"{_at(path)}{value} does not fit 64 bits: make it a float or a text")


def _append_text(out: bytearray, value: str) -> None:
    data = value.encode("utf-8", "replace")
    size = len(data)
    if size < 32:
        out.append(0xA0 | size)
    elif size < 1 << 16:
        out += struct.pack(">BH", 0xDA, size)
    else:
        out += struct.pack(">BI", 0xDB, size)
    out += data


def _append_map(out: bytearray, value: Dict[Any, Any], path: str, depth: int) -> None:
    _check_depth(path, depth)
    size = len(value)
    if size < 16:
        out.append(0x80 | size)
    else:
        out += struct.pack(">BI", 0xDF, size)
    for key, item in value.items():
        if type(key) is not str:
            key = _text_key(key, path)
        if "/" in key or not key:
            raise PackError(
                f"{_at(path)}the key {key!r}: keys are not empty and have no '/', which stands "
                "between the keys of nested maps; write {'loss': {'train': 0.1}} for loss/train"
            )
        _append_text(out, key)
        _append(out, item, f"{path}/{key}" if path else key, depth + 1)


def _append_list(out: bytearray, value: Any, path: str, depth: int) -> None:
    _check_depth(path, depth)
    size = len(value)
    if size < 16:
        out.append(0x90 | size)
    else:
        out += struct.pack(">BI", 0xDD, size)
    for index, item in enumerate(value):
        _append(out, item, f"{path}/{index}", depth + 1)


def _check_depth(path: str, depth: int) -> None:
    if depth >= MAX_NESTING:
        raise PackError(f"{_at(path)}nested deeper than {MAX_NESTING} levels")


def _text_key(key: Any, path: str) -> str:
    if isinstance(key, str):
        return str(key)
    raise PackError(f"{_at(path)}the key {key!r} has the type {type(key).__name__}: keys are texts")


def _plain(value: Any, path: str) -> Any:
    """A number, text or list for what stands for one; a numpy or torch scalar, an array, a Path."""
    for base in (str, bool, int, float):
        if isinstance(value, base):  # subclasses, numpy.float64 among them
            return base(value)
    if hasattr(value, "__fspath__"):
        return str(value)
    if getattr(value, "shape", None) == () and hasattr(value, "item"):
        return value.item()
    if hasattr(value, "tolist") and hasattr(value, "shape"):
        return value.tolist()
    raise PackError(
        f"{_at(path)}the type {type(value).__name__} does not fit into a result or configuration: "
        "give a number, text, bool, None, list or dict"
    )


def _at(path: str) -> str:
    return f"{path}: " if path else ""


# ---- Reading -------------------------------------------------------------------------------------


def unpack(data: bytes) -> Any:
    """The one value that ``data`` holds. Raises PackError for anything else."""
    try:
        value, end = _read(data, 0, 0)
    except (IndexError, struct.error):
        raise PackError("the message ends too early") from None
    if end != len(data):
        raise PackError(f"{len(data) - end} bytes follow the message")
    return value


def _read(data: bytes, at: int, depth: int) -> Tuple[Any, int]:
    tag = data[at]
    at += 1
    if tag < 0x80:
        return tag, at
    if tag >= 0xE0:
        return tag - 0x100, at
    if tag < 0x90:
        return _read_map(data, at, tag & 0x0F, depth)
    if tag < 0xA0:
        return _read_list(data, at, tag & 0x0F, depth)
    if tag < 0xC0:
        return _read_text(data, at, tag & 0x1F)
    if tag in _CONSTANTS:
        return _CONSTANTS[tag], at
    if tag == 0xCB:
        return _unpack_float64(data, at)[0], at + 8
    if tag == 0xCA:
        return _unpack_float32(data, at)[0], at + 4
    if tag in _INTEGERS:
        size, signed = _INTEGERS[tag]
        return int.from_bytes(_take(data, at, size), "big", signed=signed), at + size
    if tag in _SIZED:
        read, width = _SIZED[tag]
        return read(data, at + width, int.from_bytes(_take(data, at, width), "big"), depth)
    raise PackError(f"the byte {tag:#x} begins no value of the contract")


def _take(data: bytes, at: int, size: int) -> bytes:
    part = data[at : at + size]
    if len(part) != size:
        raise PackError("the message ends too early")
    return part


def _read_text(data: bytes, at: int, size: int, depth: int = 0) -> Tuple[str, int]:
    return _take(data, at, size).decode("utf-8", "replace"), at + size


def _read_binary(data: bytes, at: int, size: int, depth: int) -> Tuple[bytes, int]:
    return _take(data, at, size), at + size


def _read_list(data: bytes, at: int, size: int, depth: int) -> Tuple[List[Any], int]:
    if depth >= MAX_NESTING + 8:  # a message around it
        raise PackError("the message is nested too deep")
    items = []
    for _ in range(size):
        item, at = _read(data, at, depth + 1)
        items.append(item)
    return items, at


def _read_map(data: bytes, at: int, size: int, depth: int) -> Tuple[Dict[Any, Any], int]:
    if depth >= MAX_NESTING + 8:  # a message around it
        raise PackError("the message is nested too deep")
    members = {}
    for _ in range(size):
        key, at = _read(data, at, depth + 1)
        members[key], at = _read(data, at, depth + 1)
    return members, at


_CONSTANTS = {0xC0: None, 0xC2: False, 0xC3: True}
_INTEGERS = {
    0xCC: (1, False),
    0xCD: (2, False),
    0xCE: (4, False),
    0xCF: (8, False),
    0xD0: (1, True),
    0xD1: (2, True),
    0xD2: (4, True),
    0xD3: (8, True),
}
_SIZED: Dict[int, Tuple[Callable[[bytes, int, int, int], Tuple[Any, int]], int]] = {
    0xC4: (_read_binary, 1),
    0xC5: (_read_binary, 2),
    0xC6: (_read_binary, 4),
    0xD9: (_read_text, 1),
    0xDA: (_read_text, 2),
    0xDB: (_read_text, 4),
    0xDC: (_read_list, 2),
    0xDD: (_read_list, 4),
    0xDE: (_read_map, 2),
    0xDF: (_read_map, 4),
}


def find_number(value: Any, path: str) -> Optional[float]:
    """The number at a key path of nested maps; None when there is none."""
    for key in path.split("/"):
        if not isinstance(value, dict) or key not in value:
            return None
        value = value[key]
    if getattr(value, "shape", None) == () and hasattr(value, "item"):
        value = value.item()
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return value
