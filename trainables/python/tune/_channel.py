"""The worker's end of its socket to the agent. One thread. When the agent is gone the process ends at
once: nothing can be reported any more."""

from __future__ import annotations

import os
import socket
from typing import Any, Iterator, Optional

from ._contract import MAX_FRAME_BYTES, OthersAlone, decode_command
from ._pack import PackError

_AGENT_GONE_EXIT_CODE = 1
_READ_BYTES = 1 << 16


class Channel:
    def __init__(self, descriptor: int) -> None:
        self._socket = socket.socket(fileno=descriptor)
        self._socket.setblocking(True)
        self._input = bytearray()

    def send(self, message: bytes) -> None:
        """Waits while the agent does not read."""
        try:
            self._socket.sendall(len(message).to_bytes(4, "little") + message)
        except OSError:
            os._exit(_AGENT_GONE_EXIT_CODE)

    def wait(self) -> Any:
        """The next command."""
        while True:
            command = self._buffered()
            if command is not None:
                return command
            self._receive(0)

    def poll(self) -> Optional[Any]:
        """The same if one is there already."""
        if self._input:
            command = self._buffered()
            if command is not None:
                return command
        if not self._receive(socket.MSG_DONTWAIT):
            return None
        return self._buffered()

    def _receive(self, flags: int) -> bool:
        try:
            data = self._socket.recv(_READ_BYTES, flags)
        except BlockingIOError:
            return False
        except OSError:
            data = b""
        if not data:
            os._exit(_AGENT_GONE_EXIT_CODE)
        self._input += data
        return True

    def _buffered(self) -> Optional[Any]:
        for frame in self._frames():
            command = decode_command(frame)
            if not isinstance(command, OthersAlone):  # nobody here asks
                return command
        return None

    def _frames(self) -> Iterator[bytes]:
        while len(self._input) >= 4:
            size = int.from_bytes(self._input[:4], "little")
            if size > MAX_FRAME_BYTES:
                raise PackError(f"a frame claims {size} bytes, at most {MAX_FRAME_BYTES} are allowed")
            if len(self._input) < 4 + size:
                return
            frame = bytes(self._input[4 : 4 + size])
            del self._input[: 4 + size]
            yield frame
