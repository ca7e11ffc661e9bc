"""What a person sees on a terminal: tables that fit it, and one line of progress that does not stay."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from playbill.actors.cli.render import Table, widths_for
from playbill.actors.cli.voice import Voice, cells, cut
from rich.cells import cell_len

from .. import forked
from .conftest import PROGRAM, shipped
from .terminal import on_terminal, screen, widest

WriteConfig = Callable[..., Path]
Playbill = Callable[..., "subprocess.CompletedProcess[str]"]

LATE = """
import pathlib, sys, time
marker = pathlib.Path(sys.argv[1])
while not marker.exists():
    time.sleep(0.01)
import os
os.execv(sys.executable, [sys.executable, sys.argv[2]])
"""


@pytest.fixture
def terminal(environment: dict[str, str]) -> dict[str, str]:
    """The environment of a terminal that can do what is usual."""
    return {**environment, "TERM": "xterm", "LC_ALL": "C.UTF-8"}


def late(tmp_path: Path, name: str = "clock") -> dict[str, object]:
    """A server that is ready only once the file ``go`` is there."""
    script = tmp_path / "late.py"
    script.write_text(LATE)
    return {"command": sys.executable, "args": [str(script), str(tmp_path / "go"), shipped(name)["args"][0]]}


def test_who_is_still_starting_is_told_on_one_line_that_is_wiped(
    write_config: WriteConfig, tmp_path: Path, terminal: dict[str, str]
) -> None:
    config = write_config(slow=late(tmp_path), quick=shipped("dice"))

    def seen(text: bytes) -> None:
        if b"waiting for slow (1 of 2 ready)" in text:
            (tmp_path / "go").touch()

    code, text = on_terminal([*PROGRAM, "tools", "--config", str(config)], tmp_path, terminal, seen=seen)
    assert code == 0
    assert "\rwaiting for slow (1 of 2 ready)\x1b[K" in text
    assert not [line for line in screen(text) if "waiting" in line]
    assert any("mcp__clock__now" in line or "mcp__slow__now" in line for line in screen(text))


def test_whose_answer_is_awaited_is_told(write_config: WriteConfig, tmp_path: Path, terminal: dict[str, str]) -> None:
    words = ["call", "clock/wait", '{"seconds": 1.5}', "--config", str(write_config(clock=shipped("clock")))]
    code, text = on_terminal([*PROGRAM, *words], tmp_path, terminal)
    assert code == 0
    assert "\rwaiting for the answer of clock/wait\x1b[K" in text
    assert len([line for line in screen(text) if line]) == 1


@pytest.mark.parametrize("how", ["--quiet", "TERM=dumb", "a pipe"])
def test_there_is_no_progress_for_who_cannot_or_will_not_see_it(
    write_config: WriteConfig, tmp_path: Path, terminal: dict[str, str], how: str
) -> None:
    config = write_config(never={"command": sys.executable, "args": ["-c", "import time; time.sleep(600)"]})
    words = ["tools", "--timeout", "1.5", "--config", str(config)]
    if how == "a pipe":
        done = forked.run([*PROGRAM, *words], cwd=tmp_path, env=terminal, capture_output=True, text=True, timeout=60)
        assert (done.returncode, "waiting" in done.stderr + done.stdout) == (4, False)
        return
    environ = {**terminal, "TERM": "dumb"} if how.startswith("TERM") else terminal
    more = [how] if how.startswith("--") else []
    code, text = on_terminal([*PROGRAM, *words, *more], tmp_path, environ)
    assert (code, "waiting" in text, "\x1b[K" in text) == (4, False, False)


def test_beside_json_in_a_file_progress_is_on_the_terminal(
    write_config: WriteConfig, tmp_path: Path, terminal: dict[str, str]
) -> None:
    config = write_config(slow=late(tmp_path))

    def seen(text: bytes) -> None:
        if b"waiting for slow" in text:
            (tmp_path / "go").touch()

    with open(tmp_path / "out.json", "wb") as file:
        words = ["tools", "--json", "--config", str(config)]
        code, text = on_terminal([*PROGRAM, *words], tmp_path, terminal, stdout=file.fileno(), seen=seen)
    assert (code, [line for line in screen(text) if line]) == (0, [])
    assert (tmp_path / "out.json").read_text().startswith("{")


def test_progress_is_cut_to_the_terminal(write_config: WriteConfig, tmp_path: Path, terminal: dict[str, str]) -> None:
    hang = {"command": sys.executable, "args": ["-c", "import time; time.sleep(600)"]}
    config = write_config(**{"東京サーバー": hang, "a-server-with-a-long-name": hang})
    words = ["tools", "--timeout", "2", "--config", str(config)]
    _, text = on_terminal([*PROGRAM, *words], tmp_path, terminal, 40)
    told = re.findall(r"\r(waiting[^\x1b]*)\x1b\[K", text)
    assert told
    assert widest(told) <= 39
    assert told[0].endswith("...")


def _servers() -> dict[str, object]:
    return {
        "clock": shipped("clock", tools={"exclude": ["wait"]}),
        "東京サーバー": shipped("notes"),
        "cafe\u0301-e\u0301te\u0301": shipped("dice"),
        "dead": {"command": "no-such-program"},
    }


@pytest.mark.parametrize("columns", [40, 80, 200])
@pytest.mark.parametrize("verb", ["list", "tools"])
def test_a_table_fits_the_terminal_and_breaks_no_name(
    write_config: WriteConfig, tmp_path: Path, terminal: dict[str, str], columns: int, verb: str
) -> None:
    config = write_config(**_servers())
    code, text = on_terminal([*PROGRAM, verb, "--config", str(config)], tmp_path, terminal, columns)
    assert code == (4 if verb == "tools" else 0)
    lines = [line for line in screen(text) if not line.startswith("playbill: ")]
    assert widest(lines) <= columns
    seen = "\n".join(lines)
    names = ["clock", "東京サーバー", "cafe\u0301-e\u0301te\u0301", "dead"]
    assert [name for name in names if name not in seen] == []
    if verb == "tools":
        assert "mcp__clock__between" in seen
    assert ("SERVER" in seen) is (columns > 40)
    if columns == 200:
        assert any(re.match(r" *東京サーバー +(stdio|ready)", line) for line in lines)


def test_what_is_piped_is_the_same_at_every_width(playbill: Playbill, write_config: WriteConfig) -> None:
    config = write_config(**_servers())
    narrow, wide = (playbill("list", "--config", config, COLUMNS=columns).stdout for columns in ("40", "200"))
    assert narrow == wide
    heads, *rows = narrow.splitlines()
    at = cells(heads[: heads.index("KIND")])
    # The columns stand below one another, as a terminal shows them.
    assert {cells(row.partition("stdio")[0]) for row in rows} == {at}


@pytest.mark.parametrize("text", ["", "plain", "東京サーバー", "e\u0301", "한국어", "a\u200bb", "→", "é"])
def test_a_texts_width_is_what_rich_takes_it_for(text: str) -> None:
    assert cells(text) == cell_len(text)


def test_a_cut_text_is_never_wider_than_asked() -> None:
    for text in ("a" * 50, "東" * 30, "e\u0301" * 40, "短"):
        for width in range(60):
            assert cells(cut(text, width)) <= width
            assert cells(text) > width or cut(text, width) == text


def test_the_widest_column_gives_way_first_and_a_name_never() -> None:
    table = Table(("NAME", "A", "B"), (("n" * 20, "a" * 30, "b" * 300),))
    assert widths_for(table, 400) == [20, 30, 300]
    assert widths_for(table, 100) == [20, 30, 42]
    assert widths_for(table, 80) == [20, 26, 26]
    assert widths_for(table, 60) == [20, 16, 16]
    assert widths_for(table, 59) is None


def test_a_line_wipes_the_progress_before_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("shutil.get_terminal_size", lambda: os.terminal_size((20, 10)))
    voice = Voice()
    voice.draw("waiting")
    voice.draw("waiting")
    voice.say("hello")
    voice.say("world")
    assert capsys.readouterr().err == "\rwaiting\x1b[K\r\x1b[Khello\nworld\n"
