"""Writes what of the documentation comes from the code: `python docs/generate.py`. With `--check` it only says what is stale.

The pages of `docs/reference/` are made from the classes and the grammar, the state diagrams of `docs/pictures/` from the
tables in the code. A test compares, so that none of them can be old.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from tools.api_page import api_page
from tools.cli_page import cli_page
from tools.config_page import config_page
from tools.drawing import draw
from tools.pages import Undocumented
from tools.states import child_stages, phase_page, server_actor

HERE = Path(__file__).resolve().parent
FILES: Mapping[str, Callable[[], str]] = {
    "reference/config.md": config_page,
    "reference/cli.md": cli_page,
    "reference/api.md": api_page,
    "reference/phases.md": phase_page,
    "pictures/child-stages.svg": lambda: draw(child_stages()),
    "pictures/server-actor.svg": lambda: draw(server_actor()),
}


def stale(folder: Path = HERE) -> list[str]:
    """The files that are not what the code would make of them now.

    Args:
        folder: where the documentation is.

    Raises:
        Undocumented: something in the code has no words yet.
    """

    def there(path: Path) -> str | None:
        return path.read_text("utf-8") if path.exists() else None

    return [name for name, make in FILES.items() if there(folder / name) != make()]


def main(arguments: list[str]) -> int:
    """Run the command.

    Args:
        arguments: nothing, or `--check`.
    """
    if arguments not in ([], ["--check"]):
        print("usage: python docs/generate.py [--check]", file=sys.stderr)
        return 2
    try:
        old = stale()
        if arguments:
            for name in old:
                print(f"docs/{name} is stale: run python docs/generate.py", file=sys.stderr)
            return 1 if old else 0
        for name in old:
            (HERE / name).parent.mkdir(exist_ok=True)
            (HERE / name).write_text(FILES[name](), "utf-8")
            print(f"docs/{name} written")
    except Undocumented as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
