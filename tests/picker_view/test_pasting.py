"""What is pasted is one text, and no keys; and however its end gets lost, keys are keys again."""

from __future__ import annotations

import trio
import trio.testing
from playbill.actors.picker.pasting import Pasting
from playbill.actors.picker.values import Event, Key, Paste
from playbill.actors.picker.view import Picker

from .test_view import host_of, press, until


def told(picker: Picker) -> list[Event]:
    """The keys and pastes that a picker is told of from here on."""
    events: list[Event] = []
    tell = picker.tell

    def note(event: Event) -> None:
        if isinstance(event, Key | Paste):
            events.append(event)
        tell(event)

    picker.tell = note  # type: ignore[method-assign]
    return events


async def test_a_paste_is_one_event_and_asks_the_host_for_nothing(autojump_clock: trio.testing.MockClock) -> None:
    host = host_of()
    picker = Picker(host)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(picker.run)
        await until(lambda: picker._desk is not None)
        events = told(picker)
        press(picker, "down", "begin paste", *"d d", "enter", *"rq", "tab", "up", "end paste", "up")
        assert events == [Key("down"), Paste("d d\nrq\t"), Key("up")]
        await trio.testing.wait_all_tasks_blocked()
        assert host.asked == []
        assert not picker.state.ended
        nursery.cancel_scope.cancel()


async def test_a_paste_that_never_ends_is_over_when_nothing_more_comes(mock_clock: trio.testing.MockClock) -> None:
    picker = Picker(host_of())
    events = told(picker)
    press(picker, "begin paste", *"ab")
    mock_clock.jump(2.9)
    press(picker, "c")
    assert events == []
    mock_clock.jump(3.1)
    press(picker, "down")
    assert events == [Paste("abc"), Key("down")]


async def test_an_end_without_a_beginning_is_nothing(mock_clock: trio.testing.MockClock) -> None:
    picker = Picker(host_of())
    events = told(picker)
    press(picker, "end paste", "down")
    assert events == [Key("down")]


def test_of_a_long_paste_the_beginning_is_kept() -> None:
    pasting = Pasting()
    assert pasting.take("begin paste", 0.0) == (True, None)
    for number in range(70_000):
        assert pasting.take("xy"[number % 2], 0.0) == (True, None)
    ours, text = pasting.take("end paste", 0.0)
    assert ours
    assert text == "xy" * 32_768
    assert pasting.take("x", 0.0) == (False, None)
