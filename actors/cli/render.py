"""How values are shown: as JSON, or as tables: with colours and fitted to the width on a terminal, plain when piped.

What comes from a server or a config is shown without its control characters, so that it cannot drive the terminal.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TextIO

from attrs import frozen

from .voice import cells, cut, one_line, voice

__all__ = ["STYLES", "Table", "print_failure", "print_json", "print_table", "print_text", "summary"]

STYLES: Mapping[str, str] = {
    "ready": "green",
    "on_wire": "green",
    "starting": "yellow",
    "stopping": "yellow",
    "backing off": "red",
    "parked": "red",
    "invalid": "red",
    "needs login": "yellow",
    "untrusted": "yellow",
    "disabled": "dim",
    "excluded": "dim",
    "server_down": "red",
    "quarantined": "yellow",
    "over_budget": "yellow",
}
"""The colour of each phase, by its words, and of each verdict, for a terminal that has colours."""


_BETWEEN = 3
"""Columns of a terminal between two columns of a table; on the left and on the right of it there is one."""

PROSE = frozenset({"DESCRIPTION", "WHAT IT DOES"})
"""The columns of which the beginning is enough, and all that is cut in a pipe."""

_MOST_PROSE = 80
"""Columns of a terminal that a text of those has in a pipe."""

_MOST_PADDED = 120
"""Columns of a terminal up to which a column is filled up in a pipe: a longer cell makes its own row longer, and no other."""

_READABLE = 16
"""Columns of a terminal below which a text is not well read: a longer one gets at least so many."""


@frozen
class Table:
    """Rows of texts.

    Args:
        columns: the headings.
        rows: as many cells each; a cell that is a key of ``STYLES`` gets that colour.
        bold: the column, by number, that names the row.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    bold: int = 0


def summary(text: str | None) -> str:
    """The first line of a description."""
    lines = (text or "").strip().splitlines()
    return one_line(lines[0]) if lines else ""


def print_json(value: Any) -> None:
    """One JSON document on stdout; plain ASCII when stdout is not UTF-8, or a terminal that it might drive."""
    voice().answered = True
    utf8 = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    text = json.dumps(value, indent=2, ensure_ascii=not utf8)
    if sys.stdout.isatty() and not text.replace("\n", "").isprintable():
        text = json.dumps(value, indent=2)
    try:
        print(text)
    except UnicodeEncodeError:  # a lone surrogate
        print(json.dumps(value, indent=2))


def print_failure(value: Any) -> None:
    """What is printed instead of an answer: one JSON document on one line, where the JSON of the verb goes."""
    print(json.dumps(value), file=voice().lines or sys.stdout, flush=True)


def print_text(text: str) -> None:
    """A tool's answer on stdout: as it is when piped, without control characters but for tab and newline on a terminal."""
    if sys.stdout.isatty():
        text = "".join(char if char.isprintable() or char in "\n\t" else "\N{REPLACEMENT CHARACTER}" for char in text)
    print(text)


def print_table(table: Table) -> None:
    """A table on stdout."""
    if sys.stdout.isatty():
        _print_rich(table)
    else:
        print_plain(table, sys.stdout)


def print_plain(table: Table, file: TextIO) -> None:
    """A table without colours, nothing cut but prose; columns are at least two spaces apart."""
    rows = [table.columns, *([one_line(cell) for cell in row] for row in table.rows)]
    prose = [heading in PROSE for heading in table.columns]
    rows = [[cut(cell, _MOST_PROSE) if long else cell for cell, long in zip(row, prose, strict=True)] for row in rows]
    widths = [min(_MOST_PADDED, max(cells(row[at]) for row in rows)) for at in range(len(table.columns))]
    for row in rows:
        padded = [cell + " " * (width - cells(cell)) for cell, width in zip(row, widths, strict=True)]
        print("  ".join(padded).rstrip(), file=file)


def _print_rich(table: Table) -> None:
    from rich.console import Console

    console = Console()
    widths = widths_for(table, console.width)
    console.print(rich_list(table) if widths is None else rich_table(table, widths))


def widths_for(table: Table, width: int) -> list[int] | None:
    """How wide each column is to be on a terminal, or None when that is too narrow for columns that can be read.

    Where there is too little room the widest give way first. No name is broken, and no other column gets narrower than
    its heading or what is well read.

    Args:
        table: what is to be shown.
        width: columns of the terminal.
    """
    wanted, least = [], []
    for at, heading in enumerate(table.columns):
        longest = max(map(cells, (heading, *(one_line(row[at]) for row in table.rows))))
        wanted.append(min(longest, width))
        least.append(longest if at == table.bold else min(longest, max(cells(heading), _READABLE)))
    room = width + 1 - _BETWEEN * len(wanted)
    if sum(least) > room:
        return None
    while sum(wanted) > room:
        _, at = max((each, at) for at, each in enumerate(wanted) if each > least[at])
        wanted[at] -= 1
    return wanted


def rich_list(table: Table) -> Any:
    """The table for a narrow terminal: each row is a paragraph, its cells one below the other, empty ones left out."""
    from rich.console import Group
    from rich.padding import Padding
    from rich.table import Table as Grid
    from rich.text import Text

    paragraphs: list[Any] = []
    for row in table.rows:
        grid = Grid.grid(padding=(0, 1))
        grid.add_column(no_wrap=True, style="dim")
        grid.add_column(overflow="fold")
        for at, (heading, cell) in enumerate(zip(table.columns, row, strict=True)):
            if at != table.bold and cell:
                grid.add_row(heading.lower(), Text(one_line(cell), style=STYLES.get(cell, "")))
        name = Text(one_line(row[table.bold]), style="bold", overflow="fold")
        paragraphs += [name, Padding(grid, (0, 0, 0, 2))]
    return Group(*paragraphs)


def rich_table(table: Table, widths: Sequence[int] | None = None) -> Any:
    """The table as a rich renderable: no cell is read as markup.

    Args:
        table: what is to be shown.
        widths: of its columns; None: as it comes.
    """
    from rich import box
    from rich.table import Table as RichTable
    from rich.text import Text

    out = RichTable(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold")
    for at, heading in enumerate(table.columns):
        out.add_column(heading, overflow="fold", width=None if widths is None else widths[at])
    for row in table.rows:
        texts: Sequence[Text] = [
            Text(one_line(cell), style=STYLES.get(cell, "bold" if at == table.bold else ""))
            for at, cell in enumerate(row)
        ]
        out.add_row(*texts)
    return out


def columns_used(columns: Sequence[str], rows: Iterable[Sequence[str]], keep: int) -> Table:
    """A table without the columns that are empty in every row; the first ``keep`` stay."""
    rows = [tuple(row) for row in rows]
    used = [at for at in range(len(columns)) if at < keep or any(row[at] for row in rows)]
    return Table(tuple(columns[at] for at in used), tuple(tuple(row[at] for at in used) for row in rows))
