"""How values are shown: as JSON, or as tables: with colours and fitted to the width on a terminal, plain and whole when piped.

What comes from a server or a config is shown without its control characters, so that it cannot drive the terminal.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TextIO

from attrs import frozen

from .errors import one_line

__all__ = ["STYLES", "Table", "print_json", "print_table", "print_text", "summary"]

STYLES: Mapping[str, str] = {
    "ready": "green",
    "on_wire": "green",
    "starting": "yellow",
    "stopping": "yellow",
    "backing_off": "red",
    "parked": "red",
    "invalid": "red",
    "needs_auth": "yellow",
    "untrusted": "yellow",
    "disabled": "dim",
    "excluded": "dim",
    "server_down": "red",
    "quarantined": "yellow",
    "over_budget": "yellow",
}
"""The colour of each phase and verdict, for a terminal that has colours."""


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
    utf8 = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    text = json.dumps(value, indent=2, ensure_ascii=not utf8)
    if sys.stdout.isatty() and not text.replace("\n", "").isprintable():
        text = json.dumps(value, indent=2)
    try:
        print(text)
    except UnicodeEncodeError:  # a lone surrogate
        print(json.dumps(value, indent=2))


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
    """A table without colours, nothing cut; columns are at least two spaces apart."""
    rows = [table.columns, *([one_line(cell) for cell in row] for row in table.rows)]
    widths = [max(len(row[at]) for row in rows) for at in range(len(table.columns))]
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
        print("  ".join(cells).rstrip(), file=file)


def _print_rich(table: Table) -> None:
    from rich.console import Console

    Console().print(rich_table(table))


def rich_table(table: Table) -> Any:
    """The table as a rich renderable: no cell is read as markup."""
    from rich import box
    from rich.table import Table as RichTable
    from rich.text import Text

    out = RichTable(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold")
    for heading in table.columns:
        out.add_column(heading, overflow="fold")
    for row in table.rows:
        cells: Sequence[Text] = [
            Text(one_line(cell), style=STYLES.get(cell, "bold" if at == table.bold else ""))
            for at, cell in enumerate(row)
        ]
        out.add_row(*cells)
    return out


def columns_used(columns: Sequence[str], rows: Iterable[Sequence[str]], keep: int) -> Table:
    """A table without the columns that are empty in every row; the first ``keep`` stay."""
    rows = [tuple(row) for row in rows]
    used = [at for at in range(len(columns)) if at < keep or any(row[at] for row in rows)]
    return Table(tuple(columns[at] for at in used), tuple(tuple(row[at] for at in used) for row in rows))
