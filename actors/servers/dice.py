"""An MCP server of chance: dice, coins, picking and shuffling. ``--seed N`` makes it repeat itself."""

from __future__ import annotations

import re
import sys
from importlib import import_module
from random import Random
from typing import TYPE_CHECKING

if TYPE_CHECKING or __package__:
    from ._stdio import BadArguments, Tool, serve
else:  # run by path: this file's folder leads sys.path
    _stdio = import_module("_stdio")
    BadArguments, Tool, serve = _stdio.BadArguments, _stdio.Tool, _stdio.serve

_random = Random()
_NOTATION = re.compile(r"(\d{0,3})d(\d{1,4})([+-]\d{1,6})?", re.ASCII | re.IGNORECASE)


def _roll(dice: str = "1d6") -> str:
    parts = _NOTATION.fullmatch(dice.replace(" ", ""))
    if parts is None:
        raise BadArguments(f"{dice!r} is not dice; write 2d6, d20 or 3d8+2")
    count, sides, extra = int(parts[1] or 1), int(parts[2]), int(parts[3] or 0)
    if not count or not sides:
        raise BadArguments(f"{dice!r}: there must be a die, and it must have a side")
    faces = [_random.randint(1, sides) for _ in range(count)]
    shown = " + ".join(map(str, faces)) + (f" {parts[3][0]} {parts[3][1:]}" if parts[3] else "")
    return f"{sum(faces) + extra}  ({shown})"


def _flip() -> str:
    return _random.choice(("heads", "tails"))


def _pick(options: list[str]) -> str:
    if not options:
        raise BadArguments("pick: there is nothing to pick from")
    return _random.choice(options)


def _shuffle(options: list[str]) -> str:
    return "\n".join(_random.sample(options, len(options)))


_OPTIONS = {"type": "array", "items": {"type": "string"}, "description": "The options, as texts."}

TOOLS = (
    Tool(
        "roll",
        "Roll dice",
        "Roll dice in the usual notation and add them up, such as 2d6, d20 or 3d8+2.",
        {"dice": {"type": "string", "description": "The dice to roll; one six-sided die when left out."}},
        (),
        _roll,
    ),
    Tool("flip", "Flip a coin", "Heads or tails.", {}, (), _flip),
    Tool(
        "pick", "Pick one", "Pick one of several options, each as likely.", {"options": _OPTIONS}, ("options",), _pick
    ),
    Tool(
        "shuffle",
        "Shuffle",
        "All options in a random order, one a line.",
        {"options": _OPTIONS},
        ("options",),
        _shuffle,
    ),
)

if __name__ == "__main__":
    if sys.argv[1:2] == ["--seed"]:
        _random.seed(" ".join(sys.argv[2:3]))
    serve("dice", "Dice", "Rolls dice, flips coins and picks at random.", TOOLS)
