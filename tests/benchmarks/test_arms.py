"""What each arm is: who misbehaves in it, what burns in it, and that its ratio is of these two."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

Runner = Callable[[str], ModuleType]

CALM, FAULTY, FAULTS = 0.125, 0.625, 2.0
"""CPU of all servers in a block, and faults a second."""


class Blocks:
    """Stands in for `block`: notes what each is told, and gives the CPU that it "used"."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, float, bool, float, float, bool]] = []

    async def __call__(
        self, scene: Any, arm: Any, seconds: float, fault: Any, burn: float, piece: float = 0.0, *, fresh: bool = False
    ) -> tuple[float, float]:
        name = "faulty" if fault is not None else "busy" if burn > 0 else "calm"
        self.seen.append((name, seconds, fault is not None, burn, piece, fresh))
        for load in arm.loads.values():  # so that a ratio tells which arm it is of
            p99 = {"calm": 1.0, "faulty": 6.0, "busy": 2.0}[name]
            load.times += [p99, p99]
            load.p99s.append(p99)
        arm.wall += seconds
        return (FAULTY, FAULTS) if fault is not None else (CALM, 0.0)


@asynccontextmanager
async def host(*args: Any, **more: Any) -> AsyncIterator[Any]:
    async def ready(**more: Any) -> Any:
        return SimpleNamespace(missing={})

    yield SimpleNamespace(ready=ready)


EQUAL = FAULTY - CALM
"""What has to be burned, in cores."""


@pytest.mark.parametrize("kind", ["exit", "kill", "hang", "stubborn", "stdout", "stderr", "storm"])
async def test_the_arms_take_turns_and_what_is_burned_in_the_busy_one_is_what_the_faulty_one_took_more(
    runner: Runner, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    isolation = runner("isolation")
    blocks = Blocks()
    monkeypatch.setattr(isolation, "block", blocks)
    monkeypatch.setattr(isolation, "open_host", host)
    found = await isolation.cell(kind, 4, 2, 6, 2.0)
    started = kind in ("exit", "kill", "hang", "stubborn")
    rounds = [each for order in isolation.orders(6) for each in order]
    expected = {
        "calm": ("calm", 1.0, False, 0.0, EQUAL / FAULTS, started),
        "faulty": ("faulty", 2.0, True, 0.0, EQUAL / FAULTS, started),
        "busy": ("busy", 2.0, False, EQUAL, EQUAL / FAULTS, started),
    }
    assert blocks.seen[2:] == [expected[each] for each in rounds]
    assert [found[key] for key in ("kind", "servers", "bad")] == [kind, 4, 2]
    assert found["p99 over busy"] == {load: {"median": 3.0, "pooled": 3.0} for load in ("sequential", "16 at once")}


async def test_where_nobody_misbehaves_nothing_is_burned(runner: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    isolation = runner("isolation")
    blocks = Blocks()
    monkeypatch.setattr(isolation, "block", blocks)
    monkeypatch.setattr(isolation, "open_host", host)
    await isolation.cell("nobody", 4, 0, 6, 2.0)
    assert {each[0] for each in blocks.seen} == {"calm"}


class Ground:
    """Where no server is."""

    folder = Path("/nonexistent")

    def spawned(self) -> list[Any]:
        return []


class Peer:
    """One whose every call succeeds, and that heals."""

    heals = True
    backend = "trio"

    async def call(self, server: str, tool: str, arguments: Any) -> str:
        return ""


@pytest.mark.parametrize("kind", ["exit", "kill", "hang", "stubborn", "stdout", "stderr", "storm"])
async def test_beside_peers_the_arms_are_the_same(
    peers_runner: Runner, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    under_fault = peers_runner("under_fault")
    blocks = Blocks()
    monkeypatch.setattr(under_fault, "block", blocks)
    monkeypatch.setattr(under_fault, "gc", SimpleNamespace(collect=int, freeze=int))
    scene = under_fault.Scene(Ground(), Peer())
    cell: dict[str, Any] = {}
    assert not {*scene.bad} & {*scene.healthy}
    await under_fault.measure(scene, cell, kind, 6, 2.0)
    first, *seen = blocks.seen
    assert first[0] == "calm"
    rounds = [each for order in under_fault.orders(6) for each in order]
    assert [each[0] for each in seen] == rounds
    for name, seconds, _, burn, piece, fresh in seen[2:]:
        assert (burn, piece) == (EQUAL if name == "busy" else 0.0, EQUAL / FAULTS)
        assert seconds == (1.0 if name == "calm" else 2.0)
        assert fresh is (kind in ("exit", "kill", "hang", "stubborn"))
    assert cell["p99 over busy"] == {load: {"median": 3.0, "pooled": 3.0} for load in ("sequential", "16 at once")}


@pytest.fixture(params=["isolation", "under_fault"])
def measured(
    request: pytest.FixtureRequest, runner: Runner, peers_runner: Runner, monkeypatch: pytest.MonkeyPatch
) -> tuple[ModuleType, list[Any]]:
    """Each of the two runners, with no processes and no load; and what its neutral processes were told."""
    module = runner("isolation") if request.param == "isolation" else peers_runner("under_fault")
    burned: list[Any] = []

    class Burners:
        def __init__(self, cores: float, processes: int = 1, piece: float = 0.0, *, fresh: bool = False) -> None:
            burned.append((cores, processes, piece, fresh))
            self.pids = [1]

        def end(self) -> None:
            burned.append("ended")

    so_far = iter([(10.0, 1.0), (13.0, 3.0)])
    clock = iter([100.0, 110.0])

    async def run_load(*args: Any) -> None:
        return None

    monkeypatch.setattr(module, "Burners", Burners)
    monkeypatch.setattr(module, "cpu_below", lambda apart: next(so_far))
    monkeypatch.setattr(module, "perf_counter", lambda: next(clock))
    monkeypatch.setattr(module, "run_load", run_load)
    return module, burned


async def test_a_block_burns_what_it_is_told_and_counts_that_apart(
    measured: tuple[ModuleType, list[Any]], autojump_clock: Any, tmp_path: Path
) -> None:
    module, burned = measured
    if module.__name__ == "isolation":
        scene = module.Scene(None, [], ["good"], tmp_path / "hang")
        scene.bad = ["a", "b", "c"]

        async def again(server: str) -> None:
            return None

        scene.callable_again = again
    else:
        ground = Ground()
        ground.folder = tmp_path
        scene = module.Scene(ground, Peer())
    arm = module.Arm()
    assert await module.block(scene, arm, 10.0, None, 0.5, 0.25, fresh=True) == (0.3, 0.0)
    assert burned == [(0.5, 3, 0.25, True), "ended"]
    figures = arm.figures()
    assert (figures["CPU below %"], figures["burned %"]) == (30.0, 20.0)
