"""Which files apply, and what of them may be started."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest
from attrs import evolve
from playbill.actors.edge.config.discover import Found, discover, user_file
from playbill.actors.edge.config.trust import TrustStore
from playbill.actors.model.config import ServerEntry
from playbill.actors.model.errors import WriteFailed

ENTRY = ServerEntry("a", command="c", args=("x",), env={"K": "v"})


def test_an_approval_is_for_one_entry_of_one_file_as_it_was(tmp_path: Path) -> None:
    store = TrustStore(tmp_path / "s" / "trust.json")
    file = tmp_path / ".mcp.json"
    assert not store.approved(ENTRY, file)
    store.approve(ENTRY, file)
    for fresh in (store, TrustStore(store.path)):
        assert fresh.approved(ENTRY, file)
        assert fresh.approved(evolve(ENTRY, env={"K": "other"}, exclude=("t",), timeout=3), file)
        for changed in (
            {"command": "d"},
            {"args": ()},
            {"env": {"K": "v", "L": ""}},
            {"url": "https://h"},
            {"name": "b"},
        ):
            assert not fresh.approved(evolve(ENTRY, **changed), file)
        assert not fresh.approved(ENTRY, tmp_path / "other" / ".mcp.json")


def test_approvals_are_kept_for_their_owner_alone(tmp_path: Path) -> None:
    store = TrustStore(tmp_path / "s" / "trust.json")
    store.approve(ENTRY, tmp_path / "f")
    store.approve(evolve(ENTRY, name="b"), tmp_path / "f")
    assert stat.S_IMODE(store.path.stat().st_mode) == 0o600
    kept = json.loads(store.path.read_text("utf-8"))
    assert list(kept["approved"][str(tmp_path / "f")]) == ["a", "b"]
    assert "v" not in json.dumps(kept).split('"')


@pytest.mark.parametrize("text", ["", "{", "[]", '{"approved": 3}', '{"approved": {"f": 3}}', "[" * 100_000])
def test_a_spoilt_store_approves_nothing_and_can_be_written(tmp_path: Path, text: str) -> None:
    store = TrustStore(tmp_path / "trust.json")
    store.path.write_text(text, "utf-8")
    assert not store.approved(ENTRY, "f")
    store.approve(ENTRY, "f")
    assert store.approved(ENTRY, "f")


def test_an_approval_that_cannot_be_kept_says_so(tmp_path: Path) -> None:
    (tmp_path / "s").write_text("a file, not a folder", "utf-8")
    with pytest.raises(WriteFailed, match="not written"):
        TrustStore(tmp_path / "s" / "trust.json").approve(ENTRY, "f")


def test_the_nearest_project_file_comes_before_the_user_s(tmp_path: Path) -> None:
    deep = tmp_path / "a" / "b" / "c"
    deep.mkdir(parents=True)
    user = tmp_path / "user.json"
    assert discover(deep, user=user) == []
    user.write_text("{}", "utf-8")
    assert discover(deep, user=user) == [Found(user, "user")]
    (tmp_path / "a" / ".mcp.json").write_text("{}", "utf-8")
    (deep / ".mcp.json").mkdir()
    assert discover(deep, user=user) == [Found(tmp_path / "a" / ".mcp.json", "project"), Found(user, "user")]
    (deep.parent / ".mcp.json").write_text("{}", "utf-8")
    assert discover(deep, user=user)[0] == Found(deep.parent / ".mcp.json", "project")


def test_the_user_s_file_follows_the_platform(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    assert user_file().name == "mcp.json"
    assert "playbill" in user_file().parts
    assert "playbill" in TrustStore().path.parts
