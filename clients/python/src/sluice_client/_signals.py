"""The first SIGTERM or SIGINT ends the workers of the main thread. The second does what it did before."""

from __future__ import annotations

import signal
import threading
from typing import Any, Callable, Dict, List

_stops: List[Callable[[], object]] = []
_before: Dict[int, Any] = {}


def on_signals(stop: Callable[[], object], *, always: bool) -> Callable[[], None]:
    """Calls stop at the first signal, until the returned function is called.

    With always, it takes the place of the program's own handlers. Without, a signal for which there is one is left to it.
    """
    if threading.current_thread() is not threading.main_thread():
        return lambda: None
    _stops.append(stop)
    for number in (signal.SIGTERM, signal.SIGINT):
        before = signal.getsignal(number)
        if number not in _before and (always or before in (signal.SIG_DFL, signal.default_int_handler)):
            _before[number] = before
            signal.signal(number, _first)

    def leave() -> None:
        _stops.remove(stop)
        if not _stops:
            _restore()

    return leave


def _first(_number: int, _frame: object) -> None:
    _restore()
    for stop in list(_stops):
        stop()


def _restore() -> None:
    for number, action in _before.items():
        if signal.getsignal(number) is _first:  # otherwise the program has set another one since
            signal.signal(number, action)
    _before.clear()
