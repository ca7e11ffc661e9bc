"""Where a host has its logins from: they are made when a remote server first asks for one, or a person logs in or out.

A host whose servers are all local never has any, and never imports what they are made of. When a hub closes, a renewal that is
under way is given `LEAVE_SECONDS`: what it brings is kept.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import trio

from ..config.inputs import Inputs, Supply

if TYPE_CHECKING:
    from ..config.expand import Expanded
    from .logins import HttpLogin, Logins

__all__ = ["LOGIN_SECONDS", "Hub", "open_hub"]

LEAVE_SECONDS = 3.0
LOGIN_SECONDS = 300.0
"""Within which a person logs in, unless somebody says otherwise."""


class Hub:
    """Made by `open_hub`.

    Args:
        folder: where logins are kept; None: in the user's state folder of playbill.
        supply: expands entries.
        nursery: for renewals.
    """

    def __init__(self, folder: Path | None, supply: Supply, nursery: trio.Nursery) -> None:
        self._folder = folder
        self._supply = supply
        self._nursery = nursery
        self._logins: Logins | None = None

    def logins(self) -> Logins:
        """The logins, made now if there are none yet."""
        if self._logins is None:
            from .logins import Logins
            from .store import LoginStore

            self._logins = Logins(LoginStore(self._folder), self._supply, self._nursery)
        return self._logins

    async def login_for(self, name: str, launch: Expanded) -> HttpLogin | None:
        """As `Logins.login_for`."""
        return await self.logins().login_for(name, launch)

    async def changed(self, name: str) -> None:
        """As `Logins.changed`."""
        await self.logins().changed(name)

    async def settled(self) -> None:
        """Wait until no renewal is under way. It is no checkpoint when there is none."""
        if self._logins is not None:
            await self._logins.settled()


@asynccontextmanager
async def open_hub(folder: Path | None = None, inputs: Inputs | None = None) -> AsyncIterator[Hub]:
    """The logins of a host, for as long as it is open.

    Args:
        folder: where they are kept; None: in the user's state folder of playbill.
        inputs: supplies ``${input:ID}``.
    """
    raised: BaseException | None = None
    async with trio.open_nursery() as nursery:
        hub = Hub(folder, Supply(inputs), nursery)
        try:
            yield hub
        except BaseException as error:
            raised = error  # raised again below, so that the nursery does not wrap it
        with trio.move_on_after(LEAVE_SECONDS, shield=True):
            await hub.settled()
        nursery.cancel_scope.cancel()
    if raised is not None:
        raise raised
