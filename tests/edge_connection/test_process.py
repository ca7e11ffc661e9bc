"""A server process and its group: how it starts, and that nothing of it is left however it ends. Real processes."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio
from playbill.actors.edge.wire import process as process_module
from playbill.actors.edge.wire.process import ServerProcess, SpawnFailed, spawn
from playbill.actors.edge.wire.stderr import StderrTail


class Register:
    """A warden that writes down what it is told, and whether the leader was still there then."""

    def __init__(self) -> None:
        self.told: list[tuple[str, int]] = []

    def watch(self, group: int) -> None:
        self.told.append(("+", group))

    def forget(self, group: int) -> None:
        os.kill(group, 0)  # raises when the leader is reaped already: its id could be a stranger's
        self.told.append(("-", group))


@asynccontextmanager
async def running(code: str, mark: str, warden: Any = None) -> AsyncIterator[ServerProcess]:
    key, _, value = mark.partition("=")
    env = {**os.environ, key: value}
    process = await spawn(sys.executable, ["-I", "-S", "-c", code], env=env, cwd=None, warden=warden)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(process.watch)
        try:
            yield process
        finally:
            await process.stop(grace=False)
            process.close_pipes()


async def line_of(process: ServerProcess) -> str:
    """The first line on stdout: the process is up."""
    data = b""
    while not data.endswith(b"\n"):
        more = await process.stdout.receive_some(1000)
        assert more, "it ended without a line"
        data += more
    return data.decode().strip()


IGNORE_TERM = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); "
GRANDCHILD = (
    "import subprocess, sys, time\n"
    "code = 'import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(1, flush=True); time.sleep(99)'\n"
    "child = subprocess.Popen([sys.executable, '-I', '-S', '-c', code], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)\n"
    "child.stdout.readline()\n"
    "print(child.pid, flush=True)\n"
)


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    # A zombie that its new parent has not waited for yet is dead, too.
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"


async def until_dead(pid: int) -> None:
    with trio.fail_after(10):
        while alive(pid):
            await trio.sleep(0.01)


async def test_it_leads_its_own_session_and_group(mark: str) -> None:
    async with running(
        "import os; print(os.getpid(), os.getpgid(0), os.getsid(0), flush=True); input()", mark
    ) as process:
        assert await line_of(process) == f"{process.pid} {process.pid} {process.pid}"


async def test_stop_by_closing_stdin_lets_it_leave_by_itself(mark: str) -> None:
    async with running("import sys; sys.stdin.read(); sys.exit(3)", mark) as process:
        await process.stop()
        assert process.returncode == 3
        assert process.how_it_ended() == "exited with code 3"


async def test_stop_goes_on_to_sigterm(mark: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_module, "EOF_GRACE", 0.05)
    async with running("import time; print(1, flush=True); time.sleep(99)", mark) as process:
        await line_of(process)
        await process.stop()
        assert process.returncode == -signal.SIGTERM
        assert process.how_it_ended() == "was killed by SIGTERM"


async def test_stop_goes_on_to_sigkill(mark: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_module, "EOF_GRACE", 0.05)
    monkeypatch.setattr(process_module, "TERM_GRACE", 0.05)
    async with running(IGNORE_TERM + "import time; print(1, flush=True); time.sleep(99)", mark) as process:
        await line_of(process)
        await process.stop()
        assert process.returncode == -signal.SIGKILL


async def test_stop_without_grace_kills_at_once(mark: str) -> None:
    async with running("import time; print(1, flush=True); time.sleep(99)", mark) as process:
        await line_of(process)
        await process.stop(grace=False)
        assert process.returncode == -signal.SIGKILL


async def test_stop_cannot_be_cancelled(mark: str) -> None:
    async with running("import sys; sys.stdin.read(); sys.exit(4)", mark) as process:
        with trio.CancelScope() as scope:
            scope.cancel()
            await process.stop()
        assert process.returncode == 4


@pytest.mark.parametrize("how", ["exits", "is killed"])
async def test_its_group_ends_with_it_though_a_grandchild_ignores_sigterm(mark: str, how: str) -> None:
    code = GRANDCHILD + ("" if how == "exits" else "time.sleep(99)")
    async with running(code, mark) as process:
        grandchild = int(await line_of(process))
        if how == "is killed":
            os.kill(process.pid, signal.SIGKILL)
        with trio.fail_after(10):
            await process.gone.wait()
        await until_dead(grandchild)


async def test_its_group_is_killed_when_it_leaves_on_eof(mark: str) -> None:
    async with running(GRANDCHILD + "sys.stdin.read()", mark) as process:
        grandchild = int(await line_of(process))
        await process.stop()
        assert process.returncode == 0
        await until_dead(grandchild)


async def test_the_group_is_killed_and_forgotten_before_the_leader_is_reaped(mark: str) -> None:
    register = Register()
    async with running("pass", mark, register) as process:
        with trio.fail_after(10):
            await process.gone.wait()
    assert register.told == [("+", process.pid), ("-", process.pid)]


@pytest.mark.parametrize("missing", [{"pidfd_open"}], ids=["no pidfd"])
async def test_exit_is_seen_without_a_pidfd_too(mark: str, monkeypatch: pytest.MonkeyPatch, missing: set[str]) -> None:
    for name in missing:
        monkeypatch.delattr(os, name)
    register = Register()
    async with running("import sys; print(1, flush=True); sys.exit(5)", mark, register) as process:
        with trio.fail_after(10):
            await process.gone.wait()
        assert process.returncode == 5
    assert register.told == [("+", process.pid), ("-", process.pid)]


async def test_unread_stdin_counts_what_the_server_has_not_read(mark: str) -> None:
    async with running("import os, time; os.read(0, 3); print(1, flush=True); time.sleep(99)", mark) as process:
        os.write(process.stdin.fileno(), b"12345678")
        await line_of(process)
        assert process.unread_stdin() == 5
        os.kill(process.pid, signal.SIGKILL)
        with trio.fail_after(10):
            await process.gone.wait()
        assert process.unread_stdin() == 5  # death does not change it


SPAWN_ERRORS: list[tuple[Callable[[Path], dict[str, Any]], str]] = [
    (lambda path: {"command": "playbill-no-such-command"}, "command: 'playbill-no-such-command' is not found in PATH"),
    (lambda path: {"command": str(path / "absent")}, "command: '{}/absent' does not exist"),
    (lambda path: {"command": str(path / "plain")}, "command: '{}/plain' is not executable"),
    (lambda path: {"command": str(path)}, "command: '{}' is not executable"),
    (
        lambda path: {"command": str(path / "lost")},
        "command: '{}/lost' cannot run: the interpreter named in its first line",
    ),
    (lambda path: {"command": str(path / "odd")}, "command: '{}/odd' is no program (a script needs a #! line)"),
    (lambda path: {"command": "true", "cwd": str(path / "absent")}, "cwd: '{}/absent' does not exist"),
    (lambda path: {"command": "true", "cwd": str(path / "plain")}, "cwd: '{}/plain' is not a folder"),
    (lambda path: {"command": "tr\0ue"}, "command, args or env: embedded null byte"),
]


@pytest.mark.parametrize(("given", "message"), SPAWN_ERRORS, ids=[message[:40] for _, message in SPAWN_ERRORS])
async def test_a_spawn_that_fails_names_the_key(
    tmp_path: Path, given: Callable[[Path], dict[str, Any]], message: str
) -> None:
    (tmp_path / "plain").write_text("x")
    for name, text in (("lost", "#!/no/such/interpreter\n"), ("odd", "\x7fNOT-ELF")):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    call = {"args": [], "env": dict(os.environ), "cwd": None, **given(tmp_path)}
    before = set(os.listdir("/proc/self/fd"))
    with pytest.raises(SpawnFailed) as caught:
        await spawn(**call)
    assert str(caught.value).startswith(message.format(tmp_path))
    assert "\n" not in str(caught.value)
    assert len(os.listdir("/proc/self/fd")) <= len(before)


async def test_stderr_never_blocks_the_server_and_its_tail_is_kept(mark: str) -> None:
    code = (
        "import sys; sys.stderr.buffer.write(b'x' * 1000 + b'\\n' + b'y' * 2**20 + b'\\n\\xff end\\n'); "
        "print(1, flush=True); sys.stdin.read()"
    )
    async with running(code, mark) as process:
        tail = StderrTail(process.stderr, limit=4096)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(tail.drain)
            with trio.fail_after(10):
                await line_of(process)
                await process.stop()
                await tail.ended.wait()
        assert tail.last_line() == "\N{REPLACEMENT CHARACTER} end"
        assert len(tail.text()) <= 4096
        assert len(tail._tail) <= 3 * 65536  # what is held, not only what is shown
        assert "x" not in tail.text()


async def test_a_cut_tail_shows_no_half_of_a_secret(mark: str) -> None:
    code = "import sys; sys.stderr.write('pass-secret\\n' + 'z' * 90 + '\\n'); sys.stderr.flush()"
    async with running(code, mark) as process:
        tail = StderrTail(process.stderr, lambda text: text.replace("pass-secret", "***"), limit=95)
        with trio.fail_after(10):
            await tail.drain()
        assert tail.text() == "z" * 90 + "\n"
