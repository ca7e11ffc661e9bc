"""Determinism contract of these tests: virtual time only (`autojump_clock`, or a MockClock in the property tests), seeded
randomness, and no sleep as synchronisation: a sleep here is always an amount of virtual time that the test is about.
"""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
import trio
from playbill.supervision import Ask, Backoff, Cell, ChildSpec, ChildState, Context, Supervisor


class Troupe:
    """A supervisor under observation, and bodies that do as they are told."""

    def __init__(self, **options: Any) -> None:
        self.states: list[ChildState] = []
        self.alive: dict[str, int] = {}
        self.most_alive = 0
        self.bodies = 0
        self.seen: Cell[ChildState | None] = Cell(None)
        self.sup = Supervisor("troupe", rng=random.Random(7), observe=self._observe, **options)

    def _observe(self, state: ChildState) -> None:
        self.states.append(state)
        self.seen.set(state)

    async def stage(self, name: str, stage: str) -> None:
        """Wait until a child is in that stage."""
        await self.seen.wait(lambda _: self.sup.states()[name].stage == stage)

    def stages(self, name: str) -> list[str]:
        """The stages a child went through, as observed, runs of one stage once."""
        seen: list[str] = []
        for state in self.states:
            if state.name == name and seen[-1:] != [state.stage]:
                seen.append(state.stage)
        return seen

    def body(
        self, then: Callable[[Context], Awaitable[None]], *, started: bool = True
    ) -> Callable[[Context], Awaitable[None]]:
        """A body that is counted while it lives, acknowledges its start and does ``then``."""

        async def run(ctx: Context) -> None:
            self.bodies += 1
            self.alive[ctx.name] = self.alive.get(ctx.name, 0) + 1
            self.most_alive = max(self.most_alive, self.alive[ctx.name])
            try:
                if started:
                    ctx.started()
                await then(ctx)
            finally:
                self.alive[ctx.name] -= 1

        return run

    def spec(self, name: str, then: Callable[[Context], Awaitable[None]], **rules: Any) -> ChildSpec:
        """A child of that body; backoffs have no jitter unless asked for."""
        started = rules.pop("started", True)
        rules.setdefault("backoff", Backoff(jitter=0))
        return ChildSpec(name, self.body(then, started=started), **rules)


async def until_stopped(ctx: Context) -> None:
    """Live quietly; answer asks with their message."""
    async for item in ctx.mail():
        if isinstance(item, Ask):
            item.reply(item.message)


async def stubborn(ctx: Context) -> None:
    """Ignore the stop message; only a cancellation ends it."""
    await trio.sleep_forever()


def dies_after(seconds: float, *, healthy: bool = False, error: str = "boom") -> Callable[[Context], Awaitable[None]]:
    """Live for that long, then raise."""

    async def run(ctx: Context) -> None:
        if healthy:
            ctx.healthy()
        await trio.sleep(seconds)
        raise RuntimeError(error)

    return run


def refuses_to_die(seconds: float) -> Callable[[Context], Awaitable[None]]:
    """Shield itself from its cancellation for that long."""

    async def run(ctx: Context) -> None:
        try:
            await trio.sleep_forever()
        finally:
            with trio.CancelScope(shield=True):
                await trio.sleep(seconds)

    return run


class Bodies:
    """The ready-made bodies, for tests to take from a fixture."""

    until_stopped = staticmethod(until_stopped)
    stubborn = staticmethod(stubborn)
    dies_after = staticmethod(dies_after)
    refuses_to_die = staticmethod(refuses_to_die)


@pytest.fixture
def bodies() -> type[Bodies]:
    return Bodies


@pytest.fixture
def make_troupe() -> type[Troupe]:
    return Troupe


@pytest.fixture
async def troupe() -> AsyncIterator[Troupe]:
    """A troupe whose supervisor runs; aborted after the test."""
    made = Troupe()
    async with trio.open_nursery() as nursery:
        await nursery.start(made.sup.run)
        yield made
        made.sup.abort()
