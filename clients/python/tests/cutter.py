"""A proxy that cuts connections: after the request has reached the server, before the answer reaches the client. It can also keep answers, or hold them up."""

import socket
import socketserver
import threading
import urllib.parse


class Cutter(socketserver.ThreadingTCPServer):
    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, url):
        parts = urllib.parse.urlsplit(url)
        self.target = (parts.hostname, parts.port)
        self.cuts, self.only = 0, b""  # how many answers are still to be cut, of those with a part
        self.keeps = None  # a part of the answers that the client does not get
        self.kept = threading.Event()
        self.hold = threading.Event()  # answers wait for it
        self.hold.set()
        self.lock = threading.Lock()
        super().__init__(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_address[1]}"

    def cut_next(self, answers, only=b""):
        with self.lock:
            self.cuts, self.only = answers, only


class Handler(socketserver.BaseRequestHandler):
    def handle(self):
        with socket.create_connection(self.server.target) as server:
            threading.Thread(target=copy, args=(self.request, server), daemon=True).start()
            while True:
                part = server.recv(65536)
                with self.server.lock:
                    cut = self.server.cuts > 0 and self.server.only in part
                    self.server.cuts -= cut
                self.server.hold.wait(60)
                if self.server.keeps and self.server.keeps in part:
                    self.server.kept.set()
                    continue
                try:
                    if not part or cut:
                        return self.request.shutdown(socket.SHUT_RDWR)
                    self.request.sendall(part)
                except OSError:
                    return None  # the client has gone


def copy(source, target):
    try:
        while part := source.recv(65536):
            target.sendall(part)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        pass  # one of the two is gone
