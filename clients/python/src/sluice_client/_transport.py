"""HTTP with kept connections, deadlines and retries, on the standard library alone."""

from __future__ import annotations

import http.client
import ipaddress
import json
import random
import socket
import ssl
import threading
import time
import urllib.parse
from typing import Any, Mapping, Optional

from .errors import ApiError, CertificateRefused, ConnectionFailed, TooDeep

BROKEN = (OSError, http.client.HTTPException)
PASSES = (429, 502, 503, 504)  # such an answer may be another in a moment
_KEPT = 20  # idle connections
ROOT = "/api/v1"


class Abort:
    """Ends a request from another thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sock: Optional[socket.socket] = None
        self._event = threading.Event()
        self.is_set, self.wait = self._event.is_set, self._event.wait

    def set(self) -> None:
        with self._lock:
            self._event.set()
            if self._sock is not None:
                _shut(self._sock)

    def hold(self, sock: Optional[socket.socket]) -> None:
        with self._lock:
            self._sock = sock
            if self.is_set() and sock is not None:
                _shut(sock)


def _shut(sock: socket.socket) -> None:
    try:
        sock.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass  # it is closed already


class Transport:
    def __init__(self, url: str, token: Optional[str], context: Optional[ssl.SSLContext]) -> None:
        parts = urllib.parse.urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
            raise ValueError(f"url {url!r} must be http://HOST:PORT or https://HOST:PORT, perhaps with a path")
        if parts.username or parts.password:
            raise ValueError("a url must not hold a password; pass the token")
        if token and parts.scheme == "http" and not _is_loopback(parts.hostname):
            raise ValueError(f"http://{parts.hostname} would show the token to everybody on the way; use https")
        if context is not None and parts.scheme == "http":
            raise ValueError("an ssl_context needs an https url")
        self._host, self._port = parts.hostname, parts.port
        self._context = (context or ssl.create_default_context()) if parts.scheme == "https" else None
        self._root = parts.path.rstrip("/") + ROOT
        self._headers = {"Accept": "application/json", "Content-Type": "application/json", "User-Agent": "sluice-client-python"}
        if token:
            self._headers["Authorization"] = "Bearer " + token
        self._lock = threading.Lock()
        self._idle: list[http.client.HTTPConnection] = []
        self._closed = False

    def close(self) -> None:
        with self._lock:
            idle, self._idle, self._closed = self._idle, [], True
        for connection in idle:
            connection.close()

    def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        timeout: float,
        wait: float = 0,
        headers: Optional[Mapping[str, str]] = None,
        abort: Optional[Abort] = None,
    ) -> Any:
        """Sends a request until it is answered, for at most timeout seconds. So it must be one that may be sent twice.

        wait is how long the server may keep a request before it answers. abort ends the request early.
        """
        abort = abort or Abort()
        data = None if body is None else json.dumps(body, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
        until = time.monotonic() + timeout
        pause = 0.05
        while True:
            left = until - time.monotonic()
            try:  # half of the time for the first try: a connection that went dead is noticed, and another one tried
                return self.once(method, path, data, timeout=(left / 2 if left > 2 else left) + wait, headers=headers, abort=abort)
            except ApiError as error:
                if error.status not in PASSES:
                    raise
                failure: Exception = error
                rest = error.retry_after if error.retry_after is not None else pause
            except BROKEN as error:
                failure = ConnectionFailed(f"{method} {path} at {self._host}: {error or type(error).__name__}; is `sluice serve` running there?")
                rest = pause
            rest *= 0.5 + random.random()
            if time.monotonic() + rest >= until or abort.wait(rest):
                raise failure from None
            pause = min(pause * 2, 2)

    def once(
        self,
        method: str,
        path: str,
        data: Optional[bytes],
        *,
        timeout: float,
        abort: Optional[Abort] = None,
        headers: Optional[Mapping[str, str]] = None,
        resend: bool = True,
    ) -> Any:
        """Sends a request once. With resend, it does so once more if the server has closed a kept connection."""
        if timeout <= 0:
            raise TimeoutError("the time was over before the request was sent")
        until = time.monotonic() + timeout
        connection, fresh = self._take(timeout)
        try:
            if abort is not None:
                if connection.sock is None:
                    connection.connect()
                abort.hold(connection.sock)
            connection.request(method, self._root + path, data, {**self._headers, **(headers or {})})
            response = connection.getresponse()
            text = response.read()
        except BROKEN as error:
            connection.close()
            refused = _of_certificate(error)
            if refused:
                raise CertificateRefused(f"{method} {path} at {self._host}: {refused}") from error
            silent = isinstance(error, socket.timeout)  # so would it be on the next connection
            if resend and not fresh and not silent and not (abort is not None and abort.is_set()):
                return self.once(method, path, data, timeout=until - time.monotonic(), abort=abort, headers=headers)
            raise
        except BaseException:
            connection.close()
            raise
        finally:
            if abort is not None:
                abort.hold(None)
        if response.will_close:
            connection.close()
        else:
            self._give(connection)
        return _answer(response, text)

    def _take(self, timeout: float) -> tuple[http.client.HTTPConnection, bool]:
        with self._lock:
            if self._closed:
                raise RuntimeError("the client is closed")
            connection = self._idle.pop() if self._idle else None
        if connection is not None:
            if connection.sock is not None:
                connection.sock.settimeout(timeout)
            return connection, False
        if self._context is not None:
            return http.client.HTTPSConnection(self._host, self._port, timeout=timeout, context=self._context), True
        return http.client.HTTPConnection(self._host, self._port, timeout=timeout), True

    def _give(self, connection: http.client.HTTPConnection) -> None:
        with self._lock:
            if not self._closed and len(self._idle) < _KEPT:
                self._idle.append(connection)
                return
        connection.close()


def _is_loopback(host: str) -> bool:
    """Says whether a host is this machine."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _of_certificate(error: Exception) -> Optional[str]:
    """Says what to do about a certificate that one side refused. None: the error has another cause."""
    if isinstance(error, ssl.SSLCertVerificationError):
        why = getattr(error, "verify_message", "") or error
        return f"the server's certificate is not trusted: {why}; pass ssl_context=ssl.create_default_context(cafile=FILE) if it is of your own authority"
    reason = str(getattr(error, "reason", ""))
    if isinstance(error, ssl.SSLError) and "ALERT" in reason and ("CERTIFICATE" in reason or "UNKNOWN_CA" in reason):
        return f"the server refused the certificate of the ssl_context: {reason}; load one that holds, of the authority of the server's --tls-client-ca"
    return None


def _answer(response: http.client.HTTPResponse, text: bytes) -> Any:
    if 300 <= response.status < 400:
        to = response.getheader("Location", "").partition("?")[0]
        raise ApiError(response.status, {"code": "redirect", "why": f"the address redirects to {to or 'another one'}", "do": "give the url of `sluice serve` itself"})
    try:
        value = json.loads(text) if text.strip() else None
    except ValueError:
        if response.status < 400:
            raise ConnectionFailed(f"the answer of {response.status} is not JSON; does the url lead to `sluice serve`?") from None
        value = None
    except RecursionError:
        if response.status < 400:
            raise TooDeep(f"the answer of {response.status} cannot be read: its JSON is nested deeper than Python decodes") from None
        value = None
    if response.status < 400:
        return value
    after = response.getheader("Retry-After")
    problem = value if isinstance(value, dict) else {"why": response.reason}
    raise ApiError(response.status, problem, float(after) if after and after.isdigit() else None)
