"""What is kept of an entry's login, as far as this machine can tell without asking anybody. For `playbill list`."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Literal

from ...model.config import ServerEntry
from ...model.oauth import OAuth
from ..config.here import look_here

__all__ = ["Kept", "login_kept"]

Kept = Literal["kept", "needed"]


def login_kept(entry: ServerEntry, folder: Path | None = None) -> Kept | None:
    """Whether there is a login: ``kept``; or ``needed``, when it has ended, or the entry says that there is to be one.

    None when nobody can tell: most servers say that they want a login only when they are asked.

    Args:
        entry: as configured.
        folder: where logins are kept; None: in the user's state folder of playbill.
    """
    if entry.url is None or (entry.oauth is not None and not entry.oauth.enabled):
        return None
    here = look_here(entry)
    if here.expanded is None or here.lacks or here.expanded.url is None:
        return None
    from .record import key_of
    from .store import LoginStore

    settings = here.expanded.oauth or OAuth()
    try:
        record = LoginStore(folder).read(key_of(here.expanded.url, settings))
    except ValueError:
        return None
    if settings.by_itself or any(name.lower() == "authorization" for name in here.expanded.headers):
        return None
    if record is None:
        return "needed" if entry.oauth is not None else None
    lives = record.access_token is not None and (record.expires_at is None or record.expires_at > time.time())
    return "kept" if lives or record.refresh_token is not None else "needed"
