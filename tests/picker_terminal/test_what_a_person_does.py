"""What a person does with the picker: every key that changes something, seen on the screen and in the file."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .conftest import FAKE, Stage, fake
from .tmux import Terminal

Golden = Callable[[str, Terminal], None]

FILES = ("read_file", "write_file", "list_folder")


def opened(stage: Stage, *options: str, **servers: dict[str, Any]) -> Terminal:
    """The picker on these servers, all of them ready."""
    servers = servers or {"files": fake(*FILES), "clock": fake("now")}
    stage.write(**servers)
    stage.open(*options)
    stage.terminal.until(f"{len(servers)} of {len(servers)} server")
    return stage.terminal


def test_the_screen_is_as_it_is_meant_to_be(stage: Stage, golden: Golden) -> None:
    terminal = opened(stage)
    terminal.until("4 of 4 tools on the wire")
    golden("first", terminal)


def test_a_toggle_changes_the_file_and_shows_why(stage: Stage, golden: Golden) -> None:
    terminal = opened(stage)
    before = stage.servers()
    terminal.keys("Down", "Down", "Space")
    terminal.until("[ ]  write_file", "3 of 4 tools on the wire")
    golden("toggled", terminal)
    assert stage.config()["files"]["tools"] == {"exclude": ["write_file"]}
    terminal.keys("Space")
    terminal.until("[x]  write_file", "4 of 4 tools on the wire")
    assert "write_file" not in json.dumps(stage.config()["files"].get("tools", {}))
    assert stage.servers() == before, "a toggle starts and stops nothing"


def test_a_filter_shows_what_matches_as_it_is_typed(stage: Stage, golden: Golden) -> None:
    terminal = opened(stage)
    terminal.type("/writ")
    terminal.until("write_file", "/writ", gone="read_file")
    golden("filtered", terminal)
    terminal.keys("Enter")
    terminal.until("filter: writ")
    terminal.keys("Escape")
    terminal.until("read_file", "now", gone="filter:")


def test_a_server_is_added_by_a_command_line(stage: Stage, golden: Golden) -> None:
    terminal = opened(stage)
    stage.write(stage.folder / "aside.json", new=fake("brand_new"))
    entry = json.loads((stage.folder / "aside.json").read_text())["mcpServers"]["new"]
    program = stage.folder / "new.py"
    program.write_text(
        f"import os, sys\nos.environ['PLAYBILL_TEST_MARK'] = {stage.mark!r}\n"
        f"os.execv(sys.executable, {[sys.executable, *entry['args']]!r})\n"
    )
    terminal.keys("a")
    terminal.until("Add a server")
    terminal.type("extra")
    terminal.keys("Tab")
    terminal.type(f"{sys.executable} {program}")
    terminal.keys("Enter")
    terminal.until("brand_new", "3 of 3 servers ready")
    golden("added", terminal)
    assert stage.config()["extra"]["args"] == [str(program)]


def test_an_add_that_is_refused_stays_open_and_says_why(stage: Stage) -> None:
    terminal = opened(stage)
    terminal.keys("a")
    terminal.type("files")
    terminal.keys("Tab")
    terminal.type("true")
    terminal.keys("Enter")
    terminal.until("Add a server", "already")
    terminal.keys("Escape")
    terminal.until("read_file")
    assert set(stage.config()) == {"files", "clock"}


def test_d_twice_removes_a_server_and_once_does_not(stage: Stage, golden: Golden) -> None:
    terminal = opened(stage)
    terminal.keys("d")
    terminal.until("again")
    terminal.keys("Down", "d", "Up")
    terminal.keys("d", "d")
    terminal.until("1 of 1 server", "now", gone="read_file")
    golden("removed", terminal)
    assert set(stage.config()) == {"clock"}


def test_a_server_that_dies_is_seen_to_die_and_to_come_back(stage: Stage) -> None:
    terminal = opened(stage, only=fake("echo"))
    [pid] = stage.servers()
    os.kill(pid, signal.SIGKILL)
    terminal.until(lambda shown: "signal 9" in shown or "SIGKILL" in shown or "killed" in shown)
    terminal.until("1 of 1 server", "ready · 1 of 1 tool")
    [new] = stage.servers()
    assert new != pid


def test_a_server_that_dies_keeps_its_tools_and_says_why(stage: Stage, golden: Golden) -> None:
    program = stage.folder / "once.py"
    program.write_text(  # it comes back, and then says nothing
        "import os, runpy, sys, time\n"
        "if os.path.exists('been'):\n    time.sleep(3600)\n"
        "open('been', 'w').close()\n"
        f"runpy.run_path({FAKE!r}, run_name='__main__')\n"
    )
    once = fake(*FILES)
    once["args"] = [str(program), once["args"][-1]]
    once["cwd"] = str(stage.folder)
    stage.write(once=once, clock=fake("now"))
    stage.open()
    terminal = stage.terminal
    terminal.until("4 of 4 tools on the wire", "2 of 2 servers ready")
    [pid] = [pid for pid in stage.processes() if str(program) in Path(f"/proc/{pid}/cmdline").read_text()]
    os.kill(pid, signal.SIGKILL)
    terminal.until("starting again · 3 of 3 tools on the wire", "1 of 2 servers ready")
    terminal.keys("Down")
    terminal.until("so a call may fail")
    golden("crash", terminal)


def test_the_budget_warning_comes_and_goes(stage: Stage, golden: Golden) -> None:
    terminal = opened(stage, "--budget", "3")
    terminal.until("4 tools over the budget of 3 — 1 MCP tools were dropped")
    golden("over_budget", terminal)
    terminal.keys("Down", "Space")
    terminal.until("[ ]  read_file", gone="over the budget")
    terminal.keys("Space")
    terminal.until("4 tools over the budget of 3")


def test_forty_columns_are_enough(stage: Stage, golden: Golden) -> None:
    """Each word is there that is there on a wide screen, but for descriptions."""
    terminal = opened(stage)
    terminal.keys("Down", "Down", "Space")
    terminal.until("[ ]  write_file")
    terminal.resize(40, 20)
    terminal.until(lambda shown: "excluded" in shown and max(map(len, shown.split("\n"))) <= 40)
    terminal.until("ready · 2 of 3 tools on the wire", "ready · 1 of 1 tool on the wire", "mcp.json")
    said = " ".join(terminal.screen().split())
    assert "not on the wire: excluded by the entry 'files'" in said
    golden("narrow", terminal)
    terminal.resize(100, 30)
    terminal.until("Read a text file whole, or its first lines")


def test_a_config_that_somebody_breaks_is_told_and_the_last_good_one_stays(stage: Stage, golden: Golden) -> None:
    terminal = opened(stage)
    terminal.resize(240, 30)  # so that where the path is cut does not depend on how long it is
    good = stage.path.read_text()
    stage.path.write_text(good[:-4] + "oops")
    terminal.until("mcp.json", lambda shown: "read_file" in shown and ":" in shown.split("\n")[1])
    terminal.until(lambda shown: "mcp.json" in shown.split("\n")[1])
    golden("invalid", terminal)
    stage.path.write_text(good.replace('"clock"', '"watch"'))
    terminal.until("watch", "2 of 2 servers", gone="clock")
    assert "mcp.json:" not in terminal.screen()


def test_a_projects_server_is_reviewed_before_it_runs(stage: Stage) -> None:
    # Found, not named: what a project's file would start waits for an approval.
    stage.write(stage.folder / ".mcp.json", files=fake(*FILES))
    stage.terminal.run(sys.executable, "-m", "playbill.actors.cli", "pick")
    terminal = stage.terminal
    terminal.until("untrusted")
    assert stage.servers() == []
    terminal.keys("t")
    terminal.until("Trust files?", "would run:", "command", "fake_server.py")
    terminal.keys("Escape")
    terminal.until("untrusted")
    terminal.keys("t")
    terminal.until("would run:")
    terminal.keys("y")
    terminal.until("read_file", "1 of 1 server")


def test_a_long_review_is_approved_after_its_last_line_on_a_narrow_screen(stage: Stage) -> None:
    """Arguments that begin harmlessly, and what they are about far behind; whoever pages on has seen it all."""
    filler = " ".join(f"{number:04}" for number in range(500))
    entry = fake(*FILES)
    entry["args"] += [f"{filler} EVIL  MIDDLE\x1b[2J {filler}", *(f"{number:03}-{'q' * 90}" for number in range(40))]
    stage.write(stage.folder / ".mcp.json", files=entry)
    terminal = stage.terminal
    terminal.resize(40, 20)
    terminal.run(sys.executable, "-m", "playbill.actors.cli", "pick")
    terminal.until("untrusted")
    terminal.keys("t")
    seen = terminal.until("Trust files?", "not seen yet")
    terminal.keys("y")
    terminal.until("not approved")
    terminal.keys("Enter")
    terminal.resize(50, 20)
    for _ in range(300):
        shown = terminal.until(lambda text: "lines not seen yet" in text or "all of it was shown" in text)
        seen += shown
        if "all of it was shown" in shown:
            break
        before = shown
        terminal.keys("Space")
        terminal.until(lambda text, before=before: text != before)
    told = "".join(line.removeprefix("↳ ") for line in seen.split("\n"))
    assert "EVIL  MIDDLE\\x1b[2J" in told
    assert [number for number in range(40) if f"{number:03}-qqqq" not in told] == []
    assert stage.servers() == []
    terminal.keys("y")
    terminal.until("1 of 1 server", "3 of 3 tools on the wire")


def test_what_changed_since_it_was_shown_is_not_approved(stage: Stage) -> None:
    path = stage.folder / ".mcp.json"
    stage.write(path, files=fake(*FILES))
    terminal = stage.terminal
    terminal.run(sys.executable, "-m", "playbill.actors.cli", "pick", "--no-watch")
    terminal.until("untrusted")
    terminal.keys("t")
    terminal.until("would run:")
    stage.write(path, files=fake("something_else"))
    terminal.keys("y")
    terminal.until("not what was shown", "untrusted")
    assert stage.servers() == []


def test_the_log_of_a_server_is_a_key_away(stage: Stage) -> None:
    terminal = opened(stage, loud=fake("echo", say="the answer is 42"))
    terminal.keys("l")
    terminal.until("stderr of loud", "the answer is 42")
    terminal.keys("Escape")
    terminal.until("echo", gone="the answer is 42")


def test_help_lists_the_keys(stage: Stage, golden: Golden) -> None:
    terminal = opened(stage)
    terminal.keys("?")
    terminal.until("In the list")
    golden("help", terminal)
    terminal.keys("q")
    terminal.until("read_file")


def test_details_say_why(stage: Stage) -> None:
    terminal = opened(stage)
    terminal.keys("Down", "Down", "Space")
    terminal.until("[ ]  write_file")
    terminal.keys("i")
    terminal.until("write_file of files", "excluded", "mcp__files__write_file")


def test_a_thousand_tools_scroll_and_filter(stage: Stage) -> None:
    names = [f"tool_{number:04}" for number in range(1_200)]
    listed = [[{"name": name, "description": f"Does {name}", "inputSchema": {"type": "object"}} for name in names]]
    tools = stage.folder / "tools.json"
    tools.write_text(json.dumps(listed))
    program = stage.folder / "many.py"
    program.write_text(
        "import json, os, runpy, sys\n"
        f"sys.argv = ['fake', json.dumps({{'tools': json.load(open({str(tools)!r}))}})]\n"
        f"runpy.run_path({FAKE!r}, run_name='__main__')\n"
    )
    terminal = opened(
        stage, "--budget", "2000", "--profile", "anthropic", many={"command": sys.executable, "args": [str(program)]}
    )
    terminal.until("1200 of 1200 tools on the wire")
    terminal.keys("End")
    terminal.until("tool_1199", gone="tool_0000")
    terminal.keys("PageUp", "PageUp")
    terminal.until(gone="tool_1199")
    terminal.keys("Home")
    terminal.until("tool_0000")
    terminal.type("/0777")
    terminal.until("tool_0777", gone="tool_0001")
    terminal.keys("Enter", "Down", "Space")
    terminal.until("[ ]  tool_0777", "1199 of 1200")


def test_the_example_of_the_documentation_runs(stage: Stage) -> None:
    page = (Path(__file__).parents[2] / "docs" / "picker.md").read_text(encoding="utf-8")
    (stage.folder / "mine.py").write_text(page.split("```python\n")[1].split("```")[0], encoding="utf-8")
    stage.write(files=fake(*FILES))
    stage.terminal.run(sys.executable, "mine.py")
    stage.terminal.until("My agent", "3 of 3 tools on the wire")
    stage.terminal.keys("Down", "Space")
    stage.terminal.until("[ ]  read_file")
    stage.terminal.keys("q")
    stage.terminal.until_shell()
    assert stage.terminal.code() == 0


def test_servers_that_are_slow_to_start_hold_up_nothing(stage: Stage) -> None:
    slow = {f"slow{number}": fake("echo", slow=3600) for number in range(20)}
    stage.write(files=fake(*FILES), **slow)
    terminal = stage.terminal
    terminal.resize(100, 60)
    stage.open()
    terminal.until("slow0", "slow19", "starting")  # none of them ever answers
    terminal.until("1 of 21 servers ready", "3 of 3 tools on the wire")
    terminal.keys("Down", "Space")
    terminal.until("[ ]  read_file", "2 of 3 tools on the wire", "starting")
    terminal.keys("q")
    terminal.until_shell()
    assert terminal.code() == 0
    assert stage.config()["files"]["tools"] == {"exclude": ["read_file"]}
