"""What a server does not declare is known at once to be nothing, also when an earlier incarnation of it had some."""

from __future__ import annotations

from typing import Any

import pytest
import trio
import trio.testing
from playbill.actors import Config, Prompt, Resource, ServerEntry, ServerSettings
from playbill.actors.board import Board
from playbill.actors.model.config import ConfigState
from playbill.actors.model.status import Lifecycle
from playbill.actors.offering import Offering


class Bare:
    """A library of a server that declares some, or none, of its shelves, and is asked for none."""

    def __init__(self, *has: str) -> None:
        self.has = frozenset(has)

    def listen(self, changed: Any, updated: Any) -> None:
        """Nothing is ever announced."""

    async def list_resources(self) -> Any:
        await trio.sleep_forever()

    list_prompts = list_resources


@pytest.mark.parametrize(("declared", "prompts"), [((), ()), (("prompts",), ("old",))])
async def test_what_is_no_longer_declared_is_gone_and_current(
    declared: tuple[str, ...], prompts: tuple[str, ...], autojump_clock: trio.testing.MockClock
) -> None:
    board = Board(ConfigState(1, Config((ServerEntry("s", command="x"),)), None))
    board.set_lifecycle("s", Lifecycle(stage="running", generation=1))
    board.offer("s", 1, prompts=(Prompt("old"),), prompts_generation=1, prompts_error="was cut")
    board.offer("s", 1, resources=(Resource("a:b", name="b"),), resources_generation=1, resources_error="was cut")
    board.set_lifecycle("s", Lifecycle(stage="running", generation=2))
    with trio.move_on_after(1):
        await Offering("s", 2, Bare(*declared), board, ServerSettings()).run()  # type: ignore[arg-type]
    offers = board.status("s").offers
    assert (offers.resources, offers.resources_error, offers.resources_generation) == ((), None, 2)
    assert tuple(prompt.name for prompt in offers.prompts) == prompts
    assert (offers.prompts_error, offers.prompts_generation) == (("was cut", 1) if prompts else (None, 2))
