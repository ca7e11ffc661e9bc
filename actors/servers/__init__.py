"""Three small MCP servers that ship with Playbill: real processes over stdio, for the demo and for trying things.

Each runs by module (``python -m playbill.actors.servers.clock``) or by file path, which is faster: then nothing but the
standard library is imported.
"""

from __future__ import annotations

from pathlib import Path

__all__ = ["NAMES", "path"]

NAMES = ("clock", "notes", "dice")


def path(name: str) -> Path:
    """The file of one of these servers, to be run as ``python FILE``.

    Args:
        name: one of ``NAMES``.

    Returns:
        Its absolute path.

    Raises:
        ValueError: there is no server of that name.
    """
    if name not in NAMES:
        raise ValueError(f"no server {name!r} ships with playbill, only {', '.join(NAMES)}")
    return Path(__file__).resolve().parent / f"{name}.py"
