"""Records for stdlib `logging`, whose handlers are the program's: one that raises must not end an actor."""

from __future__ import annotations

import logging

__all__ = ["tell"]


def tell(
    logger: logging.Logger, level: int, message: str, *args: object, error: object = None, **extra: object
) -> None:
    """Log, and raise nothing.

    Args:
        logger, level, message, args: as of `logging.Logger.log`.
        error: an exception whose traceback goes with it, or None.
        extra: attributes of the record.
    """
    try:
        logger.log(level, message, *args, exc_info=error, extra=extra, stacklevel=2)  # type: ignore[arg-type]
    except Exception:
        return
