"""`playbill` with a defect planted in the host or in the view, to see what a terminal is left like. Run as the command line.

crashing.py WHAT WORDS…    WHAT: "host" (its changes raise after the first), "view" (drawing raises once a key was pressed)
"""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from typing import Any

from playbill.actors.cli.app import run
from playbill.actors.host import Host
from playbill.actors.model.snapshot import Snapshot
from playbill.actors.picker import view


def spoil(what: str) -> None:
    """Plant the defect."""
    if what == "host":
        changes = Host.changes

        async def broken(self: Host) -> AsyncIterator[Snapshot]:
            async for each in changes(self):
                yield each
                if each.model.servers and all(server.phase == "ready" for server in each.model.servers):
                    raise RuntimeError("planted in the host")

        Host.changes = broken  # type: ignore[method-assign]
    else:
        render = view.Picker.render

        def fall(self: view.Picker, size: tuple[int, int], focus: bool = False) -> Any:
            if self.state.filter.text == "boom":
                raise RuntimeError("planted in the view")
            return render(self, size, focus)

        view.Picker.render = fall  # type: ignore[method-assign]


if __name__ == "__main__":
    spoil(sys.argv[1])
    sys.exit(run(sys.argv[2:]))
