"""What looks for leftovers finds them: the program that kills what servers leave, with its kills taken out one after the other.

In virtual time this cannot be planted in code: processes, groups and signals are below what a scripted server stands for, so
that `chaos/test_planted_bugs.py` has a stand-in whose copies live on. Here it is the real program (`watcher.py`), with a few
lines put before it, and real processes; `Stage` has to find what it leaves, by its mark and by its pid file.
"""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest
from playbill.actors import ServerDied
from playbill.actors.edge.wire import process, warden, watcher

from .conftest import FOR_ONE_LIFE, Project, SetUp, deed, faulty

START = 'if __name__ == "__main__":'

NOTHING = ""

ONE_BY_ONE = """
def _lamed(send):
    return lambda whom, number, *more: None if number == signal.SIGKILL else send(whom, number, *more)

os.kill = _lamed(os.kill)
signal.pidfd_send_signal = _lamed(signal.pidfd_send_signal)
"""
"""Nothing is killed but a server's process group."""

GROUPS = """
_kill = os.kill
os.killpg = lambda group, number: _kill(group, number)
"""
"""A signal to a group reaches its leader only."""

PLANTS = {
    "what left the group is not killed": (ONE_BY_ONE, True),
    "the group is not killed, only its leader": (GROUPS + ONE_BY_ONE, False),
}


def plant(lines: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the watchers of this test run a copy with some lines more."""
    text = inspect.getsource(watcher)
    assert text.count(START) == 1
    copy = folder / "watcher.py"
    copy.write_text(text.replace(START, f"{lines}\n{START}"))
    monkeypatch.setattr(warden, "_program", lambda: [str(copy)])
    monkeypatch.setattr(warden, "_END_GRACE", 0.2)
    monkeypatch.setattr(process, "KILL_GRACE", 0.1)


async def a_life_and_a_death(on_stage: SetUp, *, session: bool, end: str) -> None:
    """A server with two children in its group, or in sessions of their own, and its end."""
    async with on_stage(faulty(start=deed("children", count=2, session=session)), backoff=FOR_ONE_LIFE) as stage:
        await stage.ready()
        if end == "dies":
            with pytest.raises(ServerDied):
                await stage.call("do", do="die")
            await stage.until(lambda state: state.phase == "backing_off")
        else:
            await stage.host.server_set_enabled("bad", False)
            await stage.until(lambda state: state.phase == "disabled")


@pytest.mark.parametrize("end", ["dies", "is stopped"])
@pytest.mark.parametrize("bug", PLANTS)
async def test_what_a_planted_bug_leaves_is_found(
    project: Project, on_stage: SetUp, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bug: str, end: str
) -> None:
    lines, session = PLANTS[bug]
    plant(lines, tmp_path, monkeypatch)
    with pytest.raises(AssertionError, match="of a server"):
        await a_life_and_a_death(on_stage, session=session, end=end)
    await project.gone()  # `Stage` has killed them


@pytest.mark.parametrize("session", [False, True], ids=["at home", "sessions"])
async def test_a_copy_without_a_bug_leaves_nothing(
    on_stage: SetUp, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, session: bool
) -> None:
    plant(NOTHING, tmp_path, monkeypatch)
    await a_life_and_a_death(on_stage, session=session, end="dies")
