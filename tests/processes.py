"""Processes as the system shows them, looked at from outside: what lives, what descends from what."""

from __future__ import annotations

from pathlib import Path


def marked(mark: str) -> list[int]:
    """The living processes whose environment has that mark (zombies have none)."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if mark.encode() in (folder / "environ").read_bytes():
                found.append(int(folder.name))
        except OSError:
            continue
    return found


def start_of(pid: int, *, zombies: bool = False) -> str | None:
    """When a process began, which tells it from a later one of the same id; None when it is gone.

    Args:
        pid: of the process.
        zombies: whether one that ended and was not reaped is there; or gone.
    """
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in "ZX" and not zombies else fields[19]


def parent_of(pid: int | None) -> int:
    """The parent's process id."""
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def below(top: int, *, zombies: bool = False) -> dict[int, str | None]:
    """The processes below one, at any depth, zombies too, and when each began (None: a zombie, unless these are to count)."""
    children: dict[int, list[int]] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            children.setdefault(parent_of(int(folder.name)), []).append(int(folder.name))
        except OSError:
            continue
    found: dict[int, str | None] = {}
    new = [top]
    while new:
        new = [child for pid in new for child in children.get(pid, ())]
        found.update((pid, start_of(pid, zombies=zombies)) for pid in new)
    return found


def alive(processes: dict[int, str | None]) -> list[int]:
    """Those of `below` that live, whoever their parent is now."""
    return [pid for pid, start in processes.items() if start is not None and start_of(pid) == start]
