"""The times of a server actor, as `open_host` takes them."""

from __future__ import annotations

from attrs import frozen

__all__ = ["ServerSettings"]


@frozen
class ServerSettings:
    """The times of a server actor, in seconds.

    Args:
        connect_timeout: from spawn to the first complete list, unless the entry says otherwise.
        list_timeout: of one later listing.
        settle, settle_max: a list is fetched when announcements have been silent for ``settle``, at the latest
            ``settle_max`` after the first.
        drain: how long calls in flight may go on after a stop.
        relist_pause, relist_pause_max: first and longest pause after a listing that failed.
        unchanged_pause_max: longest pause before the next listing after ones that brought nothing new.
        renew_pause: a session that ends sooner than this after the one before is a crash, and not just opened anew.
    """

    connect_timeout: float = 60.0
    list_timeout: float = 30.0
    settle: float = 0.05
    settle_max: float = 1.0
    drain: float = 10.0
    relist_pause: float = 1.0
    relist_pause_max: float = 30.0
    unchanged_pause_max: float = 5.0
    renew_pause: float = 5.0
