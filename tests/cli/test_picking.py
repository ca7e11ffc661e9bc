"""What `playbill pick` opens, without a terminal: each option reaches the host; what is reviewed is what is approved."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, cast

import playbill.actors.picker.terminal
import playbill.actors.picker.view
import pytest
import trio
from playbill.actors import Host, open_host
from playbill.actors.cli import hosting, picking
from playbill.actors.cli.reviewing import FileReviewer
from playbill.actors.edge.config.scopes import ScopedStore
from playbill.actors.edge.config.trust import TrustStore
from playbill.actors.model.errors import ConfigError, UnknownServer

from .test_scopes_and_trust import write

WriteConfig = Callable[..., Path]
Pick = Callable[..., dict[str, Any]]


@pytest.fixture
def picked(monkeypatch: pytest.MonkeyPatch) -> Pick:
    """Picks with some options; what the host was opened with."""
    asked: dict[str, Any] = {}

    @asynccontextmanager
    async def opened(source: Any, **options: Any) -> AsyncIterator[str]:
        await trio.lowlevel.checkpoint()
        asked.update(source=source, **options)
        yield "a host"

    @contextmanager
    def terminal() -> Iterator[str]:
        yield "a terminal"

    async def shown(host: Any, terminal: Any, *, reviewer: Any, typed: bytes) -> None:
        await trio.lowlevel.checkpoint()
        asked.update(shown=(host, terminal), reviewer=reviewer)

    monkeypatch.setattr(hosting, "opened", opened)
    monkeypatch.setattr(playbill.actors.picker.terminal, "open_terminal", terminal)
    monkeypatch.setattr(playbill.actors.picker.view, "run_picker", shown)

    def pick(path: Path | None, **options: Any) -> dict[str, Any]:
        asked.clear()
        assert picking.pick_tools(None if path is None else str(path), **options) == 0
        assert asked.pop("shown") == ("a host", "a terminal")
        assert isinstance(asked.pop("reviewer"), FileReviewer)
        return dict(asked)

    return pick


def test_each_option_reaches_the_host(picked: Pick, write_config: WriteConfig) -> None:
    config = write_config(a={"command": "x"})
    plain = picked(config)
    assert plain == {"source": config, "scope": None, "watch": True}
    assert picked(config, timeout=7.0) == {**plain, "operation_timeout": 7.0}
    assert picked(config, budget=0) == {**plain, "budget": 0}
    assert picked(config, profile="openai")["profile"].name == "openai"
    assert picked(None, scope="user") == {"source": None, "scope": "user", "watch": True}


def test_watching_can_be_turned_off_and_is_missed_only_where_it_was_not(
    picked: Pick, write_config: WriteConfig, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    config = write_config(a={"command": "x"})
    assert picked(config, watch=False)["watch"] is False
    monkeypatch.setattr(picking, "can_watch", lambda: False)
    assert picked(config, watch=False)["watch"] is False
    assert picked(config, watch=True)["watch"] is True  # who opens the host says what is missing
    assert capsys.readouterr().err == ""
    assert picked(config)["watch"] is False
    assert "the config is not watched" in capsys.readouterr().err


# The review.


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, of a person without a config of their own."""
    for name in ("CONFIG", "STATE", "CACHE", "DATA"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / name.lower()))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


DISABLED = {"command": "no-such-program", "args": ["--fast"], "disabled": True}


async def test_what_is_reviewed_is_what_is_approved_and_kept(folder: Path) -> None:
    write(folder / ".mcp.json", a=DISABLED)
    async with open_host() as host:
        reviewer = FileReviewer(host, None, None)
        review = await reviewer.review("a")
        assert "no-such-program" in "\n".join(review.lines)
        await reviewer.approve("a", review.seal)
    entry = ScopedStore(folder).load().get("a")
    assert entry is not None
    assert TrustStore().approved(entry, folder / ".mcp.json")


async def test_only_what_was_shown_to_this_person_can_be_approved(folder: Path) -> None:
    write(folder / ".mcp.json", a=DISABLED, b={**DISABLED, "command": "other"})
    async with open_host() as host:
        shown = await FileReviewer(host, None, None).review("a")
        reviewer = FileReviewer(host, None, None)
        with pytest.raises(ConfigError, match="was not shown like that"):
            await reviewer.approve("a", shown.seal)
        await reviewer.review("a")
        with pytest.raises(ConfigError, match="was not shown like that"):
            await reviewer.approve("b", shown.seal)
    assert not TrustStore().path.exists()


async def test_a_second_review_of_what_changed_does_not_take_the_first_ones_seal(folder: Path) -> None:
    path = folder / ".mcp.json"
    write(path, a={"command": "no-such-program"})
    async with open_host() as host:
        reviewer = FileReviewer(host, None, None)
        first = await reviewer.review("a")
        write(path, a={"command": "no-such-other"})
        second = await reviewer.review("a")
        assert first.seal != second.seal
        with pytest.raises(ConfigError, match="not what was shown any more"):
            await reviewer.approve("a", first.seal)
        state = (await reviewer.approve("a", second.seal)).model.server("a")
        assert state is not None
        assert state.phase != "untrusted"


async def test_what_cannot_be_reviewed_says_why(folder: Path) -> None:
    write(
        folder / ".mcp.json",
        open={"command": "x", "envFile": "${input:file}"},
        wrong={"command": 3},
        fine=DISABLED,
    )
    async with open_host() as host:
        reviewer = FileReviewer(host, None, None)
        with pytest.raises(ConfigError, match="cannot be approved: the path of its envFile"):
            await reviewer.review("open")
        with pytest.raises(ConfigError, match="command"):
            await reviewer.review("wrong")
        with pytest.raises(UnknownServer, match="fine"):
            await reviewer.review("fien")


async def test_a_review_is_of_the_file_that_was_named(folder: Path) -> None:
    write(folder / ".mcp.json", a=DISABLED)
    other = folder / "other.json"
    write(other, a={**DISABLED, "command": "named"})
    review = await FileReviewer(cast(Host, None), str(other), None).review("a")
    assert any("named" in line for line in review.lines)
    review = await FileReviewer(cast(Host, None), None, "project").review("a")
    assert any("no-such-program" in line for line in review.lines)


async def test_an_env_file_that_changed_since_it_was_shown_is_not_approved(folder: Path) -> None:
    (folder / "a.env").write_text("A=1\n")
    write(folder / ".mcp.json", a={"command": "no-such-program", "envFile": "a.env"})
    async with open_host() as host:
        reviewer = FileReviewer(host, None, None)
        review = await reviewer.review("a")
        (folder / "a.env").write_text("LD_PRELOAD=/tmp/other.so\n")
        with pytest.raises(ConfigError, match="not what was shown any more"):
            await reviewer.approve("a", review.seal)
        state = host.snapshot().model.server("a")
        assert state is not None
        assert state.phase == "untrusted"
