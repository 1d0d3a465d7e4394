"""A port of this host that leads to another."""

from __future__ import annotations

import selectors
import socket
import threading


class Forwarder:
    """Connections to `at` reach `to`, both (host, port), until `stop`."""

    def __init__(self, at: tuple[str, int], to: tuple[str, int]) -> None:
        self._to = to
        self._open: set[socket.socket] = set()
        self._listener = socket.create_server(at)
        self._thread = threading.Thread(target=self._accept, name=f"port-{at[1]}", daemon=True)
        self._thread.start()

    def _accept(self) -> None:
        while True:
            try:
                ours, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._join, args=(ours,), name="forward", daemon=True).start()

    def _join(self, ours: socket.socket) -> None:
        with ours:
            try:
                theirs = socket.create_connection(self._to, 5)
            except OSError:
                return
            theirs.settimeout(None)
            with theirs, selectors.DefaultSelector() as ready:
                self._open |= {ours, theirs}
                ready.register(ours, selectors.EVENT_READ, theirs)
                ready.register(theirs, selectors.EVENT_READ, ours)
                try:
                    while ready.get_map():
                        for key, _ in ready.select():
                            source = key.fileobj
                            assert isinstance(source, socket.socket)
                            data = source.recv(65536)
                            if data:
                                key.data.sendall(data)
                            else:
                                ready.unregister(source)
                                key.data.shutdown(socket.SHUT_WR)
                except OSError:
                    return
                finally:
                    self._open -= {ours, theirs}

    def stop(self) -> None:
        """End it with all its connections."""
        for at in (self._listener, *list(self._open)):
            try:
                at.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue
        self._listener.close()
        self._thread.join(5)
