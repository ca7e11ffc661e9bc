"""Files that other hosts lost something of: to a toggle, to a rewrite, to a wrong name, to another process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import trio
from playbill.actors import open_host
from playbill.actors.coordinator import Coordinator
from playbill.actors.edge.config import watch
from playbill.actors.edge.config.file import FileStore
from playbill.actors.edge.config.read import read_config
from playbill.actors.house import House
from playbill.actors.testing import ScriptedServers
from playbill.supervision import Cell

from .conftest import PATIENCE, opened, until, virtual_time

SIBLINGS = """{
  "$schema": "https://example.com/schema.json", // as the editor likes it
  "inputs": [{ "id": "key", "type": "promptString", "password": true }],
  "preferences": {"theme": "dark",   "size": 12.50},
  "mcpServers": {
    "a": {"command": "a"},
    "b": {"command": "b"}
  },
  /* measured once */
  "mcpPerformance": [ 1e3, 2E+3,
                      null ],
}
"""


@virtual_time
async def test_b013_a_byte_order_mark_is_read_and_kept_and_starting_writes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "mcp.json"
    data = b"\xef\xbb\xbf" + SIBLINGS.replace("\n", "\r\n").encode()
    path.write_bytes(data)
    for _ in range(2):
        async with opened(ScriptedServers(a=["x"], b=["y"]), store=FileStore(path)) as host:
            assert (await host.ready(timeout=5)).ready == ("a", "b")
        assert path.read_bytes() == data
    async with opened(ScriptedServers(a=["x"], b=["y"]), store=FileStore(path)) as host:
        await host.ready(timeout=5)
        await host.tool_set_enabled("a", "x", False)
    assert path.read_bytes() == data.replace(b'"a"}', b'"a", "tools": {"exclude": ["x"]}}')


@virtual_time
async def test_b035_every_server_replaced_leaves_what_stands_beside_them(tmp_path: Path) -> None:
    path = tmp_path / "mcp.json"
    path.write_text(SIBLINGS)
    async with opened(ScriptedServers(a=["x"], b=["y"], c=["z"]), store=FileStore(path)) as host:
        await host.plugin_add("c", "c", ["1"])
        await host.plugin_remove("a")
        await host.plugin_remove("b")
        await host.plugin_add("c", "c", ["2"], replace=True)
    before, after = (text.split('"mcpServers"') for text in (SIBLINGS, path.read_text()))
    assert after[0] == before[0]
    assert after[1].partition("  },\n")[2] == before[1].partition("  },\n")[2]
    assert [each.args for each in read_config(path.read_text()).servers] == [("2",)]


@virtual_time
async def test_b037_a_toggle_there_and_back_leaves_every_byte_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "mcp.json"
    path.write_text(SIBLINGS)
    async with opened(ScriptedServers(a=["x"], b=["y"]), store=FileStore(path)) as host:
        await host.ready(timeout=5)
        await host.tool_set_enabled("a", "x", False)
        await host.server_set_enabled("b", False)
        hidden = SIBLINGS.replace('"a"}', '"a", "tools": {"exclude": ["x"]}}').replace('"b"}', '"b", "disabled": true}')
        assert path.read_text() == hidden
        await host.server_set_enabled("b", True)
        await host.tool_set_enabled("a", "x", True)
    assert path.read_text() == SIBLINGS


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["disable", "nope", "--config", "mcp.json"], "no server named 'nope'"),
        (["remove", "nope", "--config", "mcp.json"], "no server named 'nope'"),
        (["enable", "nope", "--config", "work.json"], "work.json"),
        (["list", "--profile", "work"], "--profile"),
    ],
)
def test_b038_a_name_that_does_not_exist_is_an_error_and_writes_nothing(
    tmp_path: Path, words: list[str], says: str
) -> None:
    path = tmp_path / "mcp.json"
    path.write_text(SIBLINGS)
    environ = {**os.environ, "HOME": str(tmp_path / "home"), "XDG_CONFIG_HOME": str(tmp_path / "home")}
    command = [sys.executable, "-m", "playbill.actors.cli", *words]
    done = subprocess.run(command, cwd=tmp_path, env=environ, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert says in done.stderr
    assert "Traceback" not in done.stderr
    assert path.read_text() == SIBLINGS
    assert [each.name for each in tmp_path.iterdir()] == ["mcp.json"]


TOGGLERS = """
import os, sys
from playbill.actors.edge.config.file import FileStore
from playbill.actors.model.edits import SetTool

def toggle(who):
    store = FileStore(sys.argv[1], lock_timeout=60)
    for number in range(50):
        assert store.edit([SetTool("a", f"{who}-{number}", False)]).refused == (None,)

pids = []
for who in range(10):
    pid = os.fork()
    if not pid:
        try:
            toggle(who)
        except BaseException as error:
            print(error, file=sys.stderr, flush=True)
            os._exit(1)
        os._exit(0)
    pids.append(pid)
sys.exit(max(os.waitpid(pid, 0)[1] for pid in pids))
"""


def test_b088_ten_processes_toggle_at_once_and_every_reader_sees_a_whole_file(tmp_path: Path) -> None:
    path = tmp_path / "mcp.json"
    path.write_text(SIBLINGS)
    texts = set()
    with subprocess.Popen([sys.executable, "-c", TOGGLERS, str(path)]) as process:
        while process.poll() is None:
            text = path.read_text()
            if text not in texts:
                texts.add(text)
                assert len(read_config(text).servers) == 2
            time.sleep(0.001)  # the writers want to run too
    assert process.returncode == 0
    (a, _) = read_config(path.read_text()).servers
    assert sorted(a.exclude) == sorted(f"{who}-{number}" for who in range(10) for number in range(50))
    assert [each.name for each in tmp_path.iterdir()] == ["mcp.json"]
    assert path.read_text().count("// as the editor likes it") == path.read_text().count("/* measured once */") == 1


async def test_b090_two_objects_in_one_file_are_one_error_and_the_last_good_one_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "STEP", 0.02)
    looks, reads = Cell(0), Cell(0)
    look, load = House._look_again, Coordinator._load

    async def looking(house: House) -> None:
        await look(house)
        looks.set(looks.value + 1)

    def loading(coordinator: Coordinator, trusted: Any) -> Any:
        trio.from_thread.run_sync(reads.set, reads.value + 1)
        return load(coordinator, trusted)

    monkeypatch.setattr(House, "_look_again", looking)
    monkeypatch.setattr(Coordinator, "_load", loading)
    path = tmp_path / "mcp.json"
    good = json.dumps({"mcpServers": {"a": {"command": "a"}}})
    path.write_text(good)
    connect = ScriptedServers(a=["x"])
    async with open_host(path, connect=connect, watch=True) as host:
        assert await host.ready(timeout=PATIENCE)
        path.write_text(good + good)
        snapshot = await until(host, lambda snapshot: snapshot.model.config_error is not None)
        assert f"mcp.json:1:{len(good) + 1}: " in str(snapshot.model.config_error)
        assert [each.phase for each in snapshot.model.servers] == ["ready"]
        for _ in range(5):  # the same bytes again, by rename
            count = looks.value
            path.with_suffix(".new").write_text(good + good)
            path.with_suffix(".new").replace(path)
            with trio.fail_after(PATIENCE):
                await looks.wait(lambda value, count=count: value > count)
        assert reads.value == 1
        assert host.snapshot() is snapshot
        path.write_text(good)
        await until(host, lambda snapshot: snapshot.model.config_error is None)
        assert connect.spawns == {"a": 1}
