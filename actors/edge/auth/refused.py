"""A login that cannot be had as things are."""

from __future__ import annotations

__all__ = ["LoginRefused"]


class LoginRefused(Exception):
    """There is no login to be had in this way; the message is one line, without any secret."""
