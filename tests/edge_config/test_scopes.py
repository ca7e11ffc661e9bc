"""The project's file and the user's, both in force: real files."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest
from attrs import define
from playbill.actors.edge.config.file import FileStore
from playbill.actors.edge.config.scopes import ScopedStore
from playbill.actors.edge.config.trust import TrustStore
from playbill.actors.model.config import Config, ServerEntry
from playbill.actors.model.edits import AddServer, Edit, RemoveServer, SetEnabled, SetPin, SetTool
from playbill.actors.model.errors import ConfigError, ServerExists, UnknownServer, WriteFailed


@define
class Home:
    """A project in a folder, a user, and what the user has approved."""

    work: Path
    user: Path
    trust: TrustStore

    @property
    def project(self) -> Path:
        return self.work / ".mcp.json"

    def store(self) -> ScopedStore:
        return ScopedStore(self.work, user=self.user, trust=TrustStore(self.trust.path), fsync=False, lock_timeout=1)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    work = tmp_path / "work" / "deep"
    work.mkdir(parents=True)
    (tmp_path / "config").mkdir()
    return Home(work, tmp_path / "config" / "mcp.json", TrustStore(tmp_path / "state" / "trust.json"))


def write(path: Path, **servers: Any) -> None:
    entries = {name: {"command": each} if isinstance(each, str) else each for name, each in servers.items()}
    path.write_text(json.dumps({"mcpServers": entries}, indent=2) + "\n")


def names(path: Path) -> list[str]:
    return list(json.loads(path.read_text())["mcpServers"])


def commands(config: Config) -> dict[str, str | None]:
    return {entry.name: entry.command for entry in config.servers}


def only(store: ScopedStore, edit: Edit) -> Config:
    done = store.edit([edit])
    if done.refused[0] is not None:
        raise done.refused[0]
    return done.config


# What is in force.


def test_both_files_are_in_force_and_of_a_name_in_both_the_nearer_entry_wins_whole(home: Home) -> None:
    write(home.project, a="near", b={"url": "https://near.example/"})
    write(home.user, b={"command": "far", "args": ["x"], "tools": {"exclude": ["t"]}}, c="far")
    config = home.store().load()
    assert commands(config) == {"a": "near", "b": None, "c": "far"}
    assert config.get("b").exclude == ()  # type: ignore[union-attr]
    assert [entry.source for entry in config.servers] == [str(home.project), str(home.project), str(home.user)]
    assert config.error is None
    assert config.path == str(home.project)


def test_the_nearest_project_file_is_the_only_one_of_its_kind(home: Home) -> None:
    write(home.work.parent / ".mcp.json", above="x")
    store = home.store()
    assert commands(store.load()) == {"above": "x"}
    write(home.project, here="y")
    assert commands(store.load()) == {"here": "y"}
    home.project.unlink()
    assert commands(store.load()) == {"above": "x"}


def test_a_file_that_is_made_later_comes_in_force_and_one_that_goes_goes_out_of_it(home: Home) -> None:
    write(home.user, a="far")
    store = home.store()
    first = store.load()
    assert (commands(first), first.path) == ({"a": "far"}, str(home.user))
    write(home.project, a="near")
    assert commands(store.load(first)) == {"a": "near"}
    home.user.unlink()
    home.project.unlink()
    write(home.user, b="far")
    assert commands(store.load()) == {"b": "far"}


def test_without_any_file_it_is_said_where_they_were_looked_for(home: Home) -> None:
    (home.work / "mcp.json").write_text("{}")
    store = home.store()
    with pytest.raises(
        ConfigError, match=r"no \.mcp\.json in .*deep or its parents, and no .*config/mcp\.json"
    ) as caught:
        store.load()
    assert f"there is {home.work / 'mcp.json'}: name it" in str(caught.value)
    assert store.fingerprint() is None
    assert store.answered() is None


def test_what_did_not_change_is_the_same_object(home: Home) -> None:
    write(home.project, a="near")
    write(home.user, b="far", c="far")
    store = home.store()
    first = store.load()
    assert store.load(first) is first
    write(home.user, b="far", c="other")
    second = store.load(first)
    assert second is not first
    assert second.get("a") is first.get("a")
    assert second.get("b") is first.get("b")


def test_warnings_say_which_file_they_are_about(home: Home) -> None:
    write(home.project, a={"command": "x", "disabeld": True})
    write(home.user, b={"command": "x", "agrs": []})
    near, far = home.store().load().warnings
    assert near.startswith(f"{home.project}: mcpServers.a.disabeld")
    assert far.startswith(f"{home.user}: mcpServers.b.agrs")


# A file that cannot be read.


@pytest.mark.parametrize("broken", ["project", "user"])
def test_a_broken_file_never_hides_the_other_and_what_it_said_last_stays(home: Home, broken: str) -> None:
    write(home.project, a="near", both="near")
    write(home.user, b="far", both="far")
    store = home.store()
    before = store.load()
    path = home.project if broken == "project" else home.user
    good = path.read_text()
    path.write_text(good[:-5])
    other = home.user if broken == "project" else home.project
    write(other, both="new", late="new")
    after = store.load(before)
    kept = (
        {"a": "near", "both": "near", "late": "new"}
        if broken == "project"
        else {"both": "new", "late": "new", "b": "far"}
    )
    assert commands(after) == kept
    assert after.error is not None
    assert after.error.file == str(path)
    assert after.error.line is not None
    assert store.load(after) is after
    path.write_text(good)
    mended = store.load(after)
    assert mended.error is None
    assert set(commands(mended)) == ({"a", "both", "late"} if broken == "project" else {"b", "both", "late"})


def test_a_file_that_was_never_read_adds_nothing_and_is_named(home: Home) -> None:
    home.project.write_text("{")
    write(home.user, b="far")
    config = home.store().load()
    assert commands(config) == {"b": "far"}
    assert str(home.project) in str(config.error)


def test_a_nearer_project_file_that_is_broken_leaves_the_servers_of_the_one_before_it(home: Home) -> None:
    write(home.work.parent / ".mcp.json", above="x")
    write(home.user, b="far")
    store = home.store()
    before = store.load()
    home.project.write_text("{")
    after = store.load(before)
    assert commands(after) == {"above": "x", "b": "far"}
    assert str(home.project) in str(after.error)


@pytest.mark.parametrize("there", [["project"], ["user"], ["project", "user"]], ids=" ".join)
def test_when_nothing_can_be_read_all_of_it_is_refused_and_every_file_named(home: Home, there: list[str]) -> None:
    paths = [getattr(home, each) for each in there]
    for path in paths:
        write(path, a="x")
    store = home.store()
    before = store.load()
    for path in paths:
        path.write_text("{")
    for refused in (lambda: store.load(before), lambda: store.edit([SetEnabled("a", False)], before)):
        with pytest.raises(ConfigError) as caught:
            refused()
        assert all(str(path) in str(caught.value) for path in paths)
        assert store.answered() == store.fingerprint()
    assert [path.read_text() for path in paths] == ["{"] * len(paths)


def test_the_error_of_a_file_goes_with_the_file(home: Home) -> None:
    write(home.project, a="near")
    home.user.write_text("{")
    store = home.store()
    before = store.load()
    assert before.error is not None
    home.project.rename(home.work / "away")
    with pytest.raises(ConfigError):
        store.load(before)
    (home.work / "away").rename(home.project)
    home.user.unlink()
    after = store.load(before)
    assert (commands(after), after.error) == ({"a": "near"}, None)


# Edits.


@pytest.mark.parametrize(
    "edit",
    [SetEnabled("both", False), SetTool("both", "t", False), SetPin("both", "t", True)],
    ids=lambda e: type(e).__name__,
)
def test_an_edit_goes_to_the_file_that_the_entry_comes_from(home: Home, edit: Edit) -> None:
    write(home.project, both="near")
    write(home.user, both="far", b="far")
    near, far = home.project.read_text(), home.user.read_text()
    store = home.store()
    config = only(store, edit)
    assert home.project.read_text() != near
    assert home.user.read_text() == far
    assert store.load(config) is config
    only(store, SetEnabled("b", False))
    assert home.user.read_text() != far


def test_removing_an_entry_that_hides_another_shows_the_other(home: Home) -> None:
    write(home.project, both="near")
    write(home.user, both="far")
    store = home.store()
    assert commands(only(store, RemoveServer("both"))) == {"both": "far"}
    assert (names(home.project), names(home.user)) == ([], ["both"])
    assert commands(only(store, RemoveServer("both"))) == {}
    assert names(home.user) == []


@pytest.mark.parametrize("there", [True, False])
def test_a_new_server_goes_to_the_projects_file_if_there_is_one_else_to_the_users(home: Home, there: bool) -> None:
    write(home.user, b="far")
    if there:
        write(home.project)
    config = only(home.store(), AddServer(ServerEntry("new", command="x")))
    assert config.get("new").source == str(home.project if there else home.user)  # type: ignore[union-attr]
    assert home.project.exists() is there


def test_a_name_that_is_anywhere_is_there_already_and_is_replaced_where_it_is(home: Home) -> None:
    write(home.project, a="near")
    write(home.user, b="far")
    store = home.store()
    with pytest.raises(ServerExists, match="config/mcp"):
        only(store, AddServer(ServerEntry("b", command="new")))
    only(store, AddServer(ServerEntry("b", command="new"), replace=True))
    assert json.loads(home.user.read_text())["mcpServers"]["b"]["command"] == "new"
    assert names(home.project) == ["a"]


def test_the_scopes_own_store_can_hide_the_other_files_entry(home: Home) -> None:
    write(home.user, b="far")
    store = home.store()
    done = store.store("project").edit([AddServer(ServerEntry("b", command="near"))])
    assert done.refused == (None,)
    assert commands(store.load()) == {"b": "near"}


@pytest.mark.parametrize("scope", ["project", "user"])
def test_a_file_is_made_with_the_smallest_text_and_only_the_users_is_private(home: Home, scope: Any) -> None:
    home.user.parent.rmdir()
    old = os.umask(0o027)
    try:
        done = home.store().store(scope).edit([AddServer(ServerEntry("a", command="x"))])
    finally:
        os.umask(old)
    assert done.wrote
    path = home.project if scope == "project" else home.user
    assert path.read_text() == '{\n  "mcpServers": {\n    "a": {\n      "command": "x"\n    }\n  }\n}\n'
    assert stat.S_IMODE(path.stat().st_mode) == (0o640 if scope == "project" else 0o600)
    if scope == "user":
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_an_unknown_name_is_answered_with_the_nearest_of_both_files(home: Home) -> None:
    write(home.project, clock="x")
    write(home.user, notes="x")
    with pytest.raises(UnknownServer, match="did you mean 'notes'"):
        only(home.store(), SetEnabled("note", False))


def test_edits_of_both_files_in_one_burst_are_all_done_in_order(home: Home) -> None:
    write(home.project, a="near", both="near")
    write(home.user, b="far", both="far")
    store = home.store()
    done = store.edit(
        [
            SetTool("a", "t", False),
            SetTool("b", "t", False),
            RemoveServer("both"),
            SetEnabled("both", False),
            SetEnabled("nobody", False),
            SetTool("a", "u", False),
            AddServer(ServerEntry("late", command="x")),
            SetTool("late", "t", False),
        ]
    )
    assert [type(each) for each in done.refused] == [type(None)] * 4 + [UnknownServer] + [type(None)] * 3
    config = store.load()
    assert config == done.config
    assert {entry.name: entry.exclude for entry in config.servers} == {
        "a": ("t", "u"),
        "b": ("t",),
        "both": (),
        "late": ("t",),
    }
    both = config.get("both")
    assert both is not None
    assert (both.disabled, both.source) == (True, str(home.user))


def test_what_one_file_refuses_leaves_the_other_edits_alone(home: Home) -> None:
    write(home.project, a="near")
    write(home.user, b="far")
    store = home.store()
    store.load()
    home.project.write_text("{")
    done = store.edit([SetEnabled("a", False), SetEnabled("b", False), SetEnabled("c", False)])
    a, b, c = done.refused
    assert isinstance(a, ConfigError)
    assert b is None
    assert isinstance(c, ConfigError), "it may be in the file that cannot be read"
    assert home.project.read_text() == "{"
    assert done.config.get("b").disabled  # type: ignore[union-attr]
    assert commands(done.config) == {"a": "near", "b": "far"}
    assert str(home.project) in str(done.config.error)
    assert store.answered() == store.fingerprint()


def test_a_file_that_cannot_be_written_refuses_its_own_edits_alone(home: Home) -> None:
    write(home.project, a="near")
    write(home.user, b="far")
    home.user.chmod(0o400)
    done = home.store().edit([SetEnabled("a", False), SetEnabled("b", False)])
    assert done.refused[0] is None
    assert isinstance(done.refused[1], WriteFailed)
    assert [entry.disabled for entry in done.config.servers] == [True, False]


def test_without_any_file_an_add_makes_the_users_and_another_edit_is_refused(home: Home) -> None:
    store = home.store()
    with pytest.raises(ConfigError, match="or its parents"):
        store.edit([SetEnabled("a", True)])
    home.user.parent.rmdir()
    home.user.parent.write_text("not a folder")
    with pytest.raises((WriteFailed, ConfigError)):
        store.edit([AddServer(ServerEntry("a", command="x"))])
    home.user.parent.unlink()
    assert commands(only(store, AddServer(ServerEntry("a", command="x")))) == {"a": "x"}
    assert names(home.user) == ["a"]


def test_the_whole_is_never_put(home: Home) -> None:
    with pytest.raises(ConfigError, match="edit those"):
        home.store().put(Config())


# What the text is.


def test_any_change_of_what_is_read_is_another_fingerprint_and_our_own_are_known(home: Home) -> None:
    write(home.project, a="near")
    write(home.user, b="far")
    store = home.store()
    store.load()
    seen = [store.fingerprint()]
    assert store.answered() == seen[0]

    def changed() -> None:
        now = store.fingerprint()
        assert now not in seen
        assert store.answered() != now
        seen.append(now)
        store.load()
        assert store.answered() == now

    write(home.project, a="other")
    changed()
    write(home.user, b="other")
    changed()
    home.project.rename(home.work.parent / ".mcp.json")
    changed()
    (home.work.parent / ".mcp.json").rename(home.project)
    store.load()
    entry = store.load().get("a")
    assert entry is not None
    TrustStore(home.trust.path).approve(entry, home.project)  # as another process does
    changed()
    TrustStore(home.trust.path).approve(entry, home.work / "elsewhere.json")
    assert store.fingerprint() == seen[-1]
    for edit in (SetEnabled("a", False), SetEnabled("b", False), AddServer(ServerEntry("c", command="x"))):
        only(store, edit)
        assert store.answered() == store.fingerprint()


def test_every_file_that_could_change_the_answer_is_watched(home: Home) -> None:
    store = home.store()
    watched = store.watched()
    assert home.project in watched
    assert home.work.parent / ".mcp.json" in watched
    assert Path("/.mcp.json") in watched
    assert watched[-2:] == (home.user, home.trust.path)
    write(home.work.parent / ".mcp.json", a="x")
    assert store.watched() == (home.project, home.work.parent / ".mcp.json", home.user, home.trust.path)


# Trust.


def test_what_a_project_starts_needs_approval_and_what_the_user_wrote_does_not(home: Home) -> None:
    write(home.project, a="near", web={"url": "https://near.example/"})
    write(home.user, b="far")
    store = home.store()
    assert {entry.name: entry.trusted for entry in store.load().servers} == {"a": False, "web": True, "b": True}
    shown = store.load()
    assert store.approve("a", shown.get("a"))
    assert store.approve("b", shown.get("b"))
    assert not store.approve("nobody", None)
    assert all(entry.trusted for entry in store.load().servers)
    assert all(entry.trusted for entry in home.store().load().servers)


@pytest.mark.parametrize(
    "changed",
    [
        {"command": "other"},
        {"args": ["y"]},
        {"env": {"A": "2"}},
        {"cwd": "elsewhere"},
        {"envFile": "evil.env"},
    ],
    ids=lambda changed: next(iter(changed)),
)
def test_an_entry_that_changed_asks_again(home: Home, changed: dict[str, Any]) -> None:
    first = {"command": "c", "args": ["x"], "env": {"A": "1"}}
    write(home.project, a=first)
    store = home.store()
    store.approve("a", store.load().get("a"))
    write(home.project, a={**first, "disabled": True, "timeout": 3})
    assert store.load().get("a").trusted  # type: ignore[union-attr]
    write(home.project, a={**first, **changed})
    assert not store.load().get("a").trusted  # type: ignore[union-attr]
    write(home.project, a=first)
    assert store.load().get("a").trusted  # type: ignore[union-attr]


def test_who_adds_a_server_has_approved_it_and_no_other(home: Home) -> None:
    write(home.project, a="near")
    store = home.store()
    config = only(store, AddServer(ServerEntry("mine", command="x")))
    assert {entry.name: entry.trusted for entry in config.servers} == {"a": False, "mine": True}
    only(store, SetEnabled("a", True))
    assert not store.load().get("a").trusted  # type: ignore[union-attr]


def test_an_approval_that_another_process_gives_meanwhile_is_not_missed(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(home.project, a="near")
    write(home.user, b="far")
    store = home.store()
    load = FileStore.load

    def in_between(self: FileStore, previous: Config | None = None) -> Config:
        config = load(self, previous)
        entry = config.get("a")
        if entry is not None:
            TrustStore(home.trust.path).approve(entry, home.project)
        return config

    monkeypatch.setattr(FileStore, "load", in_between)
    assert not store.load().get("a").trusted  # type: ignore[union-attr]
    assert store.answered() != store.fingerprint()


def test_approving_what_may_be_in_a_file_that_cannot_be_read_says_so(home: Home) -> None:
    home.project.write_text("{")
    write(home.user, b="far")
    with pytest.raises(ConfigError, match="work/deep"):
        home.store().approve("a", None)
