"""Ctrl-C as a wish to come to an end, for work that has something to say of how far it got."""

import signal
import threading
from types import FrameType, TracebackType
from typing import Any


class Interrupts:
    """While it is entered the first SIGINT is only noted; the next one interrupts as ever."""

    def __init__(self) -> None:
        self.is_interrupted = False
        self._before: Any = None

    def go_on(self) -> bool:
        """Whether nobody has asked for the end."""
        return not self.is_interrupted

    def __enter__(self) -> "Interrupts":
        if threading.current_thread() is threading.main_thread():
            self._before = signal.signal(signal.SIGINT, self._note)
        return self

    def __exit__(
        self,
        exception_type: type[BaseException] | None,
        exception: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self.is_interrupted:
            raise KeyboardInterrupt
        self.is_interrupted = True
