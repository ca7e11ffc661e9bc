"""Approving an entry of a project's file, through its store: what was shown, and nothing else."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from playbill.actors.edge.config.file import FileStore
from playbill.actors.edge.config.scopes import ScopedStore
from playbill.actors.edge.config.trust import TrustStore, fingerprint
from playbill.actors.model.config import ServerEntry
from playbill.actors.model.edits import AddServer, SetTool
from playbill.actors.model.errors import ConfigError


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "mcp.json"
    path.write_text('{"mcpServers": {"a": {"command": "c"}, "b": {"command": "d"}}}', "utf-8")
    return path


def test_an_unapproved_process_of_a_project_file_is_untrusted_until_it_is_approved(file: Path, tmp_path: Path) -> None:
    trust = TrustStore(tmp_path / "state" / "trust.json")
    store = FileStore(file, trust=trust)
    first = store.load()
    assert [e.trusted for e in first.servers] == [False, False]
    assert store.approve("a", first.get("a"))
    assert not store.approve("nope", None)
    second = store.load(first)
    assert [e.trusted for e in second.servers] == [True, False]
    # A toggle asks nothing; a changed command asks again; what is added through us is approved.
    third = store.edit([SetTool("a", "t", False), AddServer(ServerEntry("n", command="x"))], second).config
    assert [(e.name, e.trusted) for e in third.servers] == [("a", True), ("b", False), ("n", True)]
    file.write_text(file.read_text("utf-8").replace('"command": "c"', '"command": "rm"'), "utf-8")
    assert [e.trusted for e in store.load(third).servers] == [False, False, True]


def test_what_is_added_anew_just_as_it_is_there_is_approved(file: Path, tmp_path: Path) -> None:
    store = FileStore(file, trust=TrustStore(tmp_path / "state" / "trust.json"))
    entry = ServerEntry("n", command="x", args=("y",))
    FileStore(file).edit([AddServer(entry)])
    text = file.read_bytes()
    assert [e.trusted for e in store.load().servers] == [False, False, False]
    done = store.edit([AddServer(entry, replace=True)])
    assert (done.refused, done.wrote, file.read_bytes()) == ((None,), False, text)
    assert [e.trusted for e in done.config.servers] == [False, False, True]


def test_what_changed_since_it_was_shown_is_not_approved(file: Path, tmp_path: Path) -> None:
    store = FileStore(file, trust=TrustStore(tmp_path / "state" / "trust.json"))
    shown = store.load().get("a")
    file.write_text(file.read_text("utf-8").replace('"command": "c"', '"command": "rm"'), "utf-8")
    for seen in (shown, None):
        with pytest.raises(ConfigError, match="changed since it was shown; look again"):
            store.approve("a", seen)
    now = store.load().get("a")
    assert now is not None
    assert not now.trusted
    assert store.approve("a", now)


def test_an_env_file_whose_path_an_input_gives_cannot_be_approved(file: Path, tmp_path: Path) -> None:
    """A program that embeds us may supply another value at each start: what is in that file nobody was shown."""
    entry = {"command": "c", "envFile": "${NO:-${input:which}}.env"}
    text = {"inputs": [{"id": "which", "default": "good"}], "mcpServers": {"a": entry}}
    file.write_text(json.dumps(text), "utf-8")
    (tmp_path / "good.env").write_text("A=1\n")
    trust = TrustStore(tmp_path / "state" / "trust.json")
    store = FileStore(file, trust=trust)
    shown = store.load().get("a")
    assert shown is not None
    with pytest.raises(ConfigError, match=r"server 'a' was not approved: the path of its envFile refers to an input"):
        store.approve("a", shown)
    assert not trust.path.exists()
    # Nor does one count that an older version, or a person, wrote.
    trust.path.parent.mkdir(exist_ok=True)
    trust.path.write_text(json.dumps({"approved": {str(file): {"a": fingerprint(shown)}}}))
    assert not store.load().get("a").trusted  # type: ignore[union-attr]
    assert FileStore(file).load().get("a").trusted, "a path that is named is trusted as it is"  # type: ignore[union-attr]


def test_an_entry_that_a_nearer_file_now_has_is_not_the_one_that_was_shown(tmp_path: Path) -> None:
    """Word for word the same, and it runs something else: its relative paths are another folder's."""
    text = '{"mcpServers": {"a": {"command": "./run"}}}'
    (tmp_path / "work").mkdir()
    (tmp_path / ".mcp.json").write_text(text)
    approvals = TrustStore(tmp_path / "state" / "trust.json")
    store = ScopedStore(tmp_path / "work", user=tmp_path / "user.json", trust=approvals)
    shown = store.load().get("a")
    (tmp_path / "work" / ".mcp.json").write_text(text)
    with pytest.raises(ConfigError, match="look again"):
        store.approve("a", shown)
    assert not store.load().get("a").trusted  # type: ignore[union-attr]
