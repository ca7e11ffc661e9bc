"""Which files apply, and what of them may be started."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from attrs import evolve
from playbill.actors.edge.config import trust
from playbill.actors.edge.config.discover import Found, discover, user_file
from playbill.actors.edge.config.lock import locked
from playbill.actors.edge.config.trust import TrustStore
from playbill.actors.model.config import InputSpec, ServerEntry
from playbill.actors.model.errors import WriteFailed

ENTRY = ServerEntry("a", command="c", args=("x",), env={"K": "v"})


def test_an_approval_is_for_one_entry_of_one_file_as_it_was(tmp_path: Path) -> None:
    store = TrustStore(tmp_path / "s" / "trust.json")
    file = tmp_path / ".mcp.json"
    assert not store.approved(ENTRY, file)
    store.approve(ENTRY, file)
    for fresh in (store, TrustStore(store.path)):
        assert fresh.approved(ENTRY, file)
        assert fresh.approved(evolve(ENTRY, exclude=("t",), timeout=3, line=7), file)
        for changed in (
            {"command": "d"},
            {"args": ()},
            {"env": {"K": "v", "L": ""}},
            {"env": {"K": "other"}},
            {"url": "https://h"},
            {"cwd": "sub"},
            {"env_file": "e"},
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


def test_an_approval_is_of_the_defaults_of_the_inputs_that_are_referred_to(tmp_path: Path) -> None:
    store = TrustStore(tmp_path / "trust.json")
    file = tmp_path / ".mcp.json"
    x, y = InputSpec("x", default="good"), InputSpec("y", default="1")
    entry = ServerEntry("a", command="sh", args=("-c", "${NO_SUCH:-${input:x}}"), inputs=(x, y))
    store.approve(entry, file)
    assert store.approved(evolve(entry, inputs=(evolve(y, default="2"), evolve(x, description="d"))), file)
    assert not store.approved(evolve(entry, inputs=(evolve(x, default="evil"), y)), file)
    assert not store.approved(evolve(entry, inputs=(evolve(x, default=None), y)), file)
    assert not store.approved(evolve(entry, inputs=(y,)), file)


@pytest.mark.parametrize("name", ["e", "${workspaceFolder}/e"])
def test_an_approval_is_of_what_is_in_the_env_file(tmp_path: Path, name: str) -> None:
    store = TrustStore(tmp_path / "s" / "trust.json")
    file = tmp_path / ".mcp.json"
    entry = ServerEntry("a", command="${RUN}", env_file=name, source=str(file))
    store.approve(entry, file)
    assert store.approved(entry, file), "that it is absent is approved too"
    (tmp_path / "e").write_text("RUN=good\n")
    assert not store.approved(entry, file)
    store.approve(entry, file)
    assert store.approved(entry, file)
    (tmp_path / "e").write_text("RUN=evil\n")
    assert not store.approved(entry, file)


def test_a_link_to_an_approved_file_borrows_no_approval(tmp_path: Path) -> None:
    store = TrustStore(tmp_path / "s" / "trust.json")
    for name in ("mine", "stranger"):
        (tmp_path / name).mkdir()
    file = tmp_path / "mine" / ".mcp.json"
    file.write_text("{}")
    (tmp_path / "stranger" / ".mcp.json").symlink_to(file)
    (tmp_path / "way").symlink_to("mine")
    store.approve(ENTRY, file)
    assert not store.approved(ENTRY, tmp_path / "stranger" / ".mcp.json")
    assert store.approved(ENTRY, tmp_path / "way" / ".mcp.json"), "the same folder by another way"
    store.approve(ENTRY, tmp_path / "stranger" / ".mcp.json")
    assert store.approved(ENTRY, tmp_path / "stranger" / ".mcp.json")


@pytest.mark.parametrize("text", ["", "{", "[]", '{"approved": 3}', '{"approved": {"f": 3}}', "[" * 100_000])
def test_a_spoilt_store_approves_nothing_and_is_not_written_over_until_it_is_mended(tmp_path: Path, text: str) -> None:
    store = TrustStore(tmp_path / "trust.json")
    store.path.write_text(text, "utf-8")
    assert not store.approved(ENTRY, "f")
    with pytest.raises(WriteFailed, match=r"trust\.json: not written: .*mend it") as told:
        store.approve(ENTRY, "f")
    assert "\n" not in str(told.value)
    assert store.path.read_text("utf-8") == text
    store.path.write_text('{"approved": {"/g": {"b": "h"}}, "later": [1]}', "utf-8")
    store.approve(ENTRY, "f")
    assert store.approved(ENTRY, "f")
    kept = json.loads(store.path.read_text("utf-8"))
    assert (kept["later"], kept["approved"]["/g"]) == ([1], {"b": "h"})


def test_a_store_that_is_a_named_pipe_holds_nobody_up(tmp_path: Path) -> None:
    store = TrustStore(tmp_path / "trust.json")
    os.mkfifo(store.path)
    assert not store.approved(ENTRY, "f")
    with pytest.raises(WriteFailed, match="not a regular file"):
        store.approve(ENTRY, "f")
    assert store.path.is_fifo()


def test_a_store_that_is_a_link_stays_one(tmp_path: Path) -> None:
    store = TrustStore(tmp_path / "trust.json")
    (tmp_path / "dotfiles").mkdir()
    real = tmp_path / "dotfiles" / "real.json"
    store.path.symlink_to(real)
    for name in ("a", "b"):  # the file is made, and then replaced
        store.approve(evolve(ENTRY, name=name), "f")
        assert store.path.is_symlink()
        assert store.approved(evolve(ENTRY, name=name), "f")
    assert len(json.loads(real.read_text("utf-8"))["approved"]) == 1


def test_an_approval_that_cannot_be_kept_says_so(tmp_path: Path) -> None:
    (tmp_path / "s").write_text("a file, not a folder", "utf-8")
    with pytest.raises(WriteFailed, match="not written"):
        TrustStore(tmp_path / "s" / "trust.json").approve(ENTRY, "f")


def test_an_approval_waits_for_the_lock_of_another_and_leaves_nothing_beside_the_store(tmp_path: Path) -> None:
    store = TrustStore(tmp_path / "trust.json", lock_timeout=0)
    with locked(store.path, 0), pytest.raises(WriteFailed, match="has held its lock for more than 0 s"):
        store.approve(ENTRY, "f")
    assert not store.path.exists()
    store.approve(ENTRY, "f")
    assert [each.name for each in tmp_path.iterdir()] == ["trust.json"]


def test_an_approval_that_another_process_keeps_meanwhile_is_not_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever waited for the lock reads what the one before has kept."""
    ours, theirs = TrustStore(tmp_path / "trust.json"), TrustStore(tmp_path / "trust.json")
    ours.approve(evolve(ENTRY, name="first"), "f")

    @contextmanager
    def late(target: Path, timeout: float) -> Iterator[None]:
        monkeypatch.undo()
        theirs.approve(evolve(ENTRY, name="theirs"), "f")
        with locked(target, timeout):
            yield

    monkeypatch.setattr(trust, "locked", late)
    ours.approve(ENTRY, "f")
    for name in ("first", "theirs", "a"):
        assert ours.approved(evolve(ENTRY, name=name), "f")


def test_processes_that_approve_at_once_lose_none(tmp_path: Path) -> None:
    code = (
        "import sys\nfrom pathlib import Path\nfrom playbill.actors.edge.config.trust import TrustStore\n"
        "from playbill.actors.model.config import ServerEntry\n"
        "store = TrustStore(Path(sys.argv[1]))\n"
        "for i in range(30):\n"
        "    store.approve(ServerEntry(f'{sys.argv[2]}{i}', command='c'), 'f')"
    )
    path = tmp_path / "trust.json"
    running = [subprocess.Popen([sys.executable, "-c", code, str(path), name]) for name in ("a", "b", "c")]
    assert [each.wait(60) for each in running] == [0, 0, 0]
    (kept,) = json.loads(path.read_text("utf-8"))["approved"].values()
    assert sorted(kept) == sorted(f"{name}{i}" for name in "abc" for i in range(30))
    assert [each.name for each in tmp_path.iterdir()] == ["trust.json"]


def test_a_lock_that_cannot_be_taken_says_so(tmp_path: Path) -> None:
    store = TrustStore(tmp_path / "trust.json")
    (tmp_path / "trust.json.lock").mkdir()
    with pytest.raises(WriteFailed, match="its lock cannot be taken: is a directory"):
        store.approve(ENTRY, "f")


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
