"""The pytest plugin: fixtures ``playbill_servers`` and ``playbill_host``, for tests of programs that embed a host.

pytest loads this file in every run of whoever has the package installed, before coverage of their own code may have begun:
so it imports nothing until a fixture is used. See ``docs/testing.md``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from ..host import Host
    from .kit import ServerKit

__all__ = ["playbill_host", "playbill_servers", "pytest_configure"]

MARKER = "playbill_servers"
PYTEST_TRIO = ("trio", "pytest_trio", "pytest_trio.plugin")
"""What it is called: by its entry point, or when it is given with ``-p``."""


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker."""
    config.addinivalue_line(
        "markers",
        f"{MARKER}(**scripts): the servers that the fixtures playbill_servers and playbill_host begin with: "
        "name=Script(...), or name=[names of its tools]; the mark nearest to the test decides for a name.",
    )


@pytest.fixture
def playbill_servers(request: pytest.FixtureRequest) -> ServerKit:
    """Scripted servers in memory, and faults by name: a `playbill.actors.testing.ServerKit`.

    It begins with the servers of the test's ``playbill_servers`` marks. It needs no plugin: a test without pytest-trio uses
    ``async with playbill_servers.open() as host`` in a ``trio.run`` of its own.
    """
    from attrs import evolve

    from .kit import ServerKit
    from .scripted import Script

    kit = ServerKit()
    for mark in reversed(list(request.node.iter_markers(MARKER))):
        if mark.args:
            pytest.fail(f"@pytest.mark.{MARKER} takes servers by name only, not {mark.args[0]!r}", pytrace=False)
        for name, script in mark.kwargs.items():
            # A mark may be shared by many tests; what one of them changes is its own.
            kit.scripted.scripts[name] = evolve(script) if isinstance(script, Script) else Script(tuple(script))
    return kit


@pytest.fixture
def _playbill_needs_trio(request: pytest.FixtureRequest) -> None:
    """Say in one line why a host cannot be opened here, rather than what else would be said."""
    instead = "or open it yourself: async with playbill_servers.open() as host"
    if not any(map(request.config.pluginmanager.hasplugin, PYTEST_TRIO)):
        pytest.fail(f"playbill_host needs pytest-trio: pip install pytest-trio, {instead}", pytrace=False)
    if request.node.get_closest_marker("trio") is None:
        pytest.fail(
            f"playbill_host needs an async test that pytest-trio runs: mark it @pytest.mark.trio, or set trio_mode = true; "
            f"{instead}",
            pytrace=False,
        )


@pytest.fixture
async def playbill_host(_playbill_needs_trio: None, playbill_servers: ServerKit) -> AsyncIterator[Host]:
    """A host over ``playbill_servers``, open for the length of the test; it has not waited for any server.

    It works together with pytest-trio's ``nursery``, and, when the test asks for ``autojump_clock``, in virtual time.
    """
    async with playbill_servers.open() as host:
        yield host
