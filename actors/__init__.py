"""Playbill: many MCP servers for one LLM agent, supervised inside that agent's own trio program.

`open_host` opens a `Host`; everything a reader sees is one immutable `Snapshot`. See the README for a first example.
"""

from __future__ import annotations

from .host import Host, Readiness
from .model.config import Config, ServerEntry
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
from .model.snapshot import (
    Budget,
    Catalog,
    NativeTool,
    PluginModel,
    ServerState,
    Snapshot,
    ToolRef,
    ToolState,
    Why,
    WireTool,
)
from .opening import open_host
from .server import ServerSettings

__all__ = [
    "Budget",
    "CallTimeout",
    "Catalog",
    "Config",
    "ConfigError",
    "Host",
    "HostClosed",
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
