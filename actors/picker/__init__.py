"""The picker: what a person at a terminal sees of a snapshot, and what a key changes.

Theory of operation. Three parts, of which only the last draws:

    snapshot, now ──▶ rows ──▶ visible rows ──▶ view (urwid), or your own
    key · snapshot · tick · outcome ──▶ reduce ──▶ state, operations ──▶ the view gives them to the host

`rows` is a pure function of a snapshot; `reduce` is a pure function of a state and an event. The state holds the newest
snapshot and what is the person's own: a cursor, a filter, an open dialog, and which operations are under way. It holds no
second truth about servers: a toggle is shown as pending while its operation is under way, and afterwards the snapshot says
what it came to. So nothing has to be reconciled.

A row is a value that holds parts of text, each one line without control characters, and never a laid-out line: width,
colour and glyphs are the view's. Rows are made when they are looked at: a list of 10,000 costs what is on the screen.

Another user interface takes `start`, `reduce`, `visible` and `dialog_lines`, and draws what they return; their values are in
`values`. Nothing of this imports urwid or trio. `view` does: `Picker`, `run_picker`, `PALETTE` and `NoTerminal` are imported
from there when they are first asked for.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .dialogs import dialog_lines, dialog_title, key_hints
from .reducer import reduce
from .state import State, start, visible

if TYPE_CHECKING:
    from .view import PALETTE, NoTerminal, Picker, run_picker

__all__ = [
    "PALETTE",
    "NoTerminal",
    "Picker",
    "State",
    "dialog_lines",
    "dialog_title",
    "key_hints",
    "reduce",
    "run_picker",
    "start",
    "visible",
]

_DRAWN = ("PALETTE", "NoTerminal", "Picker", "run_picker")


def __getattr__(name: str) -> Any:
    if name not in _DRAWN:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(".view", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
