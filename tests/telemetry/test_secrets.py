"""No secret is told: all spans, metrics and records of runs that are full of them are searched for the values."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

import pytest
from playbill.actors import Config, ConfigError, ServerDied, ServerEntry, ServerUnavailable, open_host
from playbill.supervision import Backoff

from ..faulty_http.server import Web, deed, serving
from .conftest import Watch
from .test_real_servers import PATIENCE, said, stdio

LITERAL, EXPANDED, ARGUMENT = "s3cr3t-l1t3ral", "s3cr3t-expand3d", "s3cr3t-argum3nt"
SECRETS = (LITERAL, EXPANDED, ARGUMENT)
NEVER = Backoff(base=600.0, max=600.0)


def found(watch: Watch) -> list[str]:
    """The secrets that were told."""
    everything = watch.everything()
    assert "tools/call" in everything  # it is looked for where there is something
    assert "playbill.connect" in everything
    return [secret for secret in SECRETS if secret in everything]


async def test_nothing_of_an_environment_or_of_arguments_is_told(watch: Watch, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FROM_OUTSIDE", EXPANDED)
    env = {"SECRET_LITERAL": LITERAL, "SECRET_EXPANDED": "${FROM_OUTSIDE}"}
    async with open_host(Config((stdio(env=env),)), backoff=NEVER) as host:
        await host.ready(timeout=PATIENCE)
        betrayed = said(await host.call_tool("local", "fail", {"word": ARGUMENT}, timeout=PATIENCE))
        assert LITERAL in betrayed
        assert EXPANDED in betrayed
        await host.call_tool("local", "meta", {"word": ARGUMENT}, timeout=PATIENCE)
        await host.call_tool("local", "refuse", {"word": ARGUMENT}, timeout=PATIENCE)
        with pytest.raises(ServerDied):
            await host.call_tool("local", "die", {"word": ARGUMENT}, timeout=PATIENCE)
        async for snapshot in host.changes():
            if snapshot.model.servers[0].phase == "backing_off":
                break
    assert watch.events("lost")
    assert found(watch) == []


@pytest.mark.parametrize(
    "answers",
    [
        {},
        {"tools/call": deed(status=500, body=f'{{"error": "{LITERAL} {EXPANDED} {ARGUMENT}"}}')},
        {"tools/call": deed("reset")},
        {"tools/call": deed(status=401, headers={"WWW-Authenticate": f'Bearer realm="{LITERAL} {EXPANDED}"'})},
        {"tools/call": deed(status=307, headers={"Location": f"https://{LITERAL}.example/{EXPANDED}"})},
        {"tools/call": deed("html")},
    ],
    ids=["good", "500", "reset", "401", "redirect", "html"],
)
async def test_nothing_of_headers_or_of_a_url_is_told(
    watch: Watch, monkeypatch: pytest.MonkeyPatch, answers: dict[str, Any]
) -> None:
    monkeypatch.setenv("FROM_OUTSIDE", EXPANDED)
    web = Web()
    async with serving(web):
        where = web.url.replace("://", f"://user:{LITERAL}@") + f"?token={EXPANDED}&key=${{FROM_OUTSIDE}}"
        headers = {"Authorization": f"Bearer {LITERAL}", "X-Api-Key": "${FROM_OUTSIDE}"}
        async with open_host(Config((ServerEntry("web", url=where, headers=headers),)), backoff=NEVER) as host:
            await host.ready(timeout=PATIENCE)
            web.deeds.update(answers)
            with contextlib.suppress(ServerDied, ServerUnavailable):
                await host.call_tool("web", "echo", {"word": ARGUMENT}, timeout=PATIENCE)
            for session in web.sessions:
                assert str(session) not in watch.everything()
    assert found(watch) == []


async def test_nothing_of_a_file_that_cannot_be_read_is_told(watch: Watch, tmp_path: Path) -> None:
    path = tmp_path / "mcp.json"
    path.write_text('{"mcpServers": {}}')
    async with open_host(path) as host:
        entry = {"command": "x", "env": {"TOKEN": LITERAL}, "args": ["--token", EXPANDED]}
        path.write_text(json.dumps({"mcpServers": {"a": entry}})[:-2] + f' "{ARGUMENT}"')
        with pytest.raises(ConfigError):
            await host.reload()
    everything = watch.everything()
    assert "playbill.reload" in everything
    assert [secret for secret in SECRETS if secret in everything] == []
