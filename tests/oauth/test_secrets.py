"""No token, code, verifier or client secret is in any output: logs, snapshots, reprs, errors, config, what the verbs print."""

from __future__ import annotations

import http.client
import json
import logging
import os
import subprocess
import sys
import traceback
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
import trio
from playbill.actors import Config, LoginFailed, OAuth, ServerEntry
from playbill.actors.edge.auth.handlers import Handlers
from playbill.actors.edge.auth.logins import open_logins

from .. import forked
from ..telemetry.conftest import Watch, watch  # noqa: F401
from .conftest import PATIENCE, STATIC, STATIC_SECRET, Authority, OnStage, browse_to_redirect

LOGGERS = ("", "playbill", "mcp", "httpx2", "httpcore2", "client", "trio")


class Heard:
    """All that could be read by somebody, and all that nobody may."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.secrets: set[str] = set()

    def know(self, authority: Authority) -> None:
        stats = authority.stats()
        self.secrets |= {each for each in (*stats["tokens"], *stats["bearers"], *stats["verifiers"]) if each}
        self.secrets |= {each for each in stats["clients"].values() if each}

    def raised(self, error: BaseException) -> None:
        """An exception as it is shown by whatever shows it: its words, its repr, its traceback with all it came of."""
        self.said += [str(error), repr(error), *traceback.format_exception(error)]

    def check(self) -> None:
        assert len(self.secrets) > 4
        text = "\n".join(self.said)
        assert len(text) > 1000
        assert [each for each in self.secrets if each in text] == []


def _redirect(url: str) -> str:
    """Where a browser is redirected to that logs nothing itself."""
    where = urlsplit(url)
    connection = http.client.HTTPConnection(where.netloc, timeout=PATIENCE)
    try:
        connection.request("GET", f"{where.path}?{where.query}")
        return str(connection.getresponse().headers["location"])
    finally:
        connection.close()


async def test_nothing_that_is_said_holds_a_secret(
    authority: Authority,
    on_stage: OnStage,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    capfd: Any,
    watch: Watch,  # noqa: F811
) -> None:
    for name in LOGGERS:
        if name != "playbill":  # which `watch` has set, and sets back before this would
            caplog.set_level(logging.DEBUG, name or None)
    heard = Heard()
    # So that it is given a client secret of its own, which is one more.
    authority.set(metadata={"token_endpoint_auth_methods_supported": ["client_secret_post"]})

    async def open_url(url: str) -> None:
        redirect = await trio.to_thread.run_sync(_redirect, url)
        answers.append(redirect)
        heard.secrets.add(parse_qs(urlsplit(redirect).query)["code"][0])

    answers: list[str] = []
    async with on_stage() as stage:

        async def listen() -> None:
            async for snapshot in stage.host.changes():
                heard.said += [repr(snapshot), str(snapshot), json.dumps(snapshot.model.config_warnings)]

        async with trio.open_nursery() as nursery:
            nursery.start_soon(listen)
            await stage.until("needs_auth")
            await stage.login(open_url=open_url, wait_for_callback=lambda: answers[-1])
            await stage.until("ready")
            heard.know(authority)
            heard.said += [repr(stage.host), repr(stage.host.tree()), repr(stage.host.journal("web"))]
            authority.set(do=["revoke_access"])
            await stage.call(n=1)
            heard.know(authority)
            authority.set(do=["revoke_access"], token_status=500)
            with pytest.raises(AssertionError) as down:
                await stage.call(n=1)
            heard.raised(down.value)
            authority.set(token_status=None, do=["revoke_all"])
            with pytest.raises(Exception, match="401") as ended:
                await stage.call(n=1)
            heard.raised(ended.value)
            await stage.until("needs_auth")
            authority.set(deny=True)
            with pytest.raises(LoginFailed) as refused:
                await stage.login(
                    open_url=lambda url: answers.append("/?error=access_denied&state=x"),
                    wait_for_callback=lambda: answers[-1],
                )
            heard.raised(refused.value)
            nursery.cancel_scope.cancel()
    heard.said += map(logging.Formatter().format, caplog.records)
    told = watch.everything()
    assert "playbill.connect" in told  # it is looked for where there is something
    assert "tools/call" in told
    heard.said.append(told)
    heard.said += list(capfd.readouterr())
    heard.check()
    # The folder of the logins is the only place.
    held = [
        path for path in tmp_path.rglob("*") if path.is_file() and any(s in path.read_text() for s in heard.secrets)
    ]
    assert {path.parent.name for path in held} <= {"logins"}


async def test_a_server_that_repeats_the_token_when_it_refuses_does_not_make_it_seen(
    authority: Authority, on_stage: OnStage
) -> None:
    oauth = OAuth(grant="client_credentials", client_id=STATIC, client_secret=STATIC_SECRET, issuer=authority.issuer)
    authority.set(repeat=True)
    async with on_stage(oauth=oauth) as stage:
        state = await stage.until_that(lambda state: state.error is not None and "you sent" in state.error)
        assert "you sent ***" in str(state.error)
        assert "access-" not in str(state.error)


def test_what_the_verbs_print_holds_none_either(authority: Authority, tmp_path: Path) -> None:
    config = tmp_path / "mcp.json"
    config.write_text(json.dumps({"mcpServers": {"web": {"url": authority.url}}}))
    written = config.read_bytes()
    environ = os.environ | {"XDG_STATE_HOME": str(tmp_path / "state"), "HOME": str(tmp_path)}

    def playbill(*args: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "playbill.actors.cli", *args, "--config", str(config)]
        return forked.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, env=environ, timeout=120)

    async def log_in() -> None:
        async def answer() -> str:
            return await browse_to_redirect(urls[0])

        urls: list[str] = []
        async with open_logins(tmp_path / "state" / "playbill" / "logins") as logins:
            await logins.log_in(ServerEntry("web", url=authority.url), Handlers(urls.append, answer))

    trio.run(log_in)
    heard = Heard()
    heard.know(authority)
    for args in (
        ("list", "--json"),
        ("call", "web/echo", '{"n": 7}', "--verbose", "--timeout", "60"),
        ("logout", "web", "--json", "--verbose"),
    ):
        done = playbill(*args)
        heard.know(authority)
        heard.said += [done.stdout, done.stderr]
        assert done.returncode == 0, done.stderr
    heard.said += ["x" * 1000]
    heard.secrets |= {"nothing-1", "nothing-2"}
    heard.check()
    assert config.read_bytes() == written


def test_a_config_value_shows_no_client_secret() -> None:
    entry = ServerEntry("web", url="https://a/mcp", oauth=OAuth(client_id="a", client_secret=STATIC_SECRET))
    assert STATIC_SECRET not in repr(entry)
    assert STATIC_SECRET not in repr(Config((entry,)))
