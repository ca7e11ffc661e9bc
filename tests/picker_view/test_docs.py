"""The code in docs/picker.md runs: for another user interface here, for urwid in a terminal (tests/picker_terminal)."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FAKE = ROOT / "tests" / "edge_connection" / "fake_server.py"


def examples() -> list[str]:
    """The Python of the page, in its order."""
    return re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "picker.md").read_text(encoding="utf-8"), re.DOTALL)


def test_the_example_of_another_interface_runs(tmp_path: Path) -> None:
    tools = [[{"name": name, "inputSchema": {"type": "object"}} for name in ("echo", "now")]]
    entry = {"command": sys.executable, "args": ["-I", "-S", str(FAKE), json.dumps({"tools": tools})]}
    (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": {"files": entry}}))
    done = subprocess.run(
        [sys.executable, "-c", examples()[1]], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.stderr == ""
    lines = done.stdout.split("\n")
    assert lines[0].startswith("files: ready")
    assert lines[1:3] == ["  off echo: excluded", "   on now: on the wire"]
    assert "echo" in json.loads((tmp_path / "mcp.json").read_text())["mcpServers"]["files"]["tools"]["exclude"]


def test_every_key_is_in_the_page() -> None:
    from playbill.actors.picker.keys import TABLE, shown_key

    page = (ROOT / "docs" / "picker.md").read_text(encoding="utf-8")
    for each in TABLE["list"]:
        key = shown_key(each.keys[0])
        assert key in page or key.lower() in page, f"{key} is not told of"
