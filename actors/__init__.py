"""Playbill: many MCP servers for one LLM agent, supervised inside that agent's own trio program.

`open_host` opens a `Host`; everything a reader sees is one immutable `Snapshot`. See the README for a first example.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..supervision import Event, Gap
    from .host import Host, Readiness
    from .model.budget import Budget
    from .model.catalog import Catalog
    from .model.config import Config, InputSpec, ServerEntry
    from .model.errors import (
        CallTimeout,
        ConfigError,
        HostClosed,
        OperationTimeout,
        PlaybillError,
        ProfileMismatch,
        ServerDied,
        ServerExists,
        ServerUnavailable,
        ToolNotOffered,
        UnknownServer,
        UnknownTool,
        WriteFailed,
    )
    from .model.native import NativeTool
    from .model.snapshot import PluginModel, ServerState, Snapshot, ToolState, Why
    from .model.wire import ToolRef, WireTool
    from .opening import open_host
    from .server import ServerSettings

__all__ = [
    "Budget",
    "CallTimeout",
    "Catalog",
    "Config",
    "ConfigError",
    "Event",
    "Gap",
    "Host",
    "HostClosed",
    "InputSpec",
    "NativeTool",
    "OperationTimeout",
    "PlaybillError",
    "PluginModel",
    "ProfileMismatch",
    "Readiness",
    "ServerDied",
    "ServerEntry",
    "ServerExists",
    "ServerSettings",
    "ServerState",
    "ServerUnavailable",
    "Snapshot",
    "ToolNotOffered",
    "ToolRef",
    "ToolState",
    "UnknownServer",
    "UnknownTool",
    "Why",
    "WireTool",
    "WriteFailed",
    "open_host",
]

# Imported when first asked for: a command line that only lists, or is interrupted while it starts, does not pay for the rest.
_HOME = {
    "Budget": "model.budget",
    "CallTimeout": "model.errors",
    "Catalog": "model.catalog",
    "Config": "model.config",
    "ConfigError": "model.errors",
    "Event": ".supervision",
    "Gap": ".supervision",
    "Host": "host",
    "HostClosed": "model.errors",
    "InputSpec": "model.config",
    "NativeTool": "model.native",
    "OperationTimeout": "model.errors",
    "PlaybillError": "model.errors",
    "PluginModel": "model.snapshot",
    "ProfileMismatch": "model.errors",
    "Readiness": "host",
    "ServerDied": "model.errors",
    "ServerEntry": "model.config",
    "ServerExists": "model.errors",
    "ServerSettings": "server",
    "ServerState": "model.snapshot",
    "ServerUnavailable": "model.errors",
    "Snapshot": "model.snapshot",
    "ToolNotOffered": "model.errors",
    "ToolRef": "model.wire",
    "ToolState": "model.snapshot",
    "UnknownServer": "model.errors",
    "UnknownTool": "model.errors",
    "Why": "model.snapshot",
    "WireTool": "model.wire",
    "WriteFailed": "model.errors",
    "open_host": "opening",
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
