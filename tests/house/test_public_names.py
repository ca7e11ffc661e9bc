"""What is public is exactly what is listed here: a name may be added on purpose, and none may go."""

from __future__ import annotations

import subprocess
import sys
from types import ModuleType

import playbill.actors
import playbill.actors.picker
import playbill.supervision
import pytest

ERRORS = [
    "PlaybillError",
    "CallTimeout",
    "ConfigError",
    "HostClosed",
    "LoginFailed",
    "NotSupported",
    "OperationTimeout",
    "ProfileMismatch",
    "RequestRefused",
    "ServerDied",
    "ServerExists",
    "ServerUnavailable",
    "ToolNotOffered",
    "UnknownPrompt",
    "UnknownServer",
    "UnknownTool",
    "WriteFailed",
]
ACTORS = [
    *ERRORS,
    "Asker",
    "Budget",
    "Catalog",
    "CatalogDiff",
    "ClientHandlers",
    "Config",
    "Event",
    "Gap",
    "Host",
    "InputSpec",
    "LogMessage",
    "NativeTool",
    "OAuth",
    "PORTABLE",
    "PROFILES",
    "PluginModel",
    "Preview",
    "Profile",
    "Prompt",
    "PromptArgument",
    "Readiness",
    "Resource",
    "ResourceTemplate",
    "ResourceUpdate",
    "Root",
    "ServerEntry",
    "ServerSettings",
    "ServerInfo",
    "ServerState",
    "Snapshot",
    "ToolRef",
    "ToolState",
    "View",
    "Why",
    "WireTool",
    "native_tool",
    "open_host",
    "result_for_provider",
]
SUPERVISION = [
    "ActorDown",
    "Ask",
    "Backoff",
    "Cell",
    "ChildSpec",
    "ChildState",
    "Context",
    "Counts",
    "Escalated",
    "Event",
    "Gap",
    "Intensity",
    "Latch",
    "Mailbox",
    "MailboxFull",
    "MailboxStatistics",
    "Ref",
    "Restart",
    "Shutdown",
    "StartFailed",
    "Stuck",
    "Supervisor",
    "TreeNode",
]

PICKER = [
    "NoTerminal",
    "PALETTE",
    "Picker",
    "State",
    "dialog_lines",
    "dialog_title",
    "key_hints",
    "reduce",
    "run_picker",
    "start",
    "visible",
]

HOST = [
    "apply",
    "call",
    "call_tool",
    "changes",
    "complete",
    "events",
    "get_prompt",
    "journal",
    "login",
    "logout",
    "pin",
    "plugin_add",
    "plugin_remove",
    "preview",
    "read_resource",
    "ready",
    "reload",
    "restart",
    "revive",
    "roots_changed",
    "server_set_enabled",
    "snapshot",
    "stderr_tail",
    "subscribe",
    "tool_set_enabled",
    "tree",
    "trust",
    "view",
    "why",
]


@pytest.mark.parametrize(
    ("module", "names"),
    [(playbill.actors, ACTORS), (playbill.supervision, SUPERVISION), (playbill.actors.picker, PICKER)],
    ids=["actors", "supervision", "picker"],
)
def test_the_public_names_are_exactly_those_of_the_contract(module: ModuleType, names: list[str]) -> None:
    assert sorted(module.__all__) == sorted(names)
    assert [name for name in names if not hasattr(module, name)] == []


def test_the_operations_of_a_host_are_exactly_those_of_the_contract() -> None:
    public = [name for name in dir(playbill.actors.Host) if not name.startswith("_")]
    assert sorted(public) == HOST


def test_every_error_of_a_host_is_a_playbill_error() -> None:
    for name in ERRORS:
        assert issubclass(getattr(playbill.actors, name), playbill.actors.PlaybillError)
    for name in ("ActorDown", "StartFailed"):
        assert not hasattr(playbill.actors, name)


@pytest.mark.parametrize("module", ["playbill.actors", "playbill.supervision", "playbill.actors.cli"])
def test_importing_a_package_does_not_import_the_sdk(module: str) -> None:
    code = f"import sys, {module}; print(sorted({{n.split('.')[0] for n in sys.modules}} & {{'mcp', 'mcp_types', 'pydantic'}}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_picker_is_drawn_with_urwid_only_when_it_is_drawn() -> None:
    code = (
        "import sys, playbill.actors.picker as picker; before = {'urwid', 'trio'} & {*sys.modules}\n"
        "print(before, picker.Picker.__module__, 'urwid' in sys.modules, hasattr(picker, 'nothing'))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["set()", "playbill.actors.picker.view", "True", "False"]


def test_the_namespace_package_has_no_file_of_its_own() -> None:
    import playbill

    assert getattr(playbill, "__file__", None) is None
