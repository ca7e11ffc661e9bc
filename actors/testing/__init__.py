"""For tests of programs that embed a host: servers that do what a script says, in memory and in virtual time."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .faults import Fault, FaultPlan
    from .kit import ServerKit
    from .scripted import Script, ScriptedConnection, ScriptedServers

__all__ = ["Fault", "FaultPlan", "Script", "ScriptedConnection", "ScriptedServers", "ServerKit"]

# Imported when first asked for: pytest loads the plugin of this package in every run of whoever has it installed.
_HOME = {
    "Fault": "faults",
    "FaultPlan": "faults",
    "Script": "scripted",
    "ScriptedConnection": "scripted",
    "ScriptedServers": "scripted",
    "ServerKit": "kit",
}


def __getattr__(name: str) -> Any:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f".{home}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
