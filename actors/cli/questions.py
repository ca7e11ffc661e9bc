"""What a server asks while a verb waits for it: the command line has no handlers, and says so."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from .errors import diagnose

__all__ = ["questions_told"]


class _Heard(logging.Handler):
    """Keeps which questions servers asked."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.methods: dict[str, None] = {}

    def emit(self, record: logging.LogRecord) -> None:
        if getattr(record, "event", None) == "question":
            self.methods[str(getattr(record, "method", "?"))] = None


@contextmanager
def questions_told(server: str) -> Iterator[None]:
    """Say in one line at the end of the block if the one server that runs asked anything in it."""
    logger, heard = logging.getLogger("playbill.client"), _Heard()
    level = logger.level
    logger.addHandler(heard)
    if not logger.isEnabledFor(logging.INFO):
        logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.setLevel(level)
        logger.removeHandler(heard)
        if heard.methods:
            what = ", ".join(heard.methods)
            diagnose(
                f"server {server!r} asked something ({what}): the command line answers no questions of servers;"
                " call it from a program with handlers"
            )
