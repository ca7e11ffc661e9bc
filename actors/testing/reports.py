"""What is told of a run that failed, and where it is kept: a text for a person, and a file that is replayed for ever."""

from __future__ import annotations

import hashlib
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from .chaos import Judged
from .literal import literal, parse
from .plans import Plan

__all__ = ["load", "report", "store", "versions"]

TAIL = 40
"""How many lines of the trace are told."""


def versions() -> str:
    """What the run depends on: Python, the platform, and the packages whose behaviour it shows."""
    found = [f"python {platform.python_version()}", platform.system().lower()]
    for name in ("playbill", "trio", "attrs", "mcp"):
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            found.append(f"{name} not installed")
    return ", ".join(found)


def report(judged: Judged, *, file: Path | None = None) -> str:
    """All that is needed to understand and repeat a failure.

    Args:
        judged: the failure, best as shrunk.
        file: where it is stored, or None.

    Returns:
        Several lines: what was wrong, seed, versions, plan, the end of the trace, the command that replays it.
    """
    again = f"playbill chaos --replay {file}" if file is not None else "playbill chaos --replay FILE (the plan above)"
    tail = [f"{at:10.4f}  {who:12}  {what}" for at, who, what in judged.trace[-TAIL:]]
    lines = [
        f"{judged.kind}, seed {judged.plan.seed}, {len(judged.plan.faults)} faults, after {judged.seconds:g} virtual seconds",
        *(f"  {reason}" for reason in judged.reasons[:8]),
        *([f"  and {len(judged.reasons) - 8} more"] if len(judged.reasons) > 8 else []),
        "",
        f"versions: {versions()}",
        "",
        literal(judged.plan),
        "",
        f"the last {len(tail)} of {len(judged.trace)} lines of the trace:",
        *tail,
        "",
        f"replay: {again}",
    ]
    return "\n".join(lines)


def store(judged: Judged, folder: Path) -> Path:
    """Keep a failure as a file; the same plan always goes to the same file.

    Args:
        judged: the failure, best as shrunk.
        folder: where; made when it is not there.

    Returns:
        The file.

    Raises:
        OSError: it cannot be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    text = literal(judged.plan)
    digest = hashlib.sha256(text.encode()).hexdigest()[:8]
    file = folder / f"{judged.kind}_{digest}.plan"
    head = "".join(f"# {reason}\n" for reason in judged.reasons[:3])
    file.write_text(f"# {judged.kind}, seed {judged.plan.seed}\n{head}{text}\n", encoding="utf-8")
    return file


def load(file: Path) -> Plan:
    """Read a stored plan.

    Raises:
        OSError: it cannot be read.
        ValueError: it is no plan; the line is named.
    """
    return parse(file.read_text(encoding="utf-8"))
