"""The wire level finds what it is for: bugs in what a session makes of bytes, planted one at a time, shrunk to three faults."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from playbill.actors.edge.wire.sdk import import_sdk
from playbill.actors.testing.chaos import Judged, examine, explore, shrunk
from playbill.actors.testing.literal import literal, parse

import_sdk()

import playbill.actors.edge.wire.dispatcher as dispatcher  # noqa: E402
import playbill.actors.edge.wire.lines as lines  # noqa: E402
import playbill.actors.edge.wire.outbox as outbox  # noqa: E402

SEEDS = 300
FAULTS = 3


def the_splitter_drops_a_byte_where_a_line_was_cut(patch: pytest.MonkeyPatch) -> None:
    feed = lines.LineSplitter.feed

    def dropping(self: Any, data: bytes) -> list[bytes]:
        return feed(self, data[1:] if self.partial and len(data) > 1 else data)

    patch.setattr(lines.LineSplitter, "feed", dropping)


def an_answer_nobody_waits_for_goes_to_the_next_call(patch: pytest.MonkeyPatch) -> None:
    respond = dispatcher.PipeDispatcher._on_response

    def generous(self: Any, message: dict[str, Any]) -> None:
        if message["id"] not in self._pending and self._pending:
            message = {**message, "id": next(iter(self._pending))}
        respond(self, message)

    patch.setattr(dispatcher.PipeDispatcher, "_on_response", generous)


def the_end_of_the_stream_leaves_calls_pending(patch: pytest.MonkeyPatch) -> None:
    shut = dispatcher.PipeDispatcher.shut

    def forgetful(self: Any) -> None:
        self._pending.clear()
        shut(self)

    patch.setattr(dispatcher.PipeDispatcher, "shut", forgetful)


def a_line_that_is_no_message_ends_the_connection(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(dispatcher.PipeDispatcher, "_on_garbage", lambda self, line: self.shut())


def a_line_over_the_limit_takes_the_next_one_with_it(patch: pytest.MonkeyPatch) -> None:
    deliver = lines.LineSplitter._deliver

    def greedy(self: Any, line: bytes, into: list[bytes]) -> None:
        if getattr(self, "overlong", False):
            self.overlong = False
        else:
            deliver(self, line, into)

    def report(self: Any, head: bytes) -> None:
        self.overlong = True
        self._on_overlong(head)

    patch.setattr(lines.LineSplitter, "_deliver", greedy)
    patch.setattr(lines.LineSplitter, "_report", report)


def a_server_that_reads_no_more_is_not_noticed(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(outbox.Outbox, "_break", lambda self: self.end())


PLANTS: dict[Callable[[pytest.MonkeyPatch], None], int] = {
    the_splitter_drops_a_byte_where_a_line_was_cut: 10,
    an_answer_nobody_waits_for_goes_to_the_next_call: 10,
    the_end_of_the_stream_leaves_calls_pending: 0,
    a_line_that_is_no_message_ends_the_connection: 30,
    a_line_over_the_limit_takes_the_next_one_with_it: 45,
    a_server_that_reads_no_more_is_not_noticed: 125,
}
"""Each with the seed that is begun with: from 0 on it takes as many seeds more, and finds the same."""


@pytest.mark.parametrize(("plant", "begin"), PLANTS.items(), ids=[plant.__name__ for plant in PLANTS])
def test_a_bug_in_the_bytes_is_found_and_shrunk(plant: Callable[[pytest.MonkeyPatch], None], begin: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        plant(patch)
        seeds = range(begin, SEEDS)
        found: Judged | None = next((each for each in explore(seeds, "wire") if each.kind != "ok"), None)
        assert found is not None
        least = shrunk(found, tries=40)
        assert least.kind == found.kind
        assert least.plan.level == "wire"
        assert len(least.plan.faults) <= FAULTS, literal(least.plan)
        assert examine(parse(literal(least.plan))).reasons == least.reasons
    assert examine(least.plan).kind == "ok"
