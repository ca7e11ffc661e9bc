"""What published snapshots say in numbers, as metrics."""

from __future__ import annotations

from attrs import evolve
from playbill.actors import Budget, Config, NativeTool
from playbill.actors.testing import Script
from playbill.actors.testing.kit import ServerKit

from .conftest import Watch

GREET = NativeTool(name="greet", description="", input_schema={"type": "object"}, handler=lambda: "hello")


async def test_servers_tools_and_the_budget_are_counted(watch: Watch) -> None:
    kit = ServerKit(a=["t", "u", "v", "w"], b=Script(refuse="no"))
    config = Config((evolve(kit.config().servers[0], exclude=("w",)), kit.config().servers[1]))
    async with kit.open(config, budget=3, native_tools=[GREET]) as host:
        await host.ready(require=["a"], timeout=5)
        assert watch.values("playbill.servers") == {"ready": 1, "backing_off": 1}
        assert watch.values("playbill.catalog.tools") == {"native": 1, "on_wire": 2, "over_budget": 1, "excluded": 1}
        assert watch.values("playbill.catalog.budget") == {None: 3}
        assert watch.values("playbill.catalog.tokens") == {}
    assert watch.values("playbill.servers") == {}  # it closed


async def test_tokens_are_told_where_they_are_counted(watch: Watch) -> None:
    async with ServerKit(a=["t"]).open(budget=Budget(None, tokens=1000, count=lambda text: 40)) as host:
        await host.ready(timeout=5)
        assert watch.values("playbill.catalog.tokens") == {None: 40}
        assert watch.values("playbill.catalog.token_budget") == {None: 1000}


async def test_of_several_hosts_the_sum_is_told(watch: Watch) -> None:
    async with ServerKit(a=["t"]).open(budget=10) as one, ServerKit(b=["t", "u"]).open(budget=20) as other:
        await one.ready(timeout=5)
        await other.ready(timeout=5)
        assert watch.values("playbill.servers") == {"ready": 2}
        assert watch.values("playbill.catalog.tools") == {"native": 0, "on_wire": 3}
        assert watch.values("playbill.catalog.budget") == {None: 30}


async def test_the_budget_is_told_when_it_is_exceeded_and_no_longer_so(watch: Watch) -> None:
    kit = ServerKit(a=["t", "u"])
    async with kit.open(budget=1) as host:
        await host.ready(timeout=5)
        await host.tool_set_enabled("a", "t", False)
    (over,) = watch.events("over_budget")
    assert (over.levelname, over.budget, over.wanted, over.trimmed) == ("WARNING", 1, 2, 1)
    assert len(watch.events("within_budget")) == 1
