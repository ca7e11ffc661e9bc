"""Playbill: many MCP servers for one LLM agent, supervised inside that agent's own trio program.

`open_host` opens a `Host`; everything a reader sees is one immutable `Snapshot`. See the README for a first example.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..supervision import Event, Gap
    from .edge.answers import result_for_provider
    from .edge.signature import native_tool
    from .host import Host, Readiness
    from .model.about import ServerInfo
    from .model.budget import Budget
    from .model.catalog import Catalog
    from .model.change import CatalogDiff
    from .model.client import Asker, ClientHandlers, LogMessage, Root
    from .model.config import Config, InputSpec, ServerEntry
    from .model.errors import (
        CallTimeout,
        ConfigError,
        HostClosed,
        LoginFailed,
        NotSupported,
        OperationTimeout,
        PlaybillError,
        ProfileMismatch,
        RequestRefused,
        ServerDied,
        ServerExists,
        ServerUnavailable,
        ToolNotOffered,
        UnknownPrompt,
        UnknownServer,
        UnknownTool,
        WriteFailed,
    )
    from .model.native import NativeTool
    from .model.oauth import OAuth
    from .model.offers import Prompt, PromptArgument, Resource, ResourceTemplate, ResourceUpdate
    from .model.preview import Preview
    from .model.profile import PORTABLE, PROFILES, Profile
    from .model.settings import ServerSettings
    from .model.snapshot import PluginModel, ServerState, Snapshot, ToolState, Why
    from .model.wire import ToolRef, WireTool
    from .opening import open_host
    from .view import View

__all__ = [
    "PORTABLE",
    "PROFILES",
    "Asker",
    "Budget",
    "CallTimeout",
    "Catalog",
    "CatalogDiff",
    "ClientHandlers",
    "Config",
    "ConfigError",
    "Event",
    "Gap",
    "Host",
    "HostClosed",
    "InputSpec",
    "LogMessage",
    "LoginFailed",
    "NativeTool",
    "NotSupported",
    "OAuth",
    "OperationTimeout",
    "PlaybillError",
    "PluginModel",
    "Preview",
    "Profile",
    "ProfileMismatch",
    "Prompt",
    "PromptArgument",
    "Readiness",
    "RequestRefused",
    "Resource",
    "ResourceTemplate",
    "ResourceUpdate",
    "Root",
    "ServerDied",
    "ServerEntry",
    "ServerExists",
    "ServerInfo",
    "ServerSettings",
    "ServerState",
    "ServerUnavailable",
    "Snapshot",
    "ToolNotOffered",
    "ToolRef",
    "ToolState",
    "UnknownPrompt",
    "UnknownServer",
    "UnknownTool",
    "View",
    "Why",
    "WireTool",
    "WriteFailed",
    "native_tool",
    "open_host",
    "result_for_provider",
]

# Imported when first asked for: a command line that only lists, or is interrupted while it starts, does not pay for the rest.
_HOME = {
    "PORTABLE": "model.profile",
    "PROFILES": "model.profile",
    "Asker": "model.client",
    "Budget": "model.budget",
    "CallTimeout": "model.errors",
    "Catalog": "model.catalog",
    "CatalogDiff": "model.change",
    "ClientHandlers": "model.client",
    "Config": "model.config",
    "ConfigError": "model.errors",
    "Event": ".supervision",
    "Gap": ".supervision",
    "Host": "host",
    "HostClosed": "model.errors",
    "InputSpec": "model.config",
    "LogMessage": "model.client",
    "LoginFailed": "model.errors",
    "NativeTool": "model.native",
    "NotSupported": "model.errors",
    "OAuth": "model.oauth",
    "OperationTimeout": "model.errors",
    "PlaybillError": "model.errors",
    "PluginModel": "model.snapshot",
    "Preview": "model.preview",
    "Profile": "model.profile",
    "ProfileMismatch": "model.errors",
    "Prompt": "model.offers",
    "PromptArgument": "model.offers",
    "Readiness": "host",
    "RequestRefused": "model.errors",
    "Resource": "model.offers",
    "ResourceTemplate": "model.offers",
    "ResourceUpdate": "model.offers",
    "Root": "model.client",
    "ServerDied": "model.errors",
    "ServerEntry": "model.config",
    "ServerExists": "model.errors",
    "ServerSettings": "model.settings",
    "ServerInfo": "model.about",
    "ServerState": "model.snapshot",
    "ServerUnavailable": "model.errors",
    "Snapshot": "model.snapshot",
    "ToolNotOffered": "model.errors",
    "ToolRef": "model.wire",
    "ToolState": "model.snapshot",
    "UnknownPrompt": "model.errors",
    "UnknownServer": "model.errors",
    "UnknownTool": "model.errors",
    "View": "view",
    "Why": "model.snapshot",
    "WireTool": "model.wire",
    "WriteFailed": "model.errors",
    "native_tool": "edge.signature",
    "open_host": "opening",
    "result_for_provider": "edge.answers",
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
