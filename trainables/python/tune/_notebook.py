"""The progress table of a notebook: HTML, in one cell. Elsewhere the program draws its own table."""

from __future__ import annotations

import html
import json
import sys
from typing import Any, Dict, List, Optional

_STYLE = "border-collapse:collapse;font-size:90%"


def make_view() -> Optional["StatusView"]:
    """A view in a notebook, else None."""
    module = sys.modules.get("IPython")
    shell = module.get_ipython() if module is not None else None
    if shell is None or not hasattr(shell, "kernel"):
        return None
    return StatusView()


class StatusView:
    """Takes the lines of tune/show/status_stream.h and shows the newest in one place."""

    def __init__(self) -> None:
        self._rest = b""
        self._status: Dict[str, Any] = {"lines": [], "table": []}
        self._notices: List[str] = []
        self._handle: Any = None

    def take(self, data: bytes) -> None:
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            told = json.loads(line)
            if "notice" in told:
                self._notices.append(told["notice"])
            else:
                self._status = told
        if lines:
            self._show()

    def html(self) -> str:
        lines = "".join(f"<div>{html.escape(line)}</div>" for line in self._status["lines"])
        notices = "".join(
            f"<div style='color:#a00'>{html.escape(text)}</div>" for text in self._notices[-20:]
        )
        return f"{lines}{_table(self._status['table'])}{notices}"

    def _show(self) -> None:
        display: Any = sys.modules["IPython"].display
        if self._handle is None:
            self._handle = display.display(display.HTML(self.html()), display_id=True)
        else:
            self._handle.update(display.HTML(self.html()))


def _table(rows: List[List[str]]) -> str:
    if len(rows) < 2:
        return ""
    heads = "".join(f"<th>{html.escape(cell)}</th>" for cell in rows[0])
    body = "".join(
        "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>"
        for row in rows[1:]
    )
    return f"<table style='{_STYLE}'><tr>{heads}</tr>{body}</table>"
