"""The verbs of a person's logins at remote servers: `login` and `logout`. They start no server.

Theory of operation. The login is kept where every host of this user looks: one that runs, and waits for it, connects by itself.
The browser is opened where there is one; else the URL is printed. The answer comes to a port of 127.0.0.1, or, when the browser
runs elsewhere, from the person: the URL that it was sent to in the end, pasted here.
"""

from __future__ import annotations

import math
import os
import shlex
import sys
import time
import webbrowser
from collections.abc import Sequence
from typing import Any

import trio

from ..edge.auth.handlers import Handlers, Note
from ..edge.auth.hub import LOGIN_SECONDS
from ..edge.auth.logins import LoggedIn, open_logins
from ..edge.auth.urls import shown
from ..model.config import Config, ServerEntry
from ..model.nearest import nearest
from ..model.plain import quoted
from .configs import load
from .errors import Exit, diagnose
from .interrupt import run
from .names import unknown
from .options import EditOptions
from .render import print_json
from .waiting import working

__all__ = ["log_in", "log_out"]

SCHEMA = 1

_LONGEST = 64 * 1024


def log_in(name: str, *, browser: bool, scopes: Sequence[str], options: EditOptions) -> int:
    """Log in to a server.

    Args:
        name: of the server.
        browser: open one, if there is one here.
        scopes: to ask for instead of what the server says it takes.
        options: which config, and how to tell. ``timeout``: seconds for the person.

    Raises:
        UnknownServer: there is no such server.
        LoginFailed: there is no login to be had, or nobody logged in.
        ConfigError: the config cannot be read.
    """
    entry = _entry(load(options.config, options.scope), name)

    async def verb() -> int:
        person = _Person(name, browser and _has_browser())
        pastes = person.hears and (sys.stdin.isatty() or not person.opens)
        handlers = Handlers(person.open_url, person.paste if pastes else None, tell=person.tell)
        async with open_logins() as logins:
            seconds = LOGIN_SECONDS if options.timeout is None else options.timeout
            done = await logins.log_in(entry, handlers, scopes=tuple(scopes), seconds=seconds)
        if options.json:
            print_json({"schema": SCHEMA, "verb": "login", "server": name, **_as_json(done)})
        elif not options.quiet:
            print(_words(name, done))
        return Exit.OK

    return run(verb)


def log_out(name: str, *, options: EditOptions) -> int:
    """Forget the login of a server, and have it revoked where that is possible.

    Args:
        name: of the server.
        options: which config, and how to tell.

    Raises:
        UnknownServer, ConfigError: as `log_in`.
        LoginFailed: it cannot be forgotten, or there can be none.
    """
    entry = _entry(load(options.config, options.scope), name)

    async def verb() -> int:
        async with open_logins() as logins, working(lambda: "logging out"):
            done = await logins.log_out(entry)
        if options.json:
            print_json({"schema": SCHEMA, "verb": "logout", "server": name, "was_logged_in": done.there})
        elif not options.quiet:
            print(f"logged out of {quoted(name)}" if done.there else f"{quoted(name)} was not logged in to")
        if done.lives_until is not None:
            diagnose(_still_lives(done.lives_until))
        return Exit.OK

    return run(verb)


def _entry(config: Config, name: str) -> ServerEntry:
    entry = config.get(name)
    if entry is None:
        raise unknown(config, name, nearest(name, [each.name for each in config.servers]))
    return entry


def _has_browser() -> bool:
    """Whether a browser can be opened that is no program of this very terminal."""
    shown = sys.platform in ("darwin", "win32") or any(map(os.environ.get, ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")))
    try:
        return shown and webbrowser.get() is not None
    except webbrowser.Error:
        return False


class _Person:
    """Whoever logs in, at this terminal.

    Args:
        name: of the server.
        opens: open the browser.
    """

    def __init__(self, name: str, opens: bool) -> None:
        self.name = name
        self.opens = opens
        try:
            self.hears = sys.stdin is not None and sys.stdin.fileno() >= 0
        except (OSError, ValueError):  # it was closed, or is none
            self.hears = False

    async def open_url(self, url: str) -> None:
        """Have the browser opened, or say where to go."""
        where = shown(url)
        opened = self.opens and await trio.to_thread.run_sync(webbrowser.open, url, abandon_on_cancel=True)
        if opened:
            diagnose(f"the browser was opened at {where}; if it shows nothing, go to:")
        else:
            diagnose(f"to log in at {where}, go to:")
        # As it is: a URL that is wrapped or cut cannot be opened.
        print(url, file=sys.stderr, flush=True)

    def tell(self, note: Note) -> None:
        """Say at once what else there is to know, so that nobody waits for nothing."""
        if note == "another state":
            diagnose("an answer with another state came and was ignored: it is of another login; the newest URL counts")
        else:
            again = f"`playbill logout {shlex.quote(self.name)}`"
            diagnose(f"if the page does not know the client, end this, run {again} and log in anew: it registers anew")

    async def paste(self) -> str:
        """What the person pastes; waits for ever once nobody can."""
        if sys.stdin.isatty():
            diagnose("if the browser runs elsewhere, paste the URL that it was sent to in the end:")
        # Not by `sys.stdin`: a thread that waits in there when the program ends would break its end.
        said = b""
        while part := await trio.to_thread.run_sync(os.read, sys.stdin.fileno(), 65536, abandon_on_cancel=True):
            said = (said + part)[-_LONGEST:]
            *lines, _ = said.split(b"\n")
            if (line := next((each.strip() for each in lines if each.strip()), None)) is not None:
                return line.decode("utf-8", "replace")
        if said.strip():
            return said.strip().decode("utf-8", "replace")
        await trio.sleep_forever()
        raise AssertionError


def _words(name: str, done: LoggedIn) -> str:
    where = "" if done.issuer is None else f" at {shown(done.issuer)}"
    scope = "" if done.scope is None else f"; scopes: {done.scope}"
    ends = ""
    if not done.renews and done.expires_at is not None:
        ends = f"; it ends in {max(done.expires_at - time.time(), 0) / 60:.0f} min"
    missing = f"; not granted: {' '.join(done.missing)}" if done.missing else ""
    return f"logged in to {quoted(name)}{where}{scope}{missing}{ends}"


def _still_lives(until: float) -> str:
    if until == math.inf:
        how_long = "for how long is not known"
    elif until <= time.time():
        how_long = "the access token has ended, and the refresh token is good for as long as the server says"
    else:
        how_long = f"the access token is good for {(until - time.time()) / 60:.0f} min more"
    return f"forgotten here, but it could not be revoked at the authorization server: {how_long}"


def _as_json(done: LoggedIn) -> dict[str, Any]:
    return {
        "issuer": done.issuer,
        "scopes": (done.scope or "").split(),
        "expires_at": done.expires_at,
        "renews": done.renews,
        "not_granted": list(done.missing),
    }
