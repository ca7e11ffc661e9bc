"""A seed gives a run: in this process, in another one, and whatever else has seeded trio's generator before."""

from __future__ import annotations

import math
import subprocess
import sys
from typing import Any

import pytest
import trio
from playbill.supervision import Cell
from playbill.supervision.testing import Simulation, check_private_names, determinism, run_simulation


async def crowd(simulation: Simulation) -> int:
    """Tasks whose order, ties of deadlines and draws show in the trace."""
    cell = Cell(0)

    async def one(name: str) -> None:
        for n in range(20):
            with trio.move_on_after(simulation.rng.choice([0.1, 0.2, 0.2])):
                await trio.sleep(simulation.rng.choice([0, 0.1, 0.2]))
                cell.set(n)
            simulation.say(name, str(n))

    async with trio.open_nursery() as nursery:
        for name in "abcde":
            nursery.start_soon(one, name)
    return cell.version


def test_trio_still_has_the_private_names_that_determinism_rests_on() -> None:
    check_private_names()


def test_a_private_name_that_is_gone_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(determinism._trio_run, "_ALLOW_DETERMINISTIC_SCHEDULING")
    with pytest.raises(RuntimeError, match="_ALLOW_DETERMINISTIC_SCHEDULING"):
        check_private_names()


def test_a_seed_gives_one_trace_and_another_seed_another() -> None:
    traces = [run_simulation(crowd, seed=seed) for seed in (1, 1, 2, 1)]
    assert traces[0] == traces[1] == traces[3]
    assert traces[0].trace != traces[2].trace
    assert traces[0].steps > 100


def test_who_seeded_trio_before_does_not_matter_and_is_not_disturbed() -> None:
    generator = determinism._trio_run._r
    first = run_simulation(crowd, seed=5)
    generator.seed(0)
    state = generator.getstate()
    assert run_simulation(crowd, seed=5) == first
    assert generator.getstate() == state


def test_another_process_with_other_hashes_has_the_same_trace() -> None:
    code = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from test_determinism import crowd, run_simulation\n"
        "print(run_simulation(crowd, seed=3).trace)"
    )
    seen = {
        subprocess.run(
            [sys.executable, "-c", code, __file__.rpartition("/")[0]],
            env={"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert seen == {f"{run_simulation(crowd, seed=3).trace}\n"}


def test_times_are_exact_whoever_else_sleeps() -> None:
    async def sleeper(simulation: Simulation, others: int) -> list[float]:
        seen: list[float] = []

        async def one() -> None:
            for _ in range(50):
                await trio.sleep(0.1)
                seen.append(trio.current_time())

        async def other(seconds: float) -> None:
            for _ in range(70):
                await trio.sleep(seconds)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(one)
            for n in range(others):
                nursery.start_soon(other, 0.07 + n / 77)
        return seen

    alone = run_simulation(lambda simulation: sleeper(simulation, 0), seed=1).value
    among = run_simulation(lambda simulation: sleeper(simulation, 5), seed=1).value
    assert alone == among


def test_what_main_raises_is_a_crash() -> None:
    async def main(simulation: Simulation) -> None:
        await trio.sleep(1)
        raise KeyError("lost")

    result = run_simulation(main, seed=1)
    assert (result.verdict, result.reason, result.seconds) == ("crash", "KeyError: 'lost'", 1.0)
    assert isinstance(result.error, KeyError)


async def _loop(shielded: bool) -> None:
    with trio.CancelScope(shield=shielded):
        while True:
            await trio.lowlevel.checkpoint()


async def _sleep(shielded: bool) -> None:
    with trio.CancelScope(shield=shielded):
        while True:
            await trio.sleep(10)


async def _wait(shielded: bool) -> None:
    with trio.CancelScope(shield=shielded):
        await trio.Event().wait()


@pytest.mark.parametrize("shielded", [False, True])
@pytest.mark.parametrize(
    ("body", "words"),
    [(_loop, "1000 task steps"), (_sleep, "virtual seconds"), (_wait, "virtual seconds|nobody|everybody waits")],
)
def test_a_run_that_would_not_end_is_ended(body: Any, words: str, shielded: bool) -> None:
    async def main(simulation: Simulation) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.sleep, 0 if body is _wait else math.inf)
            await body(shielded)

    result = run_simulation(main, seed=1, seconds=30, steps=1000)
    assert result.verdict == "liveness"
    assert any(word in result.reason for word in words.split("|"))
    assert run_simulation(crowd, seed=1) == run_simulation(crowd, seed=1)
