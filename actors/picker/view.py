"""The picker as an urwid widget, and as a program on a terminal.

Theory of operation
    `Picker` is one box widget. It holds a `State` and nothing else that matters: keys, snapshots, ticks and ends of operations
    are events; each goes through `reduce`, and what that asks for is handed to the host in a task of its own. Drawing reads
    the state. It never waits, and makes only the rows that are on the screen.

    `Picker.run` feeds it: with the host's changes (at most thirty a second: the latest is what counts), and with the time, once
    a second and only while something shown depends on it. At rest nothing runs.

    `run_picker` puts it on a terminal, with urwid on its trio event loop. Whatever ends it, an exception or a cancellation too,
    the terminal is as it was before anything is said.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import trio
import urwid
from urwid.display.common import InputClosedError

from .boxes import bottom, dialog_box, dialog_room, head_of
from .dispatch import Desk, HostLike, Reviewer
from .keys import binding, mode_of
from .paint import Brush, Line, canvas_of
from .palette import ASCII, PALETTE, UNICODE
from .panes import first_shown
from .pasting import Pasting
from .reducer import reduce
from .state import State, start, visible
from .terminal import NoTerminal, Screen, Terminal, open_terminal
from .ungroup import ungrouped
from .values import Closed, Event, Key, LogTail, News, Paste, Quit, Resized, Shown, Tick
from .walker import Window

__all__ = ["PALETTE", "NoTerminal", "Picker", "run_picker"]

Size = tuple[()] | tuple[int] | tuple[int, int]

_FRAME = 1 / 30
"""Seconds from one snapshot to the next that is looked at."""

_TICK, _LONG_TICK = 1.0, 15.0
_FAR = 120.0 + _LONG_TICK


def _folders() -> tuple[str, str]:
    """Our working folder and the person's own; empty where there is none."""
    try:
        here = str(Path.cwd())
    except OSError:  # it is gone
        here = ""
    try:
        return here, str(Path.home())
    except RuntimeError:
        return here, ""


class Picker(urwid.Widget):
    """The picker as a box widget; to be mounted anywhere in an urwid program that runs on `urwid.TrioEventLoop`.

    It takes the keys of the picker while it has the focus and returns all others. Register `PALETTE` with the screen. Somebody
    has to run `run` meanwhile, or it shows what was there when it was made.

    Args:
        host: a `Host`, or what does the same.
        reviewer: shows and approves what a project's servers would run; None: that is told as not possible here.
        ascii: draw with ASCII characters only.
        clock: what time it is, as the host's snapshots tell it.
    """

    _sizing = frozenset([urwid.BOX])
    _selectable = True

    def __init__(
        self,
        host: HostLike,
        *,
        reviewer: Reviewer | None = None,
        ascii: bool = False,
        clock: Callable[[], float] = trio.current_time,
    ) -> None:
        super().__init__()
        self._host = host
        self._reviewer = reviewer
        self._glyphs = ASCII if ascii else UNICODE
        self._clock = clock
        self._folders = _folders()
        self._window = Window()
        self._pasting = Pasting()
        self._drawn_cursor: Any = None
        self._desk: Desk | None = None
        self._asked: list[Any] = []
        self._ended = trio.Event()
        self._wake = trio.Event()
        self._paused: float | None = None
        self._state = start(host.snapshot(), clock(), look=Brush(self._glyphs, 0))

    @property
    def state(self) -> State:
        """The state now."""
        return self._state

    @property
    def painted(self) -> int:
        """How many rows of the list the last drawing made."""
        return self._window.painted

    def tell(self, event: Event) -> None:
        """Let an event happen: reduce it, draw anew, and begin what it asks for. Not async."""
        self._state, operations = reduce(self._state, event)
        for operation in operations:
            if isinstance(operation, Quit):
                self._ended.set()
            elif self._desk is None:
                self._asked.append(operation)
            else:
                self._desk.take(operation)
        if self._pause() != self._paused:
            self._paused = self._pause()
            self._wake.set()
        self._invalidate()

    async def run(self) -> None:
        """Feed the widget with changes, time and ends of operations, until the person quits or the host closes.

        A checkpoint. Operations that are under way when it is cancelled are cancelled; the host does what it has begun.

        Raises:
            Exception: what the host's changes raise; a group of one is told as that one.
        """
        with ungrouped():
            await self._run()

    async def _run(self) -> None:
        """As `run`, with errors in the nursery's group. A checkpoint."""
        async with trio.open_nursery() as nursery:
            self._desk = Desk(self._host, nursery, self.tell, self._reviewer)
            try:
                asked, self._asked = self._asked, []
                for operation in asked:
                    self._desk.take(operation)
                nursery.start_soon(self._follow)
                nursery.start_soon(self._tick)
                await self._ended.wait()
                nursery.cancel_scope.cancel()
            finally:
                self._desk = None

    async def _follow(self) -> None:
        """Tell of each snapshot, and of the end; of those that come faster than one can look, the latest. A checkpoint."""
        async for snapshot in self._host.changes():
            self.tell(Tick(self._clock()))
            self.tell(News(snapshot))
            await trio.sleep(_FRAME)
        self.tell(Closed())
        self._ended.set()

    async def _tick(self) -> None:
        """Tell the time while it matters. A checkpoint."""
        while True:
            self._wake = trio.Event()
            pause = self._pause()
            if pause is None:
                await self._wake.wait()
            else:
                with trio.move_on_after(pause):
                    await self._wake.wait()
                    continue
                self.tell(Tick(self._clock()))

    def _pause(self) -> float | None:
        """Seconds until something shown is another one because of the time; None: nothing is."""
        if isinstance(self._state.dialog, LogTail):
            return _TICK
        servers = self._state.snapshot.model.servers
        times = [at for each in servers for at in (each.next_retry_at, each.restarted_at) if at is not None]
        if not times:
            return None
        # Far ones are told in minutes.
        return _TICK if min(abs(at - self._clock()) for at in times) < _FAR else _LONG_TICK

    # The widget.

    def keypress(self, size: Size, key: str) -> str | None:
        """Take a key; returns it when the picker has no use for it."""
        ours, pasted = self._pasting.take(key, self._clock())
        if pasted is not None:
            self.tell(Tick(self._clock()))
            self.tell(Paste(pasted))
        if ours:
            return None
        mode = mode_of(self._state.dialog, self._state.editing)
        ours = mode in ("filter", "form") or binding(mode, key) is not None
        self.tell(Tick(self._clock()))
        self.tell(Key(key))  # also one that is not ours: it takes back what waits for a second key
        return None if ours else key

    def mouse_event(self, size: Size, event: str, button: int, col: int, row: int, focus: bool) -> bool:
        """Take the wheel as up and down."""
        if event == "mouse press" and button in (4, 5):
            self.tell(Key("up" if button == 4 else "down"))
            return True
        return False

    def render(self, size: Size, focus: bool = False) -> urwid.Canvas:
        """Draw what is to be seen now, as urwid asks for it."""
        columns, height = cast("tuple[int, int]", size)  # a box widget is given both
        brush = Brush(self._glyphs, columns, *self._folders)
        under = bottom(self._state, brush, height)[: max(0, height - 1)]
        above = height - len(under)
        if self._state.dialog is None:
            return canvas_of([*self._list(brush, above, focus), *under], columns)
        # The reducer scrolls by what is shown, and what of a review was shown is what can be approved.
        room = dialog_room(self._state, above)
        self._sized(room, columns)
        first = first_shown(self._state, room)
        self._state, _ = reduce(self._state, Shown(first, first + room))
        under = bottom(self._state, brush, height)[: height - above]
        return canvas_of([*dialog_box(self._state, brush, above), *under], columns)

    def _sized(self, rows: int, columns: int) -> None:
        """Let the reducer know how much there is room for."""
        if (max(1, rows), columns) != (self._state.page, self._state.columns):
            self._state, _ = reduce(self._state, Resized(rows, columns))

    def _list(self, brush: Brush, height: int, focus: bool) -> list[Line]:
        """The header and the notices, which stay, and below them the part of the list around the cursor."""
        shown = visible(self._state)

        def paint(at: int) -> list[Line]:
            try:
                return brush.row(shown[at], cursor=focus and shown.identity(at) == self._state.cursor)
            except Exception as error:  # a row that cannot be made must not take the others along
                return [brush.broken(error)]

        tops = [paint(at) for at in range(shown.top)]
        most = max(1, height // 3)
        if sum(map(len, tops)) > most:  # then what the list leaves empty is theirs too
            wants = 0
            for at in range(shown.top, len(shown)):
                wants += len(paint(at))
                if wants >= height - most:
                    break
            most = max(most, height - wants)
        head = head_of(tops, brush, min(most, height))
        room = height - len(head)
        if room > 0:
            self._sized(room, brush.columns)
        cursor = shown.find(self._state.cursor)
        moved = self._drawn_cursor != self._state.cursor
        self._drawn_cursor = self._state.cursor
        body = self._window.lines(
            len(shown), shown.top, shown.top if cursor is None else cursor, room, paint, moved=moved
        )
        return [*head, *body, *([] for _ in range(room - len(body)))]


async def run_picker(
    host: HostLike, terminal: Terminal | None = None, *, reviewer: Reviewer | None = None, typed: bytes = b""
) -> None:
    """Show a host's servers and tools on the terminal until the person quits or the host closes.

    The first screen is drawn before anything is waited for. A checkpoint.

    Args:
        host: an open host.
        terminal: where; None: the process's own, as `terminal.open_terminal` finds it.
        reviewer: shows and approves what a project's servers would run.
        typed: what the terminal gave before: keys that come first.

    Raises:
        NoTerminal: there is none.
        Exception: what the host's changes raise; the terminal is as it was.
    """
    if terminal is None:
        with open_terminal() as opened:
            await run_picker(host, opened, reviewer=reviewer, typed=typed)
        return
    picker = Picker(host, reviewer=reviewer, ascii=terminal.ascii)
    events = urwid.TrioEventLoop()
    loop = _Loop(picker, PALETTE, screen=terminal.screen, handle_mouse=False, event_loop=events)
    # A terminal that is gone gives no more input, and there is nobody to tell.
    with ungrouped(InputClosedError), loop.start():
        loop.draw_screen()
        if typed and (found := terminal.screen.parse_input(None, None, list(typed), wait_for_more=False)) is not None:
            loop.process_input([key for key in found[0] if isinstance(key, str)])
            loop.draw_screen()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(events.run_async)
            nursery.start_soon(terminal.screen.drain)
            await picker.run()
            nursery.cancel_scope.cancel()


class _Loop(urwid.MainLoop):
    """urwid's loop, which makes no frame while the terminal has not taken the last one: the newest state is drawn then."""

    def draw_screen(self) -> None:
        if not cast("Screen", self.screen).behind:
            super().draw_screen()
