"""The guard sees what it is for: one projection too many, one more step, one more write; and it says which."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import playbill.actors.board
import playbill.actors.line
import playbill.actors.projector
import pytest
import trio
from attrs import evolve
from playbill.actors.edge.config.file import FileStore

Runner = Callable[[str], ModuleType]
TOGGLES = "10 toggles of a tool"
CALLS = "100 calls, one after the other"
CRASH = "a crash, until it is ready again"


def wrong(guard: ModuleType, *workloads: str) -> list[str]:
    """What differs from the committed counts in these workloads."""
    found = {name: guard.count(guard.WORKLOADS[name]) for name in workloads}
    # What the interpreter keeps depends on what ran before in this process.
    for counts in found.values():
        counts.pop("blocks kept")
    differences: list[str] = guard.differences(found, json.loads(guard.COMMITTED.read_text()))
    return differences


def test_the_committed_counts_are_those_of_this_tree(runner: Runner) -> None:
    guard = runner("guard")
    assert wrong(guard, *guard.WORKLOADS) == []


def test_each_workload_is_committed_and_nothing_else_is(runner: Runner) -> None:
    guard = runner("guard")
    committed = json.loads(guard.COMMITTED.read_text())["counts"]
    assert [*committed] == [*guard.WORKLOADS, *guard.TRACED]
    for workload in guard.WORKLOADS:
        assert [*committed[workload]] == [*guard.EXACT, *guard.PINNED, "blocks kept"]


def test_a_count_that_was_never_committed_is_told(runner: Runner) -> None:
    guard = runner("guard")
    committed = {"made with": guard.versions(), "counts": {TOGGLES: {}}}
    assert guard.differences({TOGGLES: {"spawns": 0}}, committed) == [
        f"{TOGGLES}: spawns is not in guard.json: run with --write"
    ]


def test_one_projection_too_many_for_each_change_fails(runner: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    look = playbill.actors.projector.look

    def twice(*args: Any) -> Any:
        look(*args)
        return look(*args)

    monkeypatch.setattr(playbill.actors.projector, "look", twice)
    assert wrong(runner("guard"), TOGGLES) == [f"{TOGGLES}: projections 20, committed 10"]


def test_a_single_projection_too_many_fails(runner: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    """The board is touched once in vain: when a tool is enabled again for the last time."""
    set_config = playbill.actors.board.Board.set_config
    seen: list[int] = []

    def touching(self: Any, state: Any) -> None:
        set_config(self, state)
        seen.append(state.rev)
        if len(seen) == 5:
            # In a later step: what comes in the same one is conflated, as it should be.
            trio.lowlevel.spawn_system_task(later, self)

    async def later(board: Any) -> None:
        await trio.sleep(1)
        board._touch()

    monkeypatch.setattr(playbill.actors.board.Board, "set_config", touching)
    found = wrong(runner("guard"), TOGGLES)
    assert f"{TOGGLES}: projections 11, committed 10" in found


def test_projections_too_many_while_a_server_is_down_fail(runner: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    look = playbill.actors.projector.look

    def again(*args: Any) -> Any:
        seen = look(*args)
        return seen if all(state.phase == "ready" for state in seen.snapshot.model.servers) else look(*args)

    monkeypatch.setattr(playbill.actors.projector, "look", again)
    (line,) = wrong(runner("guard"), CRASH)
    assert line.startswith(f"{CRASH}: projections ")


def test_one_task_step_too_many_for_each_call_fails(runner: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    def slower(call: Any) -> Any:
        async def slow(self: Any, *args: Any, **more: Any) -> Any:
            await trio.lowlevel.checkpoint()
            return await call(self, *args, **more)

        return slow

    for way in ("call", "call_directly"):
        monkeypatch.setattr(playbill.actors.line.Line, way, slower(getattr(playbill.actors.line.Line, way)))
    (line,) = wrong(runner("guard"), CALLS)
    assert line == f"{CALLS}: steps 301, committed 201"


def test_a_change_that_is_written_more_than_once_fails(runner: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    edit = FileStore.edit

    def thrice(self: Any, edits: Any, previous: Any = None) -> Any:
        edit(self, edits, previous)
        edit(self, [evolve(each, on=not each.on) for each in edits], previous)
        return edit(self, edits, previous)

    monkeypatch.setattr(FileStore, "edit", thrice)
    assert f"{TOGGLES}: config writes 30, committed 10" in wrong(runner("guard"), TOGGLES)


def test_other_versions_are_compared_with_slack_and_our_own_decisions_are_not(runner: Runner) -> None:
    guard = runner("guard")
    committed = {"made with": {"trio": "1"}, "counts": {"w": {"projections": 10, "steps": 1000, "blocks kept": 1000}}}

    def against(now: str, **counts: int) -> list[str]:
        found = {"w": {name.replace("_", " "): number for name, number in counts.items()}}
        differences: list[str] = guard.differences(found, committed, {"trio": now})
        return differences

    assert against("1", projections=10, steps=1000, blocks_kept=1100) == []
    assert against("1", steps=1001) == ["w: steps 1001, committed 1000"]
    assert against("2", steps=1301) == []
    assert against("2", steps=1321) == ["w: steps 1321, more than 1.3 × the committed 1000, and 20"]
    assert against("2", projections=11) == ["w: projections 11, committed 10"]
    assert against("1", projections=9) == ["w: projections 9, committed 10"], "the committed counts stay true"
    assert against("1", blocks_kept=1801) == ["w: blocks kept 1801, more than 1.3 × the committed 1000, and 500"]
    assert against("1", blocks_kept=0) == []


@pytest.mark.parametrize(("now", "code"), [(10, None), (11, 1)])
def test_the_run_ends_with_an_error_exactly_when_a_count_differs(
    runner: Runner, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, now: int, code: int | None
) -> None:
    guard = runner("guard")
    committed = tmp_path / "guard.json"
    committed.write_text(json.dumps({"made with": guard.versions(), "counts": {"w": {"projections": 10}}}))
    monkeypatch.setattr(guard, "COMMITTED", committed)
    monkeypatch.setattr(guard, "measure", lambda: {"w": {"projections": now}})
    monkeypatch.setattr(guard, "system_calls", lambda: "there is no strace")
    monkeypatch.setattr(sys, "argv", ["guard.py"])
    if code is None:
        guard.main()
    else:
        with pytest.raises(SystemExit, match="--write"):
            guard.main()
    assert json.loads(committed.read_text())["counts"]["w"]["projections"] == 10


TRACE = """
openat(AT_FDCWD, "/etc/before", O_RDONLY) = 3
access("/playbill-guard/{calls}", F_OK) = -1 ENOENT
write(3, "x", 1) = 1
--- SIGCHLD {{si_signo=SIGCHLD}} ---
read(4, "y", 1) = 1
epoll_wait(5, [], 16, 0) = 0
access("/playbill-guard/settling", F_OK) = -1 ENOENT
close(3) = 0
access("/playbill-guard/{idle}", F_OK) = -1 ENOENT
epoll_wait(5, [], 16, 3000) = 0
access("/playbill-guard/end", F_OK) = -1 ENOENT
close(4) = 0
+++ exited with 0 +++
"""


def test_system_calls_are_counted_in_the_part_that_they_belong_to(
    runner: Runner, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    guard = runner("guard")
    calls, idle = guard.TRACED
    (tmp_path / "told").write_text(TRACE.format(calls=calls, idle=idle).lstrip())
    strace = tmp_path / "strace"
    strace.write_text(f'#!/bin/sh\nexec /bin/cat {tmp_path}/told > "$3"\n')
    strace.chmod(0o700)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert guard.system_calls() == {calls: {"system calls": 3}, idle: {"system calls": 1}}
    strace.write_text("#!/bin/sh\necho 'ptrace: Operation not permitted' >&2\nexit 1\n")
    assert guard.system_calls() == "strace cannot trace here: ptrace: Operation not permitted"
    strace.unlink()
    assert guard.system_calls() == "there is no strace"
