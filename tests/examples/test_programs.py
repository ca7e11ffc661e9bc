"""The agents as programs: what a person sees, the exit codes, and Ctrl-C."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import trio

from .conftest import EXAMPLES, PATIENCE, Project
from .stub import Reply, Stub, Use, ask, say

if TYPE_CHECKING:
    from .providers import Provider

Done = subprocess.CompletedProcess[bytes]
HERE = {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"}


@asynccontextmanager
async def running(provider: Provider, replies: list[Reply]) -> AsyncIterator[tuple[Stub, dict[str, str]]]:
    """The provider, and the variables by which a program finds it."""
    stub = provider.stub(replies)
    with trio.fail_after(PATIENCE):
        async with trio.open_nursery() as nursery:
            await nursery.start(stub.serve)
            yield stub, {f"{provider.variable}_BASE_URL": stub.url, f"{provider.variable}_API_KEY": "none", **HERE}
            nursery.cancel_scope.cancel()
    assert stub.refused == []


def command(provider: Provider, *questions: str) -> list[str]:
    return [sys.executable, "-W", "error", str(EXAMPLES / f"{provider.module.__name__}.py"), *questions]


async def program(provider: Provider, *questions: str, **more: Any) -> Done:
    asked = command(provider, *questions)
    return await trio.run_process(asked, capture_stdout=True, capture_stderr=True, check=False, **more)


async def test_it_answers_each_question_with_the_servers_beside_it(provider: Provider) -> None:
    uses = Use("call_1", "mcp__dice__flip"), Use("call_2", "mcp__clock__now"), Use("call_3", "list_files")
    async with running(provider, [ask(*uses), say("Heads."), say("You are welcome.")]) as (stub, environment):
        done = await program(provider, "Flip a coin.", "Thanks.", env={**os.environ, **environment}, cwd=EXAMPLES)
        assert (done.returncode, done.stderr) == (0, b"")
        assert done.stdout == b"Heads.\nYou are welcome.\n"
        flip, now, files = stub.results(1)
    assert not any(result["error"] for result in (flip, now, files))
    assert flip["text"] in ("heads", "tails")
    assert "mcp.json" in files["text"]


async def at_rest(program: trio.Process) -> None:
    """Wait until a program only waits: five looks in a row find it asleep, and that it has used nothing in between.

    What is interrupted in the midst of an import, Python itself may tell on stderr.
    """
    seen: list[list[bytes]] = []
    with trio.fail_after(PATIENCE):
        while len(seen) < 5:
            fields = (Path("/proc") / str(program.pid) / "stat").read_bytes().rpartition(b")")[2].split()
            now = [fields[0], *fields[11:13]]
            seen = [*seen, now] if now[0] == b"S" and now in (seen or [now]) else []
            await trio.sleep(0.05)


@pytest.mark.parametrize("provider", ["OPENAI"], indirect=True)  # both programs do it by the same lines
async def test_ctrl_c_in_a_call_ends_it_in_order(provider: Provider, project: Project) -> None:
    uses = Use("call_1", "mcp__one__hang"), Use("call_2", "mcp__two__echo", {"text": "x"})
    async with running(provider, [ask(*uses)]) as (_, environment), trio.open_nursery() as nursery:
        process: trio.Process = await nursery.start(
            partial(
                trio.run_process,
                command(provider, "Go."),
                env=project.environment(**environment),
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                check=False,
            )
        )
        await project.hangs(process)
        await at_rest(process)  # the other call's result has been turned into what the model is sent
        process.send_signal(signal.SIGINT)
        assert await process.wait() == 130
        assert process.stdout is not None
        assert process.stderr is not None
        assert await process.stdout.receive_some() == b""
        assert await process.stderr.receive_some() == b""
    assert project.processes() == []


async def test_a_turn_that_takes_too_long_is_given_up_and_the_next_one_answered(
    provider: Provider, project: Project, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async with running(provider, [ask(Use("call_1", "mcp__one__hang")), say("Here I am.")]) as (_, environment):
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setattr(provider.module, "CONFIG", project.path)
        await provider.module.converse(["Go.", "Are you there?"], turn_timeout=3)
    assert capsys.readouterr().out == "(no answer within 3 s)\nHere I am.\n"


async def test_what_the_api_refuses_is_one_line(
    provider: Provider, project: Project, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async with running(provider, [Reply(status=401)]) as (_, environment):
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setattr(provider.module, "CONFIG", project.path)
        monkeypatch.setattr(sys, "argv", ["agent", "Go."])
        assert await trio.to_thread.run_sync(provider.module.main) == 1
    out, err = capsys.readouterr()
    assert err.startswith(f"{provider.module.__name__}.py: Error code: 401")
    assert (out, err.count("\n")) == ("", 1)


def test_a_config_that_is_not_there_is_one_line(
    provider: Provider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(f"{provider.variable}_API_KEY", "none")
    monkeypatch.setattr(provider.module, "CONFIG", tmp_path / "missing.json")
    monkeypatch.setattr(sys, "argv", ["agent", "Go."])
    assert provider.module.main() == 1
    out, err = capsys.readouterr()
    assert "missing.json" in err
    assert (out, err.count("\n")) == ("", 1)


def test_what_else_is_missing_is_said_in_one_line(
    provider: Provider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["agent"])
    with pytest.raises(SystemExit, match=r"^usage: .*$"):
        provider.module.main()
    monkeypatch.setattr(sys, "argv", ["agent", "Go."])
    with pytest.raises(SystemExit, match=f"^.* set {provider.variable}_API_KEY .*$"):
        provider.module.main()

    sdk = provider.variable.lower()
    (tmp_path / f"{sdk}.py").write_text("raise ImportError")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(command(provider, "Go."), env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (1, "")
    assert f"pip install {sdk}" in done.stderr
    assert done.stderr.count("\n") == 1
