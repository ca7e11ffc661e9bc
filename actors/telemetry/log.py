"""Records for stdlib `logging`: structured, without secrets, and harmless whatever the program's handlers do.

A record's message is a whole sentence. Beside it the record has attributes (``extra``), the same names everywhere; which ones
is in docs/tracing.md. What is logged in a task that works for one server knows whose it is, and goes through the scrubber of
its connection: its message, its attributes, and the traceback, which is handed on as text and not as an exception.
"""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable
from contextvars import ContextVar

from attrs import frozen

__all__ = ["About", "Log", "about"]

logging.getLogger("playbill").addHandler(logging.NullHandler())  # as libraries do: nobody listens, nothing is printed


@frozen
class About:
    """Whom a task works for.

    Args:
        server: its name.
        scrub: takes a text and returns it without that connection's secrets.
    """

    server: str
    scrub: Callable[[str], str]


_about: ContextVar[About | None] = ContextVar("the server that this task works for", default=None)


class about:
    """A block in which what is logged, also in tasks that are started in it, is about that server.

    Args:
        whom: the server, or None for none.
    """

    __slots__ = ("_token", "_whom")

    def __init__(self, whom: About | None) -> None:
        self._whom = whom

    def __enter__(self) -> None:
        self._token = _about.set(self._whom)

    def __exit__(self, *_: object) -> None:
        _about.reset(self._token)


def whom() -> About | None:
    """Whom this task works for, as `about` said."""
    return _about.get()


class Log:
    """One logger of ours.

    Args:
        name: of the `logging.Logger`.
    """

    def __init__(self, name: str) -> None:
        self._logger = logging.getLogger(name)

    def enabled(self, level: int) -> bool:
        """Whether a record of that level would be made."""
        return self._logger.isEnabledFor(level)

    def debug(self, message: str, *args: object, **extra: object) -> None:
        """A record for who looks closely; never raises, as all below.

        Args:
            message, args: as of `logging.Logger`.
            extra: attributes of the record; those that are None are left out.
        """
        self._tell(logging.DEBUG, message, args, extra)

    def info(self, message: str, *args: object, **extra: object) -> None:
        """A record of what is as it should be; arguments as of `debug`."""
        self._tell(logging.INFO, message, args, extra)

    def warning(self, message: str, *args: object, **extra: object) -> None:
        """A record of what somebody should know; arguments as of `debug`."""
        self._tell(logging.WARNING, message, args, extra)

    def error(self, message: str, *args: object, **extra: object) -> None:
        """A record of what somebody should see to; arguments as of `debug`."""
        self._tell(logging.ERROR, message, args, extra)

    def exception(self, message: str, *args: object, **extra: object) -> None:
        """An error, with the traceback of the exception that is being handled; arguments as of `debug`."""
        self._tell(logging.ERROR, message, args, extra, traceback.format_exc())

    def failed(self, error: BaseException | None, message: str, *args: object, **extra: object) -> None:
        """A warning, with the traceback of an exception that was handled elsewhere; the other arguments as of `debug`."""
        trace = None if error is None else "".join(traceback.format_exception(error))
        self._tell(logging.WARNING, message, args, extra, trace)

    def _tell(
        self, level: int, message: str, args: tuple[object, ...], extra: dict[str, object], trace: str | None = None
    ) -> None:
        logger = self._logger
        try:
            if not logger.isEnabledFor(level):
                return
            text = message % args if args else message
            extra = {name: value for name, value in extra.items() if value is not None}
            whose = _about.get()
            if whose is not None:
                text, trace = whose.scrub(text), trace and whose.scrub(trace)
                extra = {name: whose.scrub(value) if type(value) is str else value for name, value in extra.items()}
                extra.setdefault("server", whose.server)
            file, line, function, _ = logger.findCaller(stacklevel=3)
            record = logger.makeRecord(logger.name, level, file, line, text, (), None, function, extra)
            record.exc_text = trace and trace.rstrip("\n")
            logger.handle(record)
        except Exception:
            # A handler of the program's that raises; there is nowhere left to say so.
            return
