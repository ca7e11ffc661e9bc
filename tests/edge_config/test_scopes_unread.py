"""An edit while a file that is nearer cannot be read: is it known what that has?"""

from __future__ import annotations

from pathlib import Path

import pytest
from playbill.actors.edge.config.scopes import ScopedStore
from playbill.actors.edge.config.trust import TrustStore
from playbill.actors.model.config import ServerEntry
from playbill.actors.model.edits import AddServer, Edit, RemoveServer, SetEnabled, SetPin, SetTool
from playbill.actors.model.errors import ConfigError

EDITS = [
    SetTool("a", "t", False),
    SetPin("a", "t", True),
    SetEnabled("a", False),
    RemoveServer("a"),
    AddServer(ServerEntry("a", command="new"), replace=True),
]
HALF = '{"mcpServers": {"a": {"comm'


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "work").mkdir()
    return tmp_path / "work" / ".mcp.json"


@pytest.fixture
def user(tmp_path: Path) -> Path:
    file = tmp_path / "mcp.json"
    file.write_text('{"mcpServers": {"a": {"command": "mine"}}}')
    return file


@pytest.fixture
def store(tmp_path: Path, project: Path, user: Path) -> ScopedStore:
    return ScopedStore(project.parent, user=user, trust=TrustStore(tmp_path / "trust.json"), fsync=False)


@pytest.mark.parametrize("edit", EDITS, ids=lambda edit: type(edit).__name__)
def test_no_other_entry_of_its_name_is_edited(store: ScopedStore, project: Path, user: Path, edit: Edit) -> None:
    project.write_text(HALF)
    before = user.read_text()
    done = store.edit([edit])
    (refused,) = done.refused
    assert isinstance(refused, ConfigError)
    assert str(refused).startswith(f"{project}:1:")
    assert f"it may have a server 'a', so that of {user} was not edited" in str(refused)
    assert (project.read_text(), user.read_text(), done.wrote) == (HALF, before, False)


def test_what_it_said_last_tells_whether_it_has_one(store: ScopedStore, project: Path, user: Path) -> None:
    project.write_text('{"mcpServers": {"b": {"command": "x"}}}')
    store.load()
    project.write_text(HALF)
    assert store.edit([EDITS[2]]).refused == (None,)
    assert "disabled" in user.read_text()
    (refused,) = store.edit([SetEnabled("b", False)]).refused
    assert isinstance(refused, ConfigError)
    assert project.read_text() == HALF
