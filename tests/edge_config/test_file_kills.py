"""Writers that are killed: at random moments of a storm of writes, and before each step of one.

What must hold whenever one dies: the file has the old text or the new one, whole; what else it left is in nobody's way, and
gone with the next write.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from playbill.actors.edge.config.file import FileStore
from playbill.actors.model.edits import SetEnabled

TEXT = '{\n  "mcpServers": {\n    "a": {"command": "c"}, // mine\n    "b": {"command": "d"}\n  }\n}\n'
HIDDEN = TEXT.replace('"c"}', '"c", "tools": {"exclude": ["t"]}}')
KILLS = 200


class Maker:
    """The process of ``killed.py``."""

    def __init__(self, file: Path) -> None:
        command = [sys.executable, str(Path(__file__).with_name("killed.py")), str(file)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.hear() == "ready"

    def say(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def hear(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().rstrip()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "mcp.json"
    path.write_text(TEXT, "utf-8")
    return path


@pytest.fixture
def maker(file: Path) -> Iterator[Maker]:
    maker = Maker(file)
    yield maker
    assert maker.process.stdin is not None
    assert maker.process.stdout is not None
    maker.process.stdin.close()
    maker.process.wait(60)
    maker.process.stdout.close()


def left_beside(file: Path) -> set[str]:
    return {each.name for each in file.parent.iterdir()} - {file.name}


def test_a_writer_killed_at_a_random_moment_leaves_the_old_text_or_the_new_one(file: Path, maker: Maker) -> None:
    rng = random.Random(7)
    texts, left = set[str](), set[str]()
    meant = {TEXT, HIDDEN}, {"mcp.json.lock", ".mcp.json.playbill.tmp"}
    for number in range(KILLS * 5):
        if number >= KILLS and (texts, left) == meant:
            break
        maker.say("free")
        pid = int(maker.hear())
        # Several writes long, or longer where the machine is so busy that no writer comes to its first.
        moment = time.perf_counter() + rng.uniform(0, 0.03 * 2 ** (number // KILLS))
        while time.perf_counter() < moment:
            pass
        os.kill(pid, signal.SIGKILL)
        assert maker.hear() == "killed"
        texts.add(file.read_text("utf-8"))
        left |= left_beside(file)
    # Both texts, and both files that a writer makes: the moments were all over the write.
    assert (texts, left) == meant
    assert FileStore(file, lock_timeout=1).edit([SetEnabled("b", False)]).wrote
    assert left_beside(file) == set()


def test_a_writer_killed_before_any_step_leaves_the_old_text_or_the_new_one(file: Path, maker: Maker) -> None:
    seen: list[tuple[str, frozenset[str]]] = []
    ended = ""
    while ended != "done":
        file.write_text(TEXT, "utf-8")
        maker.say(f"step {len(seen) + 1}")
        ended = maker.hear()
        text = file.read_text("utf-8")
        seen.append((text, frozenset(left_beside(file))))
        if text == TEXT:  # all is as it was, to the next writer too
            assert FileStore(file, lock_timeout=1).edit([SetEnabled("b", False)]).wrote
            assert left_beside(file) == set()
    texts = [text for text, _ in seen]
    change = texts.index(HIDDEN)
    assert texts == [TEXT] * change + [HIDDEN] * (len(seen) - change)
    assert frozenset({"mcp.json.lock", ".mcp.json.playbill.tmp"}) in {left for _, left in seen}
    assert seen[-1] == (HIDDEN, frozenset())
    assert len(seen) > 8
