"""Static logins: headers from the environment, an env file, or a command; and nothing of them is shown."""

from __future__ import annotations

import json
import logging
import sys
from pathlib import Path
from typing import Any

import pytest
import trio
from playbill.actors import ServerDied, open_host
from playbill.actors.edge.config.file import FileStore
from playbill.actors.edge.config.trust import TrustStore, fingerprint
from playbill.actors.edge.wire.remote import helper
from playbill.actors.model.config import ServerEntry
from playbill.actors.model.diff import launch_key
from playbill.actors.server import ServerSettings
from playbill.supervision import Backoff

from .server import Web, deed, serving

PATIENCE = 30.0
TOKEN = "tok-5f2e8a11c93b"


def write(folder: Path, **entry: Any) -> Path:
    path = folder / "mcp.json"
    path.write_text(json.dumps({"mcpServers": {"web": entry}}))
    return path


def command(folder: Path, code: str) -> str:
    """A command line that runs this Python."""
    script = folder / "login.py"
    script.write_text(code)
    return f'"{sys.executable}" -I "{script}"'


def sent(web: Web) -> set[str | None]:
    return {headers.get("authorization") for headers in web.headers}


async def ready(path: Path) -> None:
    async with open_host(path) as host:
        assert await host.ready(timeout=PATIENCE)
        assert TOKEN not in repr(host.snapshot())


@pytest.mark.parametrize("source", ["environment", "env file", "command", "url"])
async def test_a_login_comes_from_the_environment_an_env_file_or_a_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str, caplog: pytest.LogCaptureFixture
) -> None:
    for name in ("", "playbill", "mcp", "httpx2", "httpcore2"):
        caplog.set_level(logging.DEBUG, name or None)
    async with serving(Web()) as web:
        if source == "environment":
            monkeypatch.setenv("WEB_TOKEN", TOKEN)
            path = write(tmp_path, url=web.url, headers={"Authorization": "Bearer ${WEB_TOKEN}"})
        elif source == "url":
            monkeypatch.setenv("WEB_TOKEN", TOKEN)
            headers = {"Authorization": f"Bearer {TOKEN}"}
            path = write(tmp_path, url=web.url + "?key=${WEB_TOKEN}", headers=headers)
        elif source == "env file":
            (tmp_path / ".env").write_text(f"WEB_TOKEN={TOKEN}\n")
            path = write(tmp_path, url=web.url, envFile=".env", headers={"Authorization": "Bearer ${WEB_TOKEN}"})
        else:
            code = f"import json; print(json.dumps({{'authorization': 'Bearer {TOKEN}'}}))"
            headers = {"Authorization": "Bearer old", "X-Other": "kept"}
            path = write(tmp_path, url=web.url, headers=headers, headersHelper=command(tmp_path, code))
        await ready(path)
        assert sent(web) == {f"Bearer {TOKEN}"}
        if source == "command":
            assert {headers.get("x-other") for headers in web.headers} == {"kept"}
    assert TOKEN not in caplog.text


async def test_a_server_that_repeats_its_login_does_not_make_it_seen(tmp_path: Path) -> None:
    code = f"import json; print(json.dumps({{'Authorization': 'Bearer {TOKEN}'}}))"
    async with serving(Web()) as web:
        path = write(tmp_path, url=web.url, headersHelper=command(tmp_path, code))
        error = {"code": -5, "message": f"your token {TOKEN} is not good enough"}
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "error": error})
        web.deeds["tools/list"] = deed(status=400, body=body)
        async with open_host(path, backoff=Backoff(base=600.0, max=600.0)) as host:
            with trio.fail_after(PATIENCE):
                async for snapshot in host.changes():
                    state = snapshot.model.server("web")
                    if state is not None and state.phase == "backing_off":
                        break
            assert state is not None
            assert "your token *** is not good enough" in str(state.error)


async def test_a_login_that_expired_is_had_anew_once_and_one_that_is_wrong_is_told(tmp_path: Path) -> None:
    count = tmp_path / "count"
    code = (
        "import json, pathlib\n"
        f"count = pathlib.Path({str(count)!r})\n"
        "n = int(count.read_text()) + 1 if count.exists() else 1\n"
        "count.write_text(str(n))\n"
        "print(json.dumps({'Authorization': f'Bearer {n}'}))\n"
    )
    async with serving(Web()) as web:
        path = write(tmp_path, url=web.url, headersHelper=command(tmp_path, code))
        async with open_host(path) as host:
            assert await host.ready(timeout=PATIENCE)
            assert sent(web) == {"Bearer 1"}
            web.deeds["tools/call"] = [deed(status=401)]
            with pytest.raises(Exception, match="401"):
                await host.call_tool("web", "echo", timeout=PATIENCE)
            await host.call_tool("web", "echo", timeout=PATIENCE)
            assert sent(web) == {"Bearer 1", "Bearer 2"}
            state = host.snapshot().model.server("web")
            assert state is not None
            assert state.restarts == 0
            web.deeds["*"] = deed(status=401)
            await host.restart("web")
            with trio.fail_after(PATIENCE):
                async for snapshot in host.changes():
                    state = snapshot.model.server("web")
                    if state is not None and state.phase == "needs_auth":
                        break
            assert count.read_text() == "3"


@pytest.mark.parametrize("refused", ["tools/list", "tools/call"])
async def test_a_login_that_never_was_good_enough_is_told_whoever_may_shake_hands(tmp_path: Path, refused: str) -> None:
    code = f"import json; print(json.dumps({{'Authorization': 'Bearer {TOKEN}'}}))"
    async with serving(Web()) as web:
        path = write(tmp_path, url=web.url, headersHelper=command(tmp_path, code))
        web.deeds[refused] = deed(status=401)
        async with open_host(path, settings=ServerSettings(renew_pause=0.0)) as host:
            if refused == "tools/call":
                for _ in range(2):  # the second one with a login that was had anew
                    with pytest.raises(ServerDied, match="401"):
                        await host.call_tool("web", "echo", timeout=PATIENCE)
            with trio.fail_after(PATIENCE):
                async for snapshot in host.changes():
                    state = snapshot.model.server("web")
                    if state is not None and state.phase == "needs_auth":
                        break
            assert state is not None
            assert (state.restarts, state.error) == (0, "HTTP 401 Unauthorized: it wants a login")
            assert web.seen["initialize"] == (1 if refused == "tools/list" else 2)


async def test_a_login_that_expires_again_and_again_is_had_anew_as_often(tmp_path: Path) -> None:
    code = f"import json; print(json.dumps({{'Authorization': 'Bearer {TOKEN}'}}))"
    async with serving(Web()) as web:
        path = write(tmp_path, url=web.url, headersHelper=command(tmp_path, code))
        async with open_host(path, settings=ServerSettings(renew_pause=0.0)) as host:
            for _ in range(3):
                await host.call_tool("web", "echo", timeout=PATIENCE)
                web.deeds["tools/call"] = [deed(status=401)]
                with pytest.raises(ServerDied, match="401"):
                    await host.call_tool("web", "echo", timeout=PATIENCE)
            await host.call_tool("web", "echo", timeout=PATIENCE)
            state = host.snapshot().model.server("web")
            assert state is not None
            assert (state.phase, state.restarts, web.seen["initialize"]) == ("ready", 0, 4)


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (
            "import sys; print('no such account', file=sys.stderr); sys.exit(3)",
            "headersHelper ended with 3: no such account",
        ),
        ("print('a token')", "headersHelper printed no JSON object of strings"),
        ("print('{\"A\": 1}')", "headersHelper printed no JSON object of strings"),
        (
            'print(\'{"A B": "1"}\')',
            "headersHelper printed what cannot be headers: 'A B' cannot be the name of a header",
        ),
        ("while True: print('x' * 1000)", "headersHelper printed more than 65536 bytes"),
        ("import time; time.sleep(3600)", "headersHelper gave no headers within 0.5 s"),
    ],
)
async def test_a_command_that_gives_no_headers_is_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str, words: str
) -> None:
    monkeypatch.setattr(helper, "HELPER_SECONDS", 0.5 if "3600" in code else 20.0)
    path = write(tmp_path, url="http://127.0.0.1:9/mcp", headersHelper=command(tmp_path, code))
    async with open_host(path, backoff=Backoff(base=600.0, max=600.0)) as host:
        with trio.fail_after(PATIENCE):
            async for snapshot in host.changes():
                state = snapshot.model.server("web")
                if state is not None and state.error is not None:
                    break
        assert state is not None
        assert state.error == words


def test_a_command_that_gives_headers_is_part_of_what_is_run_and_approved(tmp_path: Path) -> None:
    plain = ServerEntry("web", url="https://example.com/mcp", source=str(tmp_path / ".mcp.json"))
    with_helper = ServerEntry("web", url=plain.url, headers_helper="./login", source=plain.source)
    assert fingerprint(plain) != fingerprint(with_helper)
    assert launch_key(plain) != launch_key(with_helper)
    (tmp_path / ".mcp.json").write_text(
        json.dumps({"mcpServers": {"web": {"url": plain.url, "headersHelper": "./login"}}})
    )
    store = FileStore(tmp_path / ".mcp.json", trust=TrustStore(tmp_path / "trust.json"))
    entry = store.load().get("web")
    assert entry is not None
    assert not entry.trusted
