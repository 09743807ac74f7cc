"""A proxy on loopback between a client and PostgreSQL that cuts connections at a commit, or keeps back what is said."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from types import TracebackType
from typing import Final, Literal, Self

_COMMIT: Final = b"COMMIT\x00"

_LOOK_SECONDS: Final = 0.005


class CuttingProxy:
    """Forwards connections to a port.

    Attributes:
        cut: At the next commit: cut the connection before it reaches the server, or when that has answered; None to
            forward everything.
        refusing: Whether new connections are refused; a cut then takes the other ones along, before its own.
        keeps: What does not get through for now, as if the way were lost without a word; None for nothing.
    """

    def __init__(self, port: int) -> None:
        self.cut: Literal["before", "after"] | None = None
        self.refusing = False
        self.keeps: Literal["questions", "answers"] | None = None
        self._ended = threading.Event()
        self._to = port
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        self._lock = threading.Lock()

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self._listening.getsockname()[1])

    def __enter__(self) -> Self:
        """Begin to forward."""
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        """Cut everything."""
        self._ended.set()
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        self.cut_all()

    def cut_all(self, *, but: socket.socket | None = None) -> None:
        """Cut every connection, or every one but a client's."""
        with self._lock:
            pairs, self._pairs = self._pairs, []
        for pair in pairs:
            if pair[0] is not but:
                _close(*pair)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listening.accept()
            except OSError:
                return
            if self.refusing:
                client.close()
                continue
            try:
                server = socket.create_connection(("127.0.0.1", self._to))
            except OSError:
                client.close()
                continue
            with self._lock:
                self._pairs.append((client, server))
            cutting = threading.Event()
            for run in (self._ask, self._answer):
                threading.Thread(target=run, args=(client, server, cutting), daemon=True).start()

    def _ask(self, client: socket.socket, server: socket.socket, cutting: threading.Event) -> None:
        with suppress(OSError):
            while data := client.recv(65536):
                if self.cut is not None and _COMMIT in data:
                    how, self.cut = self.cut, None
                    if how == "before":
                        break
                    cutting.set()
                self._keep("questions")
                server.sendall(data)
        _close(client, server)

    def _answer(self, client: socket.socket, server: socket.socket, cutting: threading.Event) -> None:
        with suppress(OSError):
            while data := server.recv(65536):
                if cutting.is_set():
                    if self.refusing:
                        self.cut_all(but=client)
                    break
                self._keep("answers")
                client.sendall(data)
        _close(client, server)

    def _keep(self, what: Literal["questions", "answers"]) -> None:
        """Wait until something gets through."""
        while self.keeps == what and not self._ended.wait(_LOOK_SECONDS):
            pass


def _close(*sockets: socket.socket) -> None:
    for one in sockets:
        with suppress(OSError):
            one.shutdown(socket.SHUT_RDWR)
        one.close()
