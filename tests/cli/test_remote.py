"""Remote servers on the command line and on the picker's rows: shown as local ones are, and no secret of them anywhere."""

from __future__ import annotations

import json
import re
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import trio
from playbill.actors import Config, ServerEntry, open_host
from playbill.actors.model.snapshot import ServerState, Snapshot
from playbill.actors.picker.details import lines_of_server
from playbill.actors.picker.rows import rows
from playbill.actors.picker.values import ServerRow

from ..faulty_http.server import Web, deed, serving

Playbill = Callable[..., "subprocess.CompletedProcess[str]"]
WriteConfig = Callable[..., Path]

SECRET = "hunter2-s3cret"


@contextmanager
def web_server(**deeds: Any) -> Iterator[Web]:
    """A server over HTTP on loopback, in a thread of its own, for as long as the block."""
    web, up, tokens = Web(), threading.Event(), []
    web.deeds.update(deeds)

    async def main() -> None:
        async with serving(web):
            over = trio.Event()
            tokens.append((trio.lowlevel.current_trio_token(), over))
            up.set()
            await over.wait()

    thread = threading.Thread(target=trio.run, args=(main,))
    thread.start()
    assert up.wait(30)
    try:
        yield web
    finally:
        token, over = tokens[0]
        token.run_sync_soon(over.set)
        thread.join(30)


def test_a_remote_server_is_added_listed_checked_and_called(inside: Playbill, write_config: WriteConfig) -> None:
    config = write_config()
    with web_server() as web:
        url = web.url.replace("http://", f"http://me:{SECRET}@") + f"?token={SECRET}"
        header = f"X-Key: {SECRET}"
        done = [inside("add", "web", url, "--header", header, "--config", config)]
        assert done[0].returncode == 0, done[0]
        entry = json.loads(config.read_text())["mcpServers"]["web"]
        assert (entry["url"], entry["headers"]) == (url, {"X-Key": SECRET})
        shown = f"http://***:***@127.0.0.1:{web.port}/mcp?token=***"
        done += [inside("list", "--config", config), inside("list", "--json", "--config", config)]
        assert re.search(rf"web +http +{re.escape(shown)}", done[1].stdout), done[1].stdout
        told = json.loads(done[2].stdout)["servers"][0]
        assert (told["kind"], told["url"], told["headers"]) == ("http", shown, ["X-Key"])
        done += [inside("check", "--config", config)]
        assert done[-1].returncode == 0, done[-1].stdout
        done += [inside("call", "web/echo", '{"text": "hello"}', "--config", config)]
        assert (done[-1].returncode, "hello" in done[-1].stdout) == (0, True), done[-1]
        assert any(each.get("x-key") == SECRET for each in web.headers)
        done += [inside("why", "web", "--config", config), inside("tools", "--verbose", "--config", config)]
        assert SECRET not in "".join(each.stdout + each.stderr for each in done)


def test_a_server_that_wants_no_login_says_so_and_one_that_wants_more_names_the_command(
    inside: Playbill, write_config: WriteConfig
) -> None:
    with web_server() as web:
        config = write_config(web={"url": web.url})
        done = inside("login", "web", "--no-browser", "--config", config)
        assert (done.returncode, "it wants no login: it answers without one" in done.stderr) == (4, True), done
        more = {"WWW-Authenticate": 'Bearer error="insufficient_scope", scope="admin"'}
        web.deeds["tools/call"] = deed(status=403, headers=more)
        done = inside("call", "web/echo", '{"text": "hello"}', "--config", config)
        assert "it lacks admin" in done.stdout
        assert "reported an error — run `playbill login web`" in done.stderr


@pytest.mark.parametrize("words", [["--url"], []])
def test_how_it_is_spoken_to_may_be_said(inside: Playbill, write_config: WriteConfig, words: list[str]) -> None:
    config = write_config()
    assert inside("add", "a", *words, "https://a.example/sse", "--type", "sse", "--config", config).returncode == 0
    assert json.loads(config.read_text())["mcpServers"]["a"]["type"] == "sse"
    assert " sse " in inside("list", "--config", config).stdout
    for wrong in (["--", "x", "--type", "sse"], ["--type", "sse", "--", "x"], ["--header", "A: b", "--", "x"]):
        done = inside("add", "b", "--config", config, *wrong)
        assert (done.returncode == 0) == (wrong[0] == "--"), done
    assert (
        "--type is for a server with a URL"
        in inside("add", "c", "--type", "http", "--config", config, "--", "x").stderr
    )


async def state_of(entry: ServerEntry, holds: Callable[[ServerState], bool]) -> tuple[Snapshot, ServerState, float]:
    async with open_host(Config((entry,))) as host:
        with trio.fail_after(30):
            async for snapshot in host.changes():
                state = snapshot.model.server(entry.name)
                assert state is not None
                if holds(state):
                    return snapshot, state, trio.current_time()
    raise AssertionError("it closed")


async def test_a_status_and_the_time_that_the_server_named_are_told() -> None:
    web = Web()
    web.deeds["*"] = deed(status=503, headers={"Retry-After": "77"})
    async with serving(web):
        entry = ServerEntry("web", url=web.url, headers={"X-Key": SECRET})
        snapshot, state, now = await state_of(entry, lambda state: state.phase == "backing_off")
        assert state.retry_asked
        assert "HTTP 503 Service Unavailable" in (state.error or "")
        row = rows(snapshot, now)[1]
        assert isinstance(row, ServerRow)
        assert row.state == "retry in 77 s as the server asks (1st of 5)"
        assert row.remote == f"http {web.url}"
        lines = lines_of_server(snapshot, state, now)
        assert "backing off (attempt 1 of 5 in 77 s as the server asks): " in lines[0]
        assert any(re.match(r"kind +http \(remote\)$", line) for line in lines)
        assert any(re.match(r"headers +X-Key \(what they hold is not shown\)$", line) for line in lines)
        assert SECRET not in "".join(lines)


async def test_a_wait_that_is_our_own_is_not_told_as_theirs() -> None:
    web = Web()
    web.deeds["*"] = deed(status=500)
    async with serving(web):
        _, state, _ = await state_of(ServerEntry("web", url=web.url), lambda state: state.phase == "backing_off")
        assert not state.retry_asked


@pytest.mark.parametrize(
    ("headers", "row_says", "why_says"),
    [
        ({}, "needs login — playbill login web", "log in (`playbill login web`)"),
        (
            {"authorization": f"Bearer {SECRET}"},
            "needs login — correct its headers, then press R",
            "correct its login (the headers of its entry) and restart it",
        ),
    ],
)
async def test_who_wants_a_login_says_what_to_do(headers: dict[str, str], row_says: str, why_says: str) -> None:
    web = Web()
    web.deeds["*"] = deed(status=401)
    async with serving(web):
        entry = ServerEntry("web", url=web.url, headers=headers)
        snapshot, state, now = await state_of(entry, lambda state: state.phase == "needs_auth")
        row = rows(snapshot, now)[1]
        assert isinstance(row, ServerRow)
        assert row.state == row_says
        assert why_says in lines_of_server(snapshot, state, now)[0]
