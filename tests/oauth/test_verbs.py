"""``playbill login`` and ``logout``: with a browser elsewhere, a pasted URL, and what goes wrong, each as a person meets it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest
import trio
from jsonschema import Draft202012Validator
from playbill.actors.cli import logins as verbs
from playbill.actors.cli.app import run
from playbill.actors.edge.auth import keeper as keeping

from ..forked import Forked
from .conftest import PATIENCE, Authority, OnStage, browse, browse_to_redirect

SCHEMA = json.loads((Path(__file__).resolve().parents[2] / "docs" / "cli.schema.json").read_text("utf-8"))


@pytest.fixture
def config(authority: Authority, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A config with the server ``web`` behind the login, and no browser on this machine."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"):
        monkeypatch.delenv(name, raising=False)
    path = tmp_path / "mcp.json"
    servers = {
        "web": {"url": authority.url},
        "local": {"command": "true"},
        "mine": {"url": authority.url, "oauth": {"clientId": "a"}},
        "header": {"url": authority.url, "headers": {"authorization": "Bearer old"}},
        "without": {"url": authority.url, "oauth": False},
        "plain": {"url": "http://mcp.invalid/mcp"},
    }
    path.write_text(json.dumps({"mcpServers": servers}))
    return path


class Login:
    """A running ``playbill login``."""

    def __init__(self, process: Forked) -> None:
        self.process = process
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        self.stdin, self._stdout, self._stderr = (
            trio.lowlevel.FdStream(os.dup(each.fileno())) for each in (process.stdin, process.stdout, process.stderr)
        )
        for each in (process.stdin, process.stdout, process.stderr):
            each.close()
        self.said = ""
        self.out = ""

    async def url(self) -> str:
        """The URL that is printed."""
        with trio.fail_after(PATIENCE):
            while not (lines := [line for line in self.said.split("\n")[:-1] if line.startswith("http")]):
                part = await self._stderr.receive_some(4096)
                assert part, self.said
                self.said += part.decode()
        return lines[0]

    async def end(self) -> int:
        with trio.fail_after(PATIENCE):
            async for part in self._stdout:
                self.out += part.decode()
            async for part in self._stderr:
                self.said += part.decode()
            code = await trio.to_thread.run_sync(self.process.wait)
        for each in (self.stdin, self._stdout, self._stderr):
            await each.aclose()
        return code


async def start(config: Path, *more: str) -> Login:
    command = [sys.executable, "-m", "playbill.actors.cli", "login", "web", "--config", str(config), *more]
    pipe = subprocess.PIPE
    return Login(await trio.to_thread.run_sync(lambda: Forked(command, stdin=pipe, stdout=pipe, stderr=pipe)))


async def test_a_login_at_the_command_line_is_noticed_by_a_host_that_waits_for_it(
    config: Path, on_stage: OnStage, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(keeping, "POLL_SECONDS", 0.05)
    async with on_stage(tmp_path / "state" / "playbill" / "logins") as stage:
        await stage.until("needs_auth")
        login = await start(config, "--json")
        await browse(await login.url())
        assert await login.end() == 0  # though it was waiting for something to be pasted
        assert "Fatal" not in login.said
        said = json.loads(login.out)
        Draft202012Validator({"$defs": SCHEMA["$defs"], "$ref": "#/$defs/login"}).validate(said)
        assert (said["server"], said["scopes"], said["renews"]) == ("web", ["use"], True)
        await stage.until("ready")
        assert await stage.call(n=1) == 1


async def test_a_url_is_pasted_where_the_browser_is_elsewhere_and_a_wrong_one_ends_it(config: Path) -> None:
    for wrong in (False, True):
        login = await start(config, "--no-browser")
        redirect = await browse_to_redirect(await login.url())
        if wrong:
            redirect = redirect.replace("state=", "state=x")
        await login.stdin.send_all(f"\n{redirect}\n".encode())
        code = await login.end()
        last = login.said.strip().split("\n")[-1]
        if wrong:
            assert code == 4
            assert last.startswith("playbill: server 'web' is not logged in to: the answer is not of this login")
        else:
            assert code == 0
            assert re.fullmatch(r"logged in to 'web' at 127\.0\.0\.1:\d+; scopes: use\n", login.out)
        assert "Traceback" not in login.said


@pytest.mark.parametrize(
    ("args", "code", "words"),
    [
        (("login", "wbe"), 2, "no server named 'wbe' is configured"),
        (("login", "local"), 4, "it is no remote server"),
        (("logout", "local"), 4, "it is no remote server"),
        (("login",), 2, "NAME"),
        (("login", "plain"), 4, "is not asked over https: write https://"),
        (("tools",), 4, "Authorization header was refused: renew it, or remove the header"),
        (("call", "without/echo"), 4, "its entry has no login (oauth: false, or a headers helper)"),
    ],
)
def test_what_cannot_be_logged_in_to_is_told_in_one_line(
    config: Path, capsys: pytest.CaptureFixture[str], args: tuple[str, ...], code: int, words: str
) -> None:
    assert run([*args, "--config", str(config)]) == code
    said = capsys.readouterr().err
    assert words in said
    assert said.count("\n") == 1 or args == ("tools",)


def test_logging_out_of_what_was_not_logged_in_to_is_no_error(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["logout", "web", "--config", str(config)]) == 0
    assert capsys.readouterr().out == "'web' was not logged in to\n"


def test_a_list_says_what_needs_a_login_as_far_as_it_can_tell(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["list", "--config", str(config), "--json"]) == 0
    found = {each["name"]: each["login"] for each in json.loads(capsys.readouterr().out)["servers"]}
    assert found == dict.fromkeys(("web", "local", "header", "without", "plain")) | {"mine": "needed"}
    assert run(["list", "--config", str(config)]) == 0
    said = capsys.readouterr()
    assert "needs login" in said.out
    assert "server 'mine': needs login — run `playbill login mine`" in said.err


def test_check_says_what_needs_a_login_and_where_that_is_written(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["check", "--config", str(config), "--json"]) == 0
    found = [each for each in json.loads(capsys.readouterr().out)["findings"] if "login" in each["message"]]
    assert [(each["severity"], each["server"], each["line"]) for each in found] == [("warning", "mine", 1)]
    assert found[0]["message"] == "needs login — run `playbill login mine`"
    assert run(["check", "--config", str(config), "--strict", "--quiet"]) == 3
    assert "mcpServers.mine: warning: needs login — run `playbill login mine`" in capsys.readouterr().out


def test_a_server_that_refuses_us_says_how_to_log_in_wherever_it_is_asked_about(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for args in (("tools",), ("why", "web"), ("why", "web/echo"), ("call", "web/echo", "{}")):
        assert run([*args, "--config", str(config)]) != 0
        said = capsys.readouterr()
        assert "needs login: HTTP 401 Unauthorized: it wants a login" in said.out + said.err, args
        assert "playbill login web" in said.out + said.err, args


def test_a_browser_is_opened_where_there_is_one(
    config: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def opened(url: str) -> bool:
        trio.run(browse, url)
        return True

    opener: Callable[[str], Any] = opened
    monkeypatch.setattr(verbs, "_has_browser", lambda: True)
    monkeypatch.setattr(verbs.webbrowser, "open", opener)
    assert run(["login", "web", "--config", str(config)]) == 0
    said = capsys.readouterr()
    assert re.fullmatch(r"logged in to 'web' at 127\.0\.0\.1:\d+; scopes: use\n", said.out)
    assert "the browser was opened at 127.0.0.1:" in said.err


@pytest.fixture
def acts(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[str], Any]], None]:
    """Has the person at the browser do something with the URL, in the test's own process."""

    def set_act(act: Callable[[str], Any]) -> None:
        monkeypatch.setattr(verbs, "_has_browser", lambda: True)
        monkeypatch.setattr(verbs.webbrowser, "open", lambda url: trio.run(act, url) and True)

    return set_act


def test_an_answer_of_another_login_is_told_at_once_and_the_page_of_a_no_says_where_to_look(
    config: Path, authority: Authority, acts: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    pages = []

    async def twice(url: str) -> bool:
        redirect = await browse_to_redirect(url)
        async with httpx2.AsyncClient(timeout=PATIENCE, trust_env=False) as client:
            for each in (redirect.replace("state=", "state=x"), redirect.replace("state=", "state=y"), redirect):
                pages.append((await client.get(each)).text)
        return True

    acts(twice)
    authority.set(deny=True)
    assert run(["login", "web", "--config", str(config)]) == 4
    said = capsys.readouterr().err
    assert said.count("an answer with another state came and was ignored") == 1
    assert said.index("another state") < said.index("access_denied")
    assert ["Nothing was done" in each for each in pages] == [True, True, False]
    assert "Not logged in" in pages[2]
    assert all("see the terminal" in each for each in pages)


def test_the_time_is_the_person_s_and_counts_from_the_url(
    config: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(verbs.sys, "stdin", None)
    assert run(["login", "web", "--timeout", "0.001", "--config", str(config)]) == 4
    said = capsys.readouterr().err
    assert "/authorize?" in said
    assert "nobody logged in within 0.001 s" in said


def test_what_was_not_granted_is_told_and_what_was_is_asked_for_again(
    config: Path, authority: Authority, acts: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    acts(browse)
    assert run(["login", "web", "--scopes", "use admin", "--config", str(config)]) == 0
    said = capsys.readouterr()
    assert said.out.endswith("; scopes: use; not granted: admin\n")
    assert "does not know the client" not in said.err  # it has registered itself just now
    authority.set(scopes=None)
    for scopes in (["--scopes", "use admin"], []):
        assert run(["login", "web", *scopes, "--config", str(config)]) == 0
        said = capsys.readouterr()
        assert said.out.endswith("; scopes: use admin\n")
        assert "if the page does not know the client, end this, run `playbill logout web` and log in anew" in said.err
    assert authority.stats()["asked_scopes"] == ["use admin"] * 3
    assert authority.seen("register") == 1
    assert run(["login", "web", "--scopes", "use", "--config", str(config)]) == 0
    assert authority.stats()["asked_scopes"][-1] == "use"
    assert run(["list", "--config", str(config)]) == 0
    assert re.search(r"web .* logged in ", capsys.readouterr().out)
    assert run(["logout", "web", "--config", str(config)]) == 0
    assert run(["login", "web", "--config", str(config)]) == 0
    assert authority.seen("register") == 2  # so the advice is true


@pytest.mark.parametrize("revokes", [False, True])
def test_a_logout_that_could_not_be_told_says_how_long_the_token_lives(
    config: Path, authority: Authority, acts: Callable[..., None], capsys: pytest.CaptureFixture[str], revokes: bool
) -> None:
    acts(browse)
    known = {"token_endpoint_auth_methods_supported": ["client_secret_post"]}
    authority.set(metadata=known if revokes else {"revocation_endpoint": None})
    assert run(["login", "web", "--config", str(config)]) == 0
    capsys.readouterr()
    assert run(["logout", "web", "--config", str(config)]) == 0
    said = capsys.readouterr()
    assert said.out == "logged out of 'web'\n"
    words = r"could not be revoked at the authorization server: the access token is good for (59|60) min more"
    assert said.err == "" if revokes else re.search(words, said.err)
