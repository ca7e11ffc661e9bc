"""How a person is reached who is to log in."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from attrs import frozen

__all__ = ["Handlers", "Note", "OpenUrl", "WaitForCallback"]

Note = Literal["another state", "known client"]
"""What there is to tell while a person logs in: an answer with another state came to the port, and was ignored; the URL names
a client that registered itself at an earlier login, which the authorization server may have forgotten."""

OpenUrl = Callable[[str], Any]
"""Is given the URL that the person's browser is to go to; sync or async."""

WaitForCallback = Callable[[], Any]
"""Returns, sync or async, the URL that the browser was redirected to."""


@frozen
class Handlers:
    """How the person is reached.

    Args:
        open_url: see `OpenUrl`.
        wait_for_callback: see `WaitForCallback`; None: the loopback redirect alone.
        redirect_uri: that ``wait_for_callback`` answers for; None: the loopback redirect, beside ``wait_for_callback`` if that
            is given: whichever answers first.
        tell: is given what there is to tell meanwhile; None: nobody wants to know.
    """

    open_url: OpenUrl
    wait_for_callback: WaitForCallback | None = None
    redirect_uri: str | None = None
    tell: Callable[[Note], None] | None = None
