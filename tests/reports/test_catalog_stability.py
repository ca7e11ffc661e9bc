"""The bytes that are sent, from one start to the next and through restarts: a prompt cache lives while they are the same."""

from __future__ import annotations

import json
import os
import random
import signal

from playbill.actors import Catalog, Config, ServerEntry, open_host
from playbill.actors.testing import Script, ScriptedServers
from playbill.supervision import Backoff

from .conftest import PATIENCE, Project, fake, opened, until, virtual_time

NAMES = ("delta", "alpha", "echo", "bravo", "charlie")


def sent(catalog: Catalog) -> bytes:
    """What goes to providers, as bytes."""
    return b"\n".join(json.dumps(catalog.for_provider(name)).encode() for name in ("openai", "anthropic", "mcp"))


@virtual_time
async def test_b111_twenty_starts_with_delays_of_all_kinds_send_the_same_bytes() -> None:
    seen: set[tuple[str, bytes]] = set()
    arrivals: set[tuple[str, ...]] = set()
    for seed in range(20):
        rng = random.Random(seed)
        scripts = {}
        for name in NAMES:
            tools = [f"{name}_{n}" for n in range(4)]
            rng.shuffle(tools)
            scripts[name] = Script(tools, connect_delay=rng.uniform(0, 3), list_delay=rng.uniform(0, 3))
        entries = tuple(ServerEntry(name, command=name) for name in NAMES)
        async with opened(ScriptedServers(**scripts), Config(entries)) as host:
            order: list[str] = []
            async for snapshot in host.changes():
                order += [s.name for s in snapshot.model.servers if s.phase == "ready" and s.name not in order]
                if len(order) == len(NAMES):
                    break
            arrivals.add(tuple(order))
            catalog = host.snapshot().catalog
            seen.add((catalog.digest, sent(catalog)))
    assert len(arrivals) > 10, "they came in many orders"
    assert len(seen) == 1


async def test_b111_real_servers_that_start_at_different_speeds_send_the_same_bytes(project: Project) -> None:
    seen = set()
    for seed in range(3):
        rng = random.Random(seed)
        project.write(**{name: fake(slow=rng.choice([0, 0.2, 0.4])) for name in NAMES[:3]})
        async with open_host(project.path) as host:
            assert await host.ready(timeout=PATIENCE)
            seen.add((host.snapshot().catalog.digest, sent(host.snapshot().catalog)))
    assert len(seen) == 1


async def test_b112_servers_that_are_killed_one_after_the_other_leave_the_catalog_as_it_was(
    project: Project, impatient: None
) -> None:
    project.write(**{name: fake() for name in NAMES[:3]})
    async with open_host(project.path, backoff=Backoff(base=0.01, max=0.1, reset_after=30.0)) as host:
        assert await host.ready(timeout=PATIENCE)
        before = host.snapshot().catalog
        for name in NAMES[:3]:
            pid = host.snapshot().model.server(name).pid
            os.kill(pid, signal.SIGKILL)

            def recovered(snapshot: object, name: str = name, pid: int = pid) -> bool:
                # At no moment in between was anything else sent: not even the version of the catalog is another one.
                assert snapshot.catalog is before  # type: ignore[attr-defined]
                state = snapshot.model.server(name)  # type: ignore[attr-defined]
                return state.phase == "ready" and state.pid != pid and state.list_state == "current"

            after = (await until(host, recovered)).catalog
            assert (after.digest, after.version, sent(after)) == (before.digest, before.version, sent(before))
        # And what is asked for changes it as little.
        await host.restart("alpha")
        assert await host.ready(timeout=PATIENCE)
        assert (await host.reload()).catalog is before
