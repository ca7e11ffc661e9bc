"""A view: one agent's own catalog over the servers that all share.

Theory of operation
    A view holds no process, no task and no place in the projector. It is what the host's newest snapshot was projected from
    (`Seen`, on the board), projected once more: through the view's own filters, for its own budget and profile, borrowing the
    host's rows. That is done when somebody reads it, at once, and kept until the host has published something else; so a
    view cannot be stale, or disagree with the host.

    For another profile than the host's tools must be judged again. The first reading does so, for all that are listed by then;
    of later lists the server actors do it, before they are published (`Board.view_for`).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import trio

from ..supervision import Cell
from .again import check_retry
from .board import Board
from .calls import Calls
from .given import check_call, check_names
from .model.budget import Budget, as_budget
from .model.catalog import Catalog
from .model.errors import ToolNotOffered
from .model.lens import Item, Lens
from .model.naming import wire_name
from .model.preview import Preview, preview
from .model.profile import Profile, find_profile
from .model.projection import Memo
from .model.seen import Seen
from .model.snapshot import Snapshot, Why
from .model.why import why
from .ports import Progress
from .reading import Reading
from .routes import Routes

if TYPE_CHECKING:
    from mcp.types import CallToolResult

__all__ = ["View", "foresee", "seen_on"]


def seen_on(board: Board) -> Seen:
    """What the newest snapshot was projected from; the house puts it there before anybody can ask."""
    assert board.seen is not None
    return board.seen


class View(Reading):
    """One agent's own catalog over the servers of a host. Made by `Host.view`; it needs no closing.

    Resources and prompts are a whole server's: the view has those of each server that ``exclude`` does not name and, when
    ``include`` is given, that it names as a server. Those of the others are not in its model, and are refused.

    Args:
        board: where the newest snapshot's ground is.
        cell: the host's snapshot.
        calls: the host's.
        now: what time it is for the servers, or None.
        lens: what the view leaves out.
        budget, profile: None: the host's.
    """

    def __init__(
        self,
        *,
        board: Board,
        cell: Cell[Snapshot],
        calls: Calls,
        now: Callable[[], float | None],
        lens: Lens,
        budget: Budget | None,
        profile: Profile | None,
    ) -> None:
        self._board = board
        self._cell = cell
        self._calls = calls
        self._now = now
        self._lens = lens
        self._routes = Routes()
        self._budget = budget
        self._profile = profile
        self._memo = Memo()
        self._from: Seen | None = None
        self._snapshot: Snapshot | None = None
        if profile is not None:
            board.view_for(self, profile)

    def snapshot(self) -> Snapshot:
        """The view's snapshot now; as of the host's it never waits, never raises, and stays readable after the host closed.

        It is worked out when it is read first after a change, which takes some milliseconds with thousands of tools. The first
        reading of a view with another profile than the host's also judges all tools for that, some 0.1 ms each, unless another
        view did so: read it once at the start of a program where that would be felt.

        The same object while nothing that it shows has changed. Its versions are its own, and only grow; ``config_rev`` is the
        host's. In its model a tool that the view leaves out has the verdict ``excluded``; ``enabled`` is what the config says.
        """
        seen = seen_on(self._board)
        if self._snapshot is None or self._from is not seen:
            self._snapshot = seen.project(
                lens=self._lens,
                budget=self._budget,
                profile=self._profile,
                previous=self._snapshot,
                memo=self._memo,
            )
            self._from = seen
        return self._snapshot

    def changes(self) -> AsyncIterator[Snapshot]:
        """The view's snapshot now, then the latest after each change of it, conflated; as `Host.changes`."""
        return _Changes(self, self._cell.changes())

    def _hidden(self, server: str) -> str | None:
        return self._lens.hides_shelves(server)

    def unmatched(self) -> dict[Item, str | None]:
        """The items of ``exclude`` and ``include`` that name nothing there is now: slips, probably. Never waits.

        Opening a view with such an item is no error, as what it names may be added later. A tool of a server that has not
        listed its tools is not told, nor is a wire name for as long as a server is being started: ask after `Host.ready`.

        Returns:
            Each with the nearest name there is (of a server, ``server/tool``, a wire name or a native tool), or None.
        """
        return self._lens.unmatched(self.snapshot().model, seen_on(self._board).natives)

    def why(self, server: str, bare: str) -> Why:
        """Why a tool is, or is not, in this view's catalog. Never waits."""
        check_names(server, bare)
        return why(self.snapshot(), server, bare, self._now())

    def preview(
        self,
        *,
        enable: Iterable[Item] = (),
        disable: Iterable[Item] = (),
        pin: Iterable[Item] = (),
        unpin: Iterable[Item] = (),
        budget: Budget | int | None = None,
        profile: Profile | str | None = None,
    ) -> Preview:
        """What would be in this view's catalog if; as `Host.preview`, with None for the view's own budget and profile."""
        return foresee(
            seen_on(self._board),
            enable=enable,
            disable=disable,
            pin=pin,
            unpin=unpin,
            budget=self._budget if budget is None else budget,
            profile=self._profile if profile is None else profile,
            lens=self._lens,
            now=self.snapshot(),
        )

    async def call(
        self,
        wire_name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        catalog: Catalog | None = None,
        timeout: float | None = None,
        progress: Progress | None = None,
        retry: int = 0,
        meta: Mapping[str, Any] | None = None,
    ) -> CallToolResult:
        """Call a tool as the view's model sees it.

        Args, returns and raises as in `Host.call`, and:

        Raises:
            ToolNotOffered: the view leaves the tool out, also when the catalog given has it.
        """
        check_names(wire_name)
        check_call(arguments, timeout, meta)
        check_retry(retry)
        result: CallToolResult = await self._calls.by_wire_name(
            wire_name,
            arguments,
            catalog=catalog,
            timeout=timeout,
            progress=progress,
            retry=retry,
            meta=meta,
            shown=self.snapshot,
            lens=self._lens,
            routes=self._routes,
        )
        return result

    async def call_tool(
        self,
        server: str,
        bare: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        timeout: float | None = None,
        progress: Progress | None = None,
        retry: int = 0,
        meta: Mapping[str, Any] | None = None,
    ) -> CallToolResult:
        """Call a tool by where it comes from; as `Host.call_tool`, and what the view leaves out is refused.

        Args, returns and raises as there, and:

        Raises:
            ToolNotOffered: the view leaves the tool out.
        """
        check_names(server, bare)
        check_call(arguments, timeout, meta)
        check_retry(retry)
        hidden = self._lens.hides(server, bare, wire_name(server, bare))
        if hidden is not None:
            await trio.lowlevel.checkpoint()
            raise ToolNotOffered(f"{server}/{bare}", hidden)
        result: CallToolResult = await self._calls.by_origin(
            server, bare, arguments, timeout=timeout, progress=progress, retry=retry, meta=meta
        )
        return result


class _Changes(AsyncIterator[Snapshot]):
    def __init__(self, view: View, changes: AsyncIterator[Snapshot]) -> None:
        self._view = view
        self._changes = changes
        self._last: Snapshot | None = None

    async def __anext__(self) -> Snapshot:
        while True:
            await self._changes.__anext__()
            snapshot = self._view.snapshot()
            if snapshot is not self._last:
                self._last = snapshot
                return snapshot


def foresee(
    seen: Seen,
    *,
    enable: Iterable[Item],
    disable: Iterable[Item],
    pin: Iterable[Item],
    unpin: Iterable[Item],
    budget: Budget | int | None,
    profile: Profile | str | None,
    **of_view: Any,
) -> Preview:
    """`preview`, with budget and profile as a program gives them."""
    return preview(
        seen,
        enable=enable,
        disable=disable,
        pin=pin,
        unpin=unpin,
        budget=as_budget(budget),
        profile=None if profile is None else find_profile(profile),
        **of_view,
    )
