"""Replacements: stop first, then start; only the newest is spawned, and there are never two copies."""

from __future__ import annotations

from typing import Any

import trio
import trio.testing
from hypothesis import given, settings
from hypothesis import strategies as st
from playbill.supervision import Backoff, ChildSpec, ChildState, Context, Intensity, Restart, Shutdown, Supervisor
from playbill.supervision.probe import STAGES


async def test_a_replacement_starts_when_the_old_one_is_gone(autojump_clock: Any, troupe: Any, bodies: Any) -> None:
    async def drains(ctx: Context) -> None:
        assert await ctx.wait_stop() == "replaced"
        await trio.sleep(4)

    old = await troupe.sup.start(troupe.spec("a", drains, key="old"))
    begin = trio.current_time()
    troupe.sup.replace_soon(troupe.spec("a", bodies.until_stopped, key="new"), stop_reason="replaced")
    assert troupe.sup.keys() == {"a": "new"}
    state = troupe.sup.states()["a"]
    assert (state.stage, state.pending) == ("stopping", True)
    assert troupe.sup.ref("a") is old
    new = await troupe.sup.up("a")
    assert trio.current_time() == begin + 4
    assert new.generation > old.generation
    assert old.down.is_set()
    assert troupe.most_alive == 1


async def test_of_a_storm_of_replacements_only_the_newest_is_spawned(
    autojump_clock: Any, troupe: Any, bodies: Any
) -> None:
    await troupe.sup.start(troupe.spec("a", bodies.stubborn))
    for number in range(100):
        troupe.sup.replace_soon(troupe.spec("a", bodies.until_stopped, key=number))
        if number % 10 == 0:
            await trio.sleep(0.1)
    await troupe.sup.up("a")
    assert troupe.bodies == 2
    assert troupe.most_alive == 1
    assert troupe.sup.keys() == {"a": 99}


async def test_a_replacement_clears_the_history(autojump_clock: Any, troupe: Any, bodies: Any) -> None:
    rules = {"backoff": Backoff(20, jitter=0)}
    first = await troupe.sup.start(troupe.spec("a", bodies.dies_after(1), **rules))
    await first.down.wait()
    begin = trio.current_time()
    troupe.sup.replace_soon(troupe.spec("a", bodies.dies_after(1), **rules))
    assert troupe.sup.states()["a"].first
    second = await troupe.sup.up("a")
    assert trio.current_time() == begin
    await second.down.wait()
    assert troupe.sup.states()["a"].attempt == (1, 5)


async def test_a_replacement_of_a_running_child_that_had_died_starts_afresh(
    autojump_clock: Any, troupe: Any, bodies: Any
) -> None:
    first = await troupe.sup.start(troupe.spec("a", bodies.dies_after(1)))
    await first.down.wait()
    await troupe.sup.up("a")
    assert troupe.sup.states()["a"].restarts == 1
    troupe.sup.replace_soon(troupe.spec("a", bodies.until_stopped))
    await troupe.sup.up("a")
    state = troupe.sup.states()["a"]
    assert (state.restarts, state.first, state.reason, state.attempt) == (0, True, None, None)


async def test_a_stop_after_a_replacement_drops_it(autojump_clock: Any, troupe: Any, bodies: Any) -> None:
    await troupe.sup.start(troupe.spec("a", bodies.stubborn))
    troupe.sup.replace_soon(troupe.spec("a", bodies.until_stopped))
    troupe.sup.stop_soon("a")
    assert troupe.sup.keys() == {}
    assert not troupe.sup.states()["a"].pending
    await trio.sleep(20)
    assert troupe.bodies == 1
    assert troupe.sup.states() == {}


async def test_a_start_after_a_stop_waits_until_the_old_one_is_gone_and_the_newest_wins(
    autojump_clock: Any, troupe: Any, bodies: Any
) -> None:
    await troupe.sup.start(troupe.spec("a", bodies.stubborn))
    troupe.sup.stop_soon("a")
    begin = trio.current_time()
    troupe.sup.start_soon(troupe.spec("a", bodies.until_stopped, key="older"))
    troupe.sup.start_soon(troupe.spec("a", bodies.until_stopped, key="newer"))
    assert troupe.sup.keys() == {"a": "newer"}
    await troupe.sup.up("a")
    assert trio.current_time() == begin + 5
    assert (troupe.bodies, troupe.most_alive) == (2, 1)


async def test_a_waiting_stop_child_returns_although_another_of_that_name_starts(
    autojump_clock: Any, troupe: Any, bodies: Any
) -> None:
    await troupe.sup.start(troupe.spec("a", bodies.stubborn))
    begin = trio.current_time()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(troupe.sup.stop_child, "a")
        await trio.testing.wait_all_tasks_blocked()
        troupe.sup.start_soon(troupe.spec("a", bodies.until_stopped))
    assert trio.current_time() == begin + 5
    await troupe.sup.up("a")


async def test_a_child_that_dies_while_its_replacement_waits_is_not_backed_off(
    autojump_clock: Any, troupe: Any, bodies: Any
) -> None:
    async def crashes_when_stopped(ctx: Context) -> None:
        await ctx.wait_stop()
        raise RuntimeError("boom")

    await troupe.sup.start(troupe.spec("a", crashes_when_stopped))
    begin = trio.current_time()
    troupe.sup.restart_soon("a", stop_reason="restart")
    await troupe.sup.up("a")
    assert trio.current_time() == begin
    assert troupe.sup.states()["a"].first


async def test_a_replaced_start_fails_its_caller_and_the_newest_runs(
    autojump_clock: Any, troupe: Any, bodies: Any
) -> None:
    reasons: list[str] = []

    async def start(key: str) -> None:
        try:
            await troupe.sup.start(troupe.spec("a", bodies.until_stopped, key=key))
        except Exception as error:
            reasons.append(str(error))

    await troupe.sup.start(troupe.spec("a", bodies.stubborn))
    troupe.sup.stop_soon("a")
    with trio.fail_after(100):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(start, "older")
            await trio.testing.wait_all_tasks_blocked()
            nursery.start_soon(start, "newer")
    assert reasons == ["child 'a' did not start: replaced before it was started"]
    assert troupe.sup.keys() == {"a": "newer"}


async def test_giving_up_a_start_that_waits_does_not_hurry_the_one_being_stopped(
    autojump_clock: Any, troupe: Any, bodies: Any
) -> None:
    old = await troupe.sup.start(troupe.spec("a", bodies.stubborn))
    begin = trio.current_time()
    troupe.sup.stop_soon("a")
    with trio.move_on_after(1):
        await troupe.sup.start(troupe.spec("a", bodies.until_stopped))
    assert troupe.sup.keys() == {}
    await old.down.wait()
    assert trio.current_time() == begin + 5
    await trio.testing.wait_all_tasks_blocked()
    assert troupe.bodies == 1


names = st.sampled_from("ab")
steps = st.lists(
    st.one_of(
        st.tuples(st.just("replace"), names, st.sampled_from(["quiet", "stubborn", "dies", "hangs", "stuck"])),
        st.tuples(st.just("start"), names, st.sampled_from(["quiet", "stubborn", "dies"])),
        st.tuples(st.sampled_from(["stop", "stop now", "restart", "revive"]), names, st.none()),
        st.tuples(st.just("wait"), st.none(), st.sampled_from([0.0, 0.3, 1.0, 6.0, 40.0])),
    ),
    max_size=25,
)


@settings(max_examples=80, deadline=None, derandomize=True)
@given(steps)
def test_whatever_is_asked_of_it_there_is_one_copy_and_the_newest_wins(steps: list[Any]) -> None:
    """Any run of operations and deaths: never two copies, what was asked for last is what holds, everything ends."""

    async def main() -> None:
        alive: dict[str, int] = {}
        wanted: dict[str, int] = {}
        spawned: dict[str, list[int]] = {"a": [], "b": []}
        stages: dict[str, str] = {}

        def observe(state: ChildState) -> None:
            before = stages.get(state.name, "removed")
            allowed = {"starting"} if before == "removed" else {before, *STAGES[before]}  # type: ignore[index]
            assert state.stage in allowed, f"{before} → {state.stage}"
            stages[state.name] = state.stage

        def faulty(state: ChildState) -> None:
            try:
                observe(state)
            except AssertionError as error:
                faults.append(str(error))

        faults: list[str] = []
        sup = Supervisor(observe=faulty)

        def spec(name: str, kind: str, key: int) -> ChildSpec:
            async def body(ctx: Context) -> None:
                alive[name] = alive.get(name, 0) + 1
                assert alive[name] == 1
                assert sup.keys().get(name) == key, "an older one was spawned, or a removed one"
                spawned[name].append(key)
                try:
                    if kind != "hangs":
                        ctx.started()
                    if kind == "dies":
                        await trio.sleep(0.5)
                        raise RuntimeError("boom")
                    if kind == "quiet":
                        await ctx.wait_stop()
                    else:
                        await trio.sleep_forever()
                finally:
                    if kind == "stuck":
                        with trio.CancelScope(shield=True):
                            await trio.sleep(3)
                    alive[name] -= 1

            return ChildSpec(
                name,
                body,
                restart=Restart.PERMANENT,
                backoff=Backoff(jitter=0),
                intensity=Intensity(restarts=2, window=60, then="park", park_retry=100),
                shutdown=Shutdown(grace=2, join=1),
                start_timeout=1,
                key=key,
            )

        async with trio.open_nursery() as nursery:
            await nursery.start(sup.run)
            for key, (what, name, detail) in enumerate(steps):
                match what:
                    case "replace":
                        sup.replace_soon(spec(name, detail, key))
                        wanted[name] = key
                    case "start":
                        try:
                            sup.start_soon(spec(name, detail, key))
                        except ValueError:
                            assert name in sup.states()
                            continue
                        wanted[name] = key
                    case "stop" | "stop now":
                        sup.stop_soon(name, grace=None if what == "stop" else 0)
                        wanted.pop(name, None)
                    case "restart" | "revive":
                        try:
                            (sup.restart_soon if what == "restart" else sup.revive)(name)
                        except KeyError:
                            assert name not in wanted
                    case "wait":
                        await trio.sleep(detail)
                assert sup.keys() == wanted
            await trio.sleep(60)
            assert sup.keys() == wanted
            assert set(sup.states()) == set(wanted)
            for name, key in wanted.items():
                assert spawned[name][-1] == key
            for name in "ab":
                assert spawned[name] == sorted(spawned[name])
            with trio.fail_after(10):
                await sup.stop()
        assert faults == []
        assert set(stages.values()) <= {"removed"}
        assert set(alive.values()) <= {0}
        assert sup.states() == {}

    trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))
