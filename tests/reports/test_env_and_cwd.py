"""What a server inherits, where it runs, and what its variables stand for."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from playbill.actors import open_host
from playbill.actors.edge.config.expand import INHERITED, expand
from playbill.actors.edge.config.read import read_config
from playbill.supervision import Backoff

from .conftest import PATIENCE, SMALL, Project, said, until

SHOWS = """
import os

def call(id_, name):
    if name == "exit":
        os._exit(1)
    write(line(id=id_, result=text(json.dumps([dict(os.environ), os.getcwd(), sys.argv[1:]]))))

serve(lambda cursor: listed("show", "exit"), call)
"""
QUICK = Backoff(base=0.01, max=0.1, reset_after=30.0)


def shows(*args: str, **keys: Any) -> dict[str, Any]:
    """A server that shows its environment, folder and arguments, or exits."""
    return {"command": sys.executable, "args": ["-I", "-S", "-c", SMALL + SHOWS, *args], **keys}


@pytest.mark.parametrize(
    ("block", "own"),
    [
        ({"env": {"X": "${env:X}"}}, {"X": "passed on by name"}),
        ({"env": {}}, {}),
        ({"env": None}, {}),
        ({}, {}),
    ],
)
async def test_b041_a_server_gets_the_documented_few_and_what_its_entry_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: dict[str, Any], own: dict[str, str]
) -> None:
    for name in INHERITED:
        monkeypatch.setenv(name, os.environ.get(name, "C" if name == "LC_ALL" else f"/the/{name}"))
    monkeypatch.setenv("X", "passed on by name")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "nobody asked for it")
    path = tmp_path / "mcp.json"
    path.write_text(json.dumps({"mcpServers": {"a": shows(**block)}}))
    async with open_host(path) as host:
        assert await host.ready(timeout=PATIENCE)
        environ, *_ = json.loads(said(await host.call("mcp__a__show", timeout=PATIENCE)))
    environ.pop("LC_CTYPE", None)  # Python sets it for itself
    assert environ == {name: os.environ[name] for name in INHERITED} | own


@pytest.mark.parametrize("kind", ["is missing", "is a file"])
async def test_b042_a_folder_that_cannot_be_entered_is_named_and_not_the_command(project: Project, kind: str) -> None:
    folder = project.folder / "work"
    if kind == "is a file":
        folder.write_text("")
    project.write(a=shows(cwd=str(folder)))
    async with open_host(project.path, backoff=QUICK) as host:
        snapshot = await until(host, lambda snapshot: snapshot.model.server("a").error)
        error = snapshot.model.server("a").error
        assert error is not None
        assert error.startswith(f"cwd: {str(folder)!r} ")
        assert sys.executable not in error


async def test_b043_each_start_is_expanded_and_what_is_shown_is_as_written(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    binary = Path(sys.executable)
    monkeypatch.setenv("BIN_FOLDER", str(binary.parent))
    monkeypatch.setenv("WORD", "one")
    (project.folder / "work").mkdir()
    server = shows("${WORD}", cwd="${workspaceFolder}/work")
    server["command"] = "${BIN_FOLDER}/" + binary.name
    project.write(a=server)
    async with open_host(project.path, backoff=QUICK) as host:
        for word in ("one", "two", "three"):
            assert await host.ready(timeout=PATIENCE)
            _, folder, args = json.loads(said(await host.call("mcp__a__show", timeout=PATIENCE)))
            assert (folder, args) == (os.path.realpath(project.folder / "work"), [word])
            state = host.snapshot().model.server("a")
            assert (state.command, state.args[-1]) == (server["command"], "${WORD}")
            monkeypatch.setenv("WORD", {"one": "two", "two": "three"}.get(word, "four"))
            with pytest.raises(Exception, match="exited"):
                await host.call("mcp__a__exit", timeout=PATIENCE)
            restarts = state.restarts
            await until(host, lambda snapshot, before=restarts: snapshot.model.server("a").restarts > before)


FIELDS = ("command", "args", "env", "cwd", "envFile", "url", "headers")


@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize(
    ("written", "means"),
    [
        ("${workspaceFolder}", "{folder}"),
        ("${workspaceFolderBasename}", "{name}"),
        ("${userHome}", "/home/me"),
        ("${WORD}", "word"),
        ("${env:WORD}", "word"),
        ("${NONE:-fallback}", "fallback"),
        ("${input:word}", "supplied"),
    ],
)
def test_b045_a_variable_stands_for_the_same_in_every_field(
    tmp_path: Path, field: str, written: str, means: str
) -> None:
    value = means.format(folder=tmp_path, name=tmp_path.name)
    text = f"https://h/<{written}>" if field == "url" else f"<{written}>"
    entry: dict[str, Any] = {"url": "https://h"} if field in ("url", "headers") else {"command": "c"}
    entry[field] = {"args": [text], "env": {"K": text}, "headers": {"K": text}}.get(field, text)
    if field == "envFile":
        file = tmp_path / f"<{value}>"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("FROM=file\n")
    config = read_config(json.dumps({"mcpServers": {"x": entry}}), str(tmp_path / "mcp.json"))
    out = expand(config.servers[0], environ={"WORD": "word", "HOME": "/home/me"}, inputs={"word": "supplied"})
    got = {
        "command": out.command,
        "args": "".join(out.args),
        "env": out.env.get("K"),
        "cwd": (out.cwd or "").removeprefix(f"{tmp_path}/"),
        "envFile": f"<{value}>" if out.env.get("FROM") == "file" else None,
        "url": (out.url or "").removeprefix("https://h/"),
        "headers": out.headers.get("K"),
    }
    assert got[field] == f"<{value}>"
