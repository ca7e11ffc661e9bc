"""Views for other profiles than the host's: who judges what servers list for them, and when."""

from __future__ import annotations

import gc
import json

import pytest
import trio
from playbill.actors import PROFILES, Snapshot
from playbill.actors.board import PROFILES_AHEAD, Board
from playbill.actors.model import tool as tool_module
from playbill.actors.model.config import Config, ConfigState
from playbill.actors.model.profile import PORTABLE, Profile
from playbill.actors.model.status import ToolDef
from playbill.actors.testing import Script, ScriptedServers

from .conftest import Open


class Judged:
    """Counts what is judged, by profile."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.names: list[str] = []
        real = tool_module.fit

        def fit(source: ToolDef, name: str, profile: Profile) -> object:
            self.names.append(profile.name)
            return real(source, name, profile)

        monkeypatch.setattr(tool_module, "fit", fit)

    def since(self) -> list[str]:
        said, self.names = self.names, []
        return sorted(said)


async def test_a_new_list_is_judged_for_views_before_they_are_read(
    opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    judged = Judged(monkeypatch)
    servers = ScriptedServers(a=["x", "y"])
    async with opened(servers) as host:
        await host.ready(timeout=5)
        views = [host.view(profile=name) for name in ("openai", "anthropic", "openai", "portable")]
        assert judged.since() == ["portable"] * 2, "opening one judges nothing"
        for view in views:
            view.snapshot()
        assert judged.since() == ["anthropic"] * 2 + ["openai"] * 2
        servers.scripts["a"].tools = Script(("x", "new")).tools
        servers.live["a"].announce()
        await trio.sleep(1)
        assert set(judged.since()) == {"anthropic", "openai", "portable"}
        for view in views:
            assert [tool.bare for tool in view.snapshot().catalog.tools] == ["new", "x"]
        assert judged.since() == [], "reading them judges nothing any more"
        del view, views
        gc.collect()
        servers.scripts["a"].tools = Script(("newer",)).tools
        servers.live["a"].announce()
        await trio.sleep(1)
        assert judged.since() == ["portable"], "nobody reads for the others"


async def test_ten_profiles_by_turns_are_judged_once_each(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    judged = Judged(monkeypatch)
    async with opened(ScriptedServers(a=["x"])) as host:
        await host.ready(timeout=5)
        names = [name for name in PROFILES if name != PORTABLE.name][:10]
        judged.since()
        for _ in range(2):
            for name in names:
                host.view(profile=name).snapshot()
                host.preview(profile=name)
        assert judged.since() == sorted(names)


def test_no_number_of_profiles_costs_lists_more_than_a_definition_remembers() -> None:
    class Viewer:
        pass

    board = Board(ConfigState(1, Config()))
    viewers = [Viewer() for _ in range(3 * PROFILES_AHEAD)]
    for number, viewer in enumerate(viewers):
        board.view_for(viewer, Profile(name=f"p{number % 20}", source="made up"))
    assert board.profiles(PORTABLE)[0] is PORTABLE
    assert len(set(board.profiles(PORTABLE))) == PROFILES_AHEAD + 1 <= tool_module._PROFILES_KEPT
    viewers.clear()
    del viewer
    gc.collect()
    assert board.profiles(PORTABLE) == (PORTABLE,)


@pytest.mark.parametrize("crashes_at", ["the list", "never"])
async def test_keys_in_another_order_over_a_crash_of_the_projector_leave_a_tools_bytes(
    opened: Open, crashes_at: str
) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "INT"}}, "required": ["b"]}

    def turned(value: object) -> object:
        if not isinstance(value, dict):
            return value
        return {key: turned(each) for key, each in reversed(list(value.items()))}

    def listing(given: object, *more: str) -> Script:
        return Script((ToolDef("t", description="d", input_schema=given), *more))  # type: ignore[arg-type]

    def sent(snapshot: Snapshot) -> str:
        return json.dumps(snapshot.catalog.for_provider("openai")[-1])

    crashes = [0]

    class Crashing:
        async def hit(self, site: str, who: str) -> None:
            await trio.lowlevel.checkpoint()
            if site == "projector" and crashes[0]:
                crashes[0] -= 1
                raise RuntimeError("a defect of ours")

    servers = ScriptedServers(a=listing(schema))
    async with opened(servers, sites=Crashing()) as host:
        await host.ready(timeout=5)
        view = host.view(profile="openai")
        before, seen_before = host.snapshot(), view.snapshot()
        for number in range(3):
            crashes[0] = 1 if crashes_at == "the list" else 0
            servers.scripts["a"].tools = listing(turned(schema), *(f"more_{each}" for each in range(number + 1))).tools
            servers.live["a"].announce()
            await trio.sleep(5)
            assert crashes[0] == 0
            assert len(host.snapshot().catalog.tools) == number + 2
            assert sent(host.snapshot()) == sent(before)
            assert sent(view.snapshot()) == sent(seen_before)
            assert host.snapshot().catalog.diff(before.catalog).changed == ()
