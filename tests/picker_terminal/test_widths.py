"""How wide texts are, held against what a terminal (tmux) says of them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from playbill.actors.model.cells import columns, steady

from .tmux import has_tmux

TEXTS = [
    "abc", "e\u0301", "文字", "\u3000", "가", "\u1100\u1161\u11a8", "\u1161", "\ud7b0",
    "\u115f", "\u1160", "\u3164", "\uffa0", "a\u3164b", "ﷺ", "क्ष", "हिन्दी", "\u0903", "\u0600", "\u06dd",
    "👩‍👩‍👧", "👩\u200da", "a\u200db", "क्\u200dष", "🇩🇪", "🇩", "❤️", "❤", "1️⃣", "👍🏽", "☝🏽", "🏽", "⌚", "☺",
    "\u00ad", "\ufe0f", "\u200b", "\u2060", "\ufeff", "\u2065", "\ufff5", "\U000e0001", "\u034f", "\u2800",
]  # fmt: skip

ASK = """
import json, sys, termios, tty
texts, out = json.load(open(sys.argv[1])), []
tty.setraw(0)
for text in texts:
    sys.stdout.write("\\r\\x1b[Kab" + text + "\\x1b[6n")
    sys.stdout.flush()
    said = ""
    while not said.endswith("R"):
        said += sys.stdin.read(1)
    out.append(int(said.split(";")[1][:-1]) - 3)
open(sys.argv[2] + ".new", "w").write(json.dumps(out))
import os
os.rename(sys.argv[2] + ".new", sys.argv[2])
"""


@pytest.mark.skipif(not has_tmux() and not os.environ.get("CI"), reason="tmux is not installed, and this is not CI")
def test_a_text_is_as_wide_as_a_terminal_draws_it(tmp_path: Path) -> None:
    (tmp_path / "ask.py").write_text(ASK)
    (tmp_path / "texts").write_text(json.dumps([steady(text) for text in TEXTS]))
    socket, answer = f"cells-{os.getpid()}", tmp_path / "answer"
    command = f"{sys.executable} {tmp_path / 'ask.py'} {tmp_path / 'texts'} {answer}"
    environ = {**os.environ, "LANG": "C.UTF-8", "LC_ALL": "C.UTF-8"}
    tmux = ["tmux", "-L", socket, "-f", "/dev/null"]
    subprocess.run([*tmux, "new-session", "-d", "-x", "100", "-y", "30", command], env=environ, check=True)
    try:
        deadline = time.monotonic() + 60
        while not answer.exists():
            assert time.monotonic() < deadline
            time.sleep(0.05)
    finally:
        subprocess.run([*tmux, "kill-server"], env=environ, capture_output=True, check=False)
    drawn = json.loads(answer.read_text())
    assert {text: columns(steady(text)) for text in TEXTS} == dict(zip(TEXTS, drawn, strict=True))
