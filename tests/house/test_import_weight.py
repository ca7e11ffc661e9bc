"""What is imported when, by name: times are for `benchmarks/imports.py`."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = (
    *("mcp", "mcp_types", "pydantic", "pydantic_core", "anyio", "httpx2", "httpcore2", "jsonschema", "referencing"),
    *("cattrs", "filelock", "platformdirs", "watchfiles", "opentelemetry", "rich", "cyclopts", "urwid"),
    *("http.cookiejar", "http.client", "urllib.request", "importlib.metadata", "typing_extensions"),
)
"""What costs more than it looks like, and is of no use to who only imports."""

MACHINERY = ("house", "host", "coordinator", "server", "calls", "edge.config", "edge.wire", "edge.auth", "telemetry")
"""Rooms and files of ours that only an open host needs."""

OPENED = """
import trio
from playbill.actors import Config, ServerEntry, open_host

async def main():
    async with open_host(Config((ServerEntry("gone", command="/there/is/no/such/program"),))) as host:
        await host.ready(timeout=60)
        assert host.snapshot().model.server("gone").phase == "parked", "nothing was tried"

trio.run(main)
"""

REMOTE = ("edge.auth.logins", "edge.auth.store", "edge.auth.keeper", "edge.wire.remote")


def loaded(code: str, *, among: tuple[str, ...]) -> list[str]:
    """Which of some modules are imported in an interpreter that ran some code."""
    then = f"\nimport sys; print('loaded', *(each for each in {among!r} if each in sys.modules))"
    done = subprocess.run([sys.executable, "-c", code + then], capture_output=True, text=True, timeout=60, check=True)
    return done.stdout.splitlines()[-1].split()[1:]


def ours(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(f"playbill.actors.{name}" for name in names)


def test_what_opens_a_host_is_imported_without_what_a_host_is_made_of() -> None:
    code = "from playbill.actors import Budget, Config, NativeTool, OAuth, ServerEntry, ServerSettings, open_host"
    assert loaded(code, among=("trio", *HEAVY, *ours(MACHINERY))) == ["trio"]


def test_no_public_name_brings_a_package_that_only_some_hosts_need() -> None:
    code = "import playbill.actors as actors\nfor name in actors.__all__: getattr(actors, name)"
    assert loaded(code, among=("playbill.actors.host", *HEAVY)) == ["playbill.actors.host"]


@pytest.mark.parametrize("name", ["Backoff", "Intensity"])
def test_how_often_to_restart_is_imported_without_supervisors(name: str) -> None:
    code = f"from playbill.supervision import {name}"
    assert loaded(code, among=("trio", "playbill.supervision.supervisor", "playbill.supervision.spec")) == [
        "playbill.supervision.spec"
    ]


def test_a_host_of_local_servers_imports_no_logins_and_nothing_that_only_a_file_needs() -> None:
    seldom = (*ours(REMOTE), "http.cookiejar", "httpx2", "cattrs", "filelock", "watchfiles")
    assert loaded(OPENED, among=("playbill.actors.edge.wire.stdio", *seldom)) == ["playbill.actors.edge.wire.stdio"]
