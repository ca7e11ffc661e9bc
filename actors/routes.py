"""Routes: what a call by some name was found to be, remembered for as long as nothing that it was found by has changed.

A call is looked up in the catalog, in the configuration, in its server's list and among the open lines. All of them are
values on the board or in the snapshot, which are replaced and never changed; so the same name leads to the same place until
the board's version grows or another snapshot is published. Then everything is forgotten.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

from attrs import frozen

from .line import Line
from .model.catalog import Catalog
from .model.schema.strict import unstrict
from .model.snapshot import Snapshot
from .model.status import ToolDef

__all__ = ["Route", "Routes"]


@frozen
class Route:
    """Where a call goes.

    Args:
        line: open when it was found.
        source: what the server advertises.
        timeout: of its entry, in seconds, or None.
        strict: its arguments answer to a schema of strict mode.
        catalog: the one that it was called through, or None.
    """

    line: Line
    source: ToolDef
    timeout: float | None
    strict: bool = False
    catalog: Catalog | None = None

    def given(self, arguments: Mapping[str, Any] | None) -> Mapping[str, Any]:
        """The arguments as the server is to have them."""
        if not self.strict:
            return arguments or {}
        # By what the server advertises now, not by what the model was shown: that one is mended.
        return unstrict(dict(arguments or {}), self.source.input_schema)


class Routes:
    """Routes by name, as of one moment; one of these for each reader of snapshots."""

    def __init__(self) -> None:
        self._version = -1
        self._snapshot: Snapshot | None = None
        self._known: dict[Hashable, Route] = {}

    def find(self, name: Hashable, catalog: Catalog | None, version: int, snapshot: Snapshot) -> Route | None:
        """A route that still holds and whose line takes calls, or None.

        Args:
            name: that it is called by.
            catalog: that it is called through, or None.
            version: of the board now.
            snapshot: now.
        """
        if version != self._version or snapshot is not self._snapshot:
            self._known.clear()  # they hold lines of servers that may be gone
            return None
        route = self._known.get(name)
        return route if route is not None and route.catalog is catalog and route.line.direct else None

    def keep(self, name: Hashable, route: Route, version: int, snapshot: Snapshot) -> None:
        """Remember a route.

        Args:
            name: that it is called by.
            route: as found.
            version, snapshot: as they were all the while it was looked for.
        """
        if version != self._version or snapshot is not self._snapshot:
            self._version, self._snapshot = version, snapshot
            self._known.clear()
        self._known[name] = route
