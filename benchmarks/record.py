"""What a runner measured so far, in a JSON file that is written after each cell: a stop loses nothing, the next run goes on.

The file says with which settings, versions and machine it was made. Cells that were made with others are not gone on with: the
file begins anew.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
import time
from pathlib import Path
from typing import Any

SAME = ("settings", "versions", "python", "system", "processor")
"""What must be as it was, so that a file is gone on with."""

RESULTS = Path(__file__).with_name("results")
"""The committed results, which `report.py` makes tables and plots of."""

Cell = dict[str, Any]


def machine() -> dict[str, Any]:
    """Where this runs, and with what."""
    processor = platform.processor() or platform.machine()
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        models = [line.partition(":")[2].strip() for line in cpuinfo.read_text().splitlines() if "model name" in line]
        processor = models[0] if models else processor
    return {
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.release().split('-')[0]}, {platform.machine()}",
        "processor": f"{processor}, {os.cpu_count()} cores",
        "memory": f"{memory:.0f} GB",
        "versions": {name: importlib.metadata.version(name) for name in ("playbill", "trio", "mcp", "anyio")},
        "begun": time.strftime("%Y-%m-%d %H:%M", time.gmtime()) + " UTC",
        "load before": round(os.getloadavg()[0], 1) if hasattr(os, "getloadavg") else None,
    }


class Record:
    """One file of results.

    Args:
        file: None keeps nothing.
        settings: what makes two runs comparable.
        parts: names of lists of cells.
    """

    def __init__(self, file: Path | None, settings: dict[str, Any], *parts: str) -> None:
        self.file = file
        self.data: dict[str, Any] = {"about": {**machine(), "settings": settings}}
        if file is not None and file.exists():
            before = json.loads(file.read_text())
            about = before.get("about", {})
            if other := [name for name in SAME if about.get(name) != self.data["about"][name]]:
                print(f"{file.name}: was made with other {', '.join(other)}, begins anew", flush=True)
            else:
                self.data = before
                print(f"{file.name}: goes on with what is there", flush=True)
        for part in parts:
            self.data.setdefault(part, [])

    def find(self, part: str, **identity: Any) -> Cell | None:
        """The cell that has all of these fields, or None."""
        cells: list[Cell] = self.data[part]
        return next((cell for cell in cells if identity.items() <= cell.items()), None)

    def add(self, part: str, cell: Cell) -> Cell:
        """Keep a cell, and write the file."""
        self.data[part].append(cell)
        self.save()
        return cell

    def save(self) -> None:
        """Write the file, whole or not at all."""
        if self.file is None:
            return
        self.file.parent.mkdir(parents=True, exist_ok=True)
        new = self.file.with_suffix(".new")
        new.write_text(json.dumps(self.data, indent=1) + "\n")
        new.replace(self.file)
