"""A server process and its group: how it starts, and that nothing of it is left however it ends. Real processes."""

from __future__ import annotations

import json
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
from playbill.actors.edge.wire.process import ServerProcess
from playbill.actors.edge.wire.spawn import SpawnFailed, spawn
from playbill.actors.edge.wire.stderr import StderrTail
from playbill.actors.edge.wire.warden import open_warden

from ..processes import marked


@asynccontextmanager
async def running(code: str, mark: str) -> AsyncIterator[ServerProcess]:
    key, _, value = mark.partition("=")
    env = {**os.environ, key: value}
    async with open_warden() as warden, trio.open_nursery() as nursery:
        process = await spawn(sys.executable, ["-I", "-S", "-c", code], env=env, cwd=None, warden=warden)
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


DAEMON = (
    "import os, sys, time\n"
    "read, write = os.pipe()\n"
    "if not os.fork():\n"
    "    os.setsid()\n"
    "    if not os.fork():\n"
    "        os.write(write, b'%d' % os.getpid())\n"
    "        time.sleep(99)\n"
    "    os._exit(0)\n"
    "os.wait()\n"
    "print(os.read(read, 20).decode(), flush=True)\n"
)


@pytest.mark.parametrize("how", ["leaves on EOF", "exits", "is killed"])
async def test_a_daemon_that_left_its_session_is_gone_when_gone_is_told(mark: str, how: str) -> None:
    code = DAEMON + ("" if how == "exits" else "sys.stdin.read()")
    async with running(code, mark) as process:
        daemon = int(await line_of(process))
        if how == "is killed":
            os.kill(process.pid, signal.SIGKILL)
        if how == "leaves on EOF":
            await process.stop()
        with trio.fail_after(10):
            await process.gone.wait()
        with pytest.raises(ProcessLookupError):
            os.kill(daemon, 0)
        assert process.returncode == (-signal.SIGKILL if how == "is killed" else 0)


async def test_what_the_daemon_of_a_running_server_leaves_is_reaped_and_the_server_goes_on(mark: str) -> None:
    code = DAEMON.replace("time.sleep(99)", "pass") + "sys.stdin.read(); sys.exit(3)"
    async with running(code, mark) as process:
        daemon = int(await line_of(process))
        with trio.fail_after(10):
            while Path(f"/proc/{daemon}").exists():  # also as a zombie
                await trio.sleep(0.01)
        await process.stop()
        assert process.returncode == 3


async def test_a_server_inherits_no_file_of_the_host_the_watcher_or_its_neighbours(mark: str, tmp_path: Path) -> None:
    with (tmp_path / "open").open("w") as file:
        os.set_inheritable(file.fileno(), True)
        code = (
            "import os; fds = [f'/proc/self/fd/{n}' for n in range(20)];"
            "print(*[os.readlink(fd) for fd in fds if os.path.exists(fd)])"
        )
        async with running("import sys; sys.stdin.read()", mark), running(code, mark) as process:
            links = (await line_of(process)).split()
    assert len(links) == 3
    assert all(link.startswith("pipe:") for link in links)


async def test_a_server_starts_with_default_signal_handling_and_none_blocked(mark: str) -> None:
    code = "print(*[line.split()[1] for line in open('/proc/self/status') if line[:6] in ('SigIgn', 'SigBlk')], flush=True)"
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
    try:
        async with running(code, mark) as process:
            blocked, ignored = (int(each, 16) for each in (await line_of(process)).split())
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    # Python itself ignores SIGPIPE and SIGXFSZ; those over 31 are the C library's own.
    assert blocked == 0
    assert ignored & 0x7FFFFFFF == 1 << (signal.SIGPIPE - 1) | 1 << (signal.SIGXFSZ - 1)


async def test_the_working_folder_is_the_hosts_unless_told(mark: str, tmp_path: Path) -> None:
    async with running("import os; print(os.getcwd(), flush=True)", mark) as process:
        assert await line_of(process) == os.getcwd()
    (tmp_path / "tool").write_text("#!/bin/sh\npwd\n")
    (tmp_path / "tool").chmod(0o755)
    async with open_warden() as warden:  # a command with a slash is meant from there
        process = await spawn("./tool", [], env={}, cwd=str(tmp_path), warden=warden)
        assert await line_of(process) == str(tmp_path)
        await process.watch()
        process.close_pipes()


async def test_the_command_is_looked_up_in_the_path_of_its_own_environment(mark: str, tmp_path: Path) -> None:
    for number, folder in enumerate(("first", "second", "third")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "tool").write_text(f"#!/bin/sh\necho {folder}\n")
        (tmp_path / folder / "tool").chmod(0o755 if number else 0o644)
    path = ":".join(str(tmp_path / each) for each in ("none", "first", "second", "third"))
    async with open_warden() as warden:
        process = await spawn("tool", [], env={"PATH": path}, cwd=None, warden=warden)
        assert await line_of(process) == "second"
        await process.watch()
        process.close_pipes()


async def test_arguments_and_variables_arrive_byte_for_byte(mark: str) -> None:
    odd = ["", " ", "a\nb", "ünïcode \N{SNOWMAN}", "x=y", "'\"\\$`", "long" * 20_000]
    code = "import json, os, sys; print(json.dumps([sys.argv[1:], os.environ.get('ODD')]), flush=True)"
    async with open_warden() as warden:
        env = {"ODD": "=\n\N{SNOWMAN}="}
        process = await spawn(sys.executable, ["-I", "-S", "-c", code, *odd], env=env, cwd=None, warden=warden)
        assert json.loads(await line_of(process)) == [odd, env["ODD"]]
        await process.watch()
        process.close_pipes()


async def test_a_spawn_that_is_cancelled_leaves_nothing(mark: str) -> None:
    key, _, value = mark.partition("=")
    env = {**os.environ, key: value}
    before = set(os.listdir("/proc/self/fd"))
    async with open_warden() as warden:
        await warden.hand_over([])  # a watcher runs
        for delay in range(30):
            with trio.move_on_after(delay / 5000):
                process = await spawn("sleep", ["99"], env=env, cwd=None, warden=warden)
                process.kill()
                with trio.CancelScope(shield=True):
                    await process.watch()
                process.close_pipes()
            assert not marked(mark)
    assert set(os.listdir("/proc/self/fd")) == before


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
    (lambda path: {"command": "tr\0ue"}, "command, args, env or cwd: a NUL character"),
    (lambda path: {"command": "true", "env": {"A=B": "c"}}, "env: a variable cannot be named 'A=B'"),
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
    async with open_warden() as warden:
        await warden.hand_over([])  # a watcher runs
        before = set(os.listdir("/proc/self/fd"))
        with pytest.raises(SpawnFailed) as caught:
            await spawn(warden=warden, **call)
        assert set(os.listdir("/proc/self/fd")) == before
    assert str(caught.value).startswith(message.format(tmp_path))
    assert "\n" not in str(caught.value)
    assert caught.value.futile


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
        assert tail.telling_line() == "\N{REPLACEMENT CHARACTER} end"
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


async def test_a_flood_of_small_pieces_is_read_in_few_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    reads, real = 0, os.read

    def counted(fd: int, most: int) -> bytes:
        nonlocal reads
        reads += 1
        return real(fd, most)

    monkeypatch.setattr(os, "read", counted)
    read, write = os.pipe()
    async with trio.lowlevel.FdStream(read) as pipe, trio.open_nursery() as nursery:
        tail = StderrTail(pipe)
        nursery.start_soon(tail.drain)
        for n in range(4000):
            os.write(write, b"%d\n" % n)
            await trio.lowlevel.checkpoint()
        os.close(write)
        with trio.fail_after(10):
            await tail.ended.wait()
    assert reads < 2000
    assert tail.text() == "".join(f"{n}\n" for n in range(4000))
