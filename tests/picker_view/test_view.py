"""The widget, drawn on urwid canvases without a terminal, and fed by a host that the test scripts."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import trio
import urwid
from playbill.actors.model.errors import UnknownTool
from playbill.actors.picker.values import Key, News
from playbill.actors.picker.view import Picker

from .scripted import ScriptedHost, server, snapshot, tool


@pytest.fixture(autouse=True)
def unicode() -> None:
    """As on a terminal of UTF-8."""
    urwid.set_encoding("utf-8")


def screen(picker: Picker, columns: int = 100, rows: int = 20) -> list[str]:
    """What the widget draws, a text for each line."""
    canvas = picker.render((columns, rows), focus=True)
    assert (canvas.cols(), canvas.rows()) == (columns, rows)
    lines = [line.decode() for line in canvas.text]
    assert all(urwid.calc_width(line, 0, len(line)) == columns for line in lines), "every line is as wide as the screen"
    return [line.rstrip() for line in lines]


def seen(picker: Picker, columns: int = 100, rows: int = 20) -> str:
    """The same in one text."""
    return "\n".join(screen(picker, columns, rows))


def press(picker: Picker, *keys: str) -> None:
    """Press keys, as urwid tells them."""
    for key in keys:
        picker.keypress((100, 20), key)


async def until(said: Callable[[], bool]) -> None:
    """Let the others run until it is so, however many steps that takes; in real or in virtual time."""
    with trio.fail_after(10):
        while not said():
            await trio.sleep(0.01)


def host_of(count: int = 3) -> ScriptedHost:
    """A host of one server with so many tools."""
    return ScriptedHost(snapshot(server("files", *(tool(f"tool_{number}") for number in range(count)))))


async def test_it_shows_the_first_snapshot_without_being_run(autojump_clock: trio.testing.MockClock) -> None:
    lines = screen(Picker(host_of()))
    assert "3 of 3 tools on the wire" in lines[0]
    assert "files" in lines[1]
    assert "[x]  tool_0" in lines[2]
    assert "Does tool_0" in lines[2]


async def test_it_shows_what_the_host_publishes(autojump_clock: trio.testing.MockClock) -> None:
    host = host_of()
    picker = Picker(host)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(picker.run)
        await until(lambda: "files" in seen(picker))
        host.publish(server("files"), server("clock", tool("now")))
        await until(lambda: "now" in seen(picker) and "tool_0" not in seen(picker))
        nursery.cancel_scope.cancel()


async def test_a_toggle_is_seen_at_once_and_done_by_the_host(autojump_clock: trio.testing.MockClock) -> None:
    host = host_of()
    host.gate = trio.Event()
    picker = Picker(host)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(picker.run)
        await until(lambda: picker._desk is not None)
        press(picker, "down", " ")
        assert "[-]  tool_0" in seen(picker)
        host.gate.set()
        await until(lambda: "[ ]  tool_0" in seen(picker))
        assert host.asked == [("tool", "files", "tool_0", False)]
        nursery.cancel_scope.cancel()


async def test_toggles_of_one_tool_are_done_in_the_order_of_the_keys(autojump_clock: trio.testing.MockClock) -> None:
    host = host_of()
    picker = Picker(host)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(picker.run)
        await until(lambda: picker._desk is not None)
        press(picker, "down", *([" "] * 9))
        await until(lambda: len(host.asked) == 9 and not picker.state.flights)
        assert [asked[3] for asked in host.asked] == [False, True] * 4 + [False]
        assert "[ ]  tool_0" in seen(picker)
        nursery.cancel_scope.cancel()


async def test_a_refused_operation_goes_back_and_says_why(autojump_clock: trio.testing.MockClock) -> None:
    host = host_of()
    host.refuse = UnknownTool("files", "tool_0")
    picker = Picker(host)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(picker.run)
        await until(lambda: picker._desk is not None)
        press(picker, "down", " ")
        await until(lambda: not picker.state.flights)
        assert "[x]  tool_0" in seen(picker)
        assert str(host.refuse) in screen(picker)[-2]
        nursery.cancel_scope.cancel()


async def test_a_defect_of_an_operation_is_told_and_ends_nothing(autojump_clock: trio.testing.MockClock) -> None:
    host = host_of()
    host.refuse = ZeroDivisionError("by\nzero")
    picker = Picker(host)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(picker.run)
        await until(lambda: picker._desk is not None)
        press(picker, "r")
        await until(lambda: "unexpected ZeroDivisionError: by zero" in screen(picker)[-2])
        nursery.cancel_scope.cancel()


async def test_keys_before_it_runs_are_not_lost(autojump_clock: trio.testing.MockClock) -> None:
    host = host_of()
    picker = Picker(host)
    press(picker, "down", " ")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(picker.run)
        await until(lambda: host.asked == [("tool", "files", "tool_0", False)])
        nursery.cancel_scope.cancel()


async def test_run_ends_when_the_person_quits(autojump_clock: trio.testing.MockClock) -> None:
    picker = Picker(host_of())
    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(picker.run)
            await until(lambda: picker._desk is not None)
            press(picker, "q")


async def test_run_ends_when_the_host_closes(autojump_clock: trio.testing.MockClock) -> None:
    host = host_of()
    picker = Picker(host)
    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(picker.run)
            await until(lambda: picker._desk is not None)
            host.cell.close()


async def test_a_key_it_has_no_use_for_is_the_embedding_programs() -> None:
    picker = Picker(host_of())
    assert picker.keypress((80, 20), "f5") == "f5"
    assert picker.keypress((80, 20), "down") is None


async def test_at_rest_nothing_runs(mock_clock: trio.testing.MockClock) -> None:
    """No tick is waited for: virtual time that would bring one changes nothing."""
    picker = Picker(host_of())
    told: list[object] = []
    tell = picker.tell
    async with trio.open_nursery() as nursery:
        nursery.start_soon(picker.run)
        await trio.testing.wait_all_tasks_blocked()
        mock_clock.jump(1.0)  # the pause after the first snapshot
        await trio.testing.wait_all_tasks_blocked()
        picker.tell = lambda event: told.append(event) or tell(event)  # type: ignore[method-assign]
        for _ in range(30):
            mock_clock.jump(60.0)
            await trio.testing.wait_all_tasks_blocked()
        assert told == []
        nursery.cancel_scope.cancel()


async def test_a_retry_counts_down_and_is_told_of_only_as_long_as_there_is_one(
    autojump_clock: trio.testing.MockClock,
) -> None:
    host = ScriptedHost(
        snapshot(
            server(
                "files", phase="backing_off", connected=False, next_retry_at=trio.current_time() + 12.0, attempt=(4, 5)
            )
        )
    )
    picker = Picker(host)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(picker.run)
        await until(lambda: "retry in 12 s (4th of 5)" in seen(picker))
        await until(lambda: "retry in 11 s (4th of 5)" in seen(picker))
        await until(lambda: "retry in 3 s (4th of 5)" in seen(picker))
        host.publish(server("files"))
        await until(lambda: "retry" not in seen(picker))
        assert picker._pause() is None
        nursery.cancel_scope.cancel()


async def test_a_storm_of_snapshots_is_looked_at_thirty_times_a_second(autojump_clock: trio.testing.MockClock) -> None:
    host = host_of()
    picker = Picker(host)
    drawn: list[int] = []
    async with trio.open_nursery() as nursery:
        nursery.start_soon(picker.run)
        begun = trio.current_time()
        while trio.current_time() < begun + 2.0:
            host.publish(server("files", tool(f"tool_{len(drawn)}")))
            await trio.sleep(0.001)
            if not drawn or picker.state.snapshot.version != drawn[-1]:
                drawn.append(picker.state.snapshot.version)
        assert len(drawn) <= 64
        await until(lambda: picker.state.snapshot is host.cell.value)
        nursery.cancel_scope.cancel()


async def test_a_refresh_of_two_thousand_tools_makes_only_the_lines_on_the_screen() -> None:
    host = host_of(2_000)
    picker = Picker(host)
    made: list[int] = []
    for at in range(40):
        press(picker, *(["page down"] if at % 2 else ["down"]))
        host.publish(server("files", *(tool(f"tool_{number}", description=f"v{at}") for number in range(2_000))))
        picker.tell(picker_news(host))
        screen(picker, 120, 40)
        made.append(picker.painted)
    assert max(made) <= 40


def picker_news(host: ScriptedHost) -> News:
    """The event of the newest snapshot."""
    return News(host.snapshot())


async def test_a_row_that_cannot_be_painted_says_so_and_the_others_are_there(monkeypatch: pytest.MonkeyPatch) -> None:
    from playbill.actors.picker.paint import Brush

    paint = Brush._tool

    def broken(self: Brush, row: object) -> object:
        if row.name == "tool_1":  # type: ignore[attr-defined]
            raise KeyError("a\x1b[31mcolour")
        return paint(self, row)  # type: ignore[arg-type]

    monkeypatch.setattr(Brush, "_tool", broken)
    text = seen(Picker(host_of()))
    assert "this row cannot be shown: KeyError: 'a" in text
    assert "\x1b" not in text
    assert "tool_0" in text
    assert "tool_2" in text


@pytest.mark.parametrize("columns", [1, 2, 7, 13, 40, 59, 60, 80, 99, 100, 240])
@pytest.mark.parametrize("rows", [1, 2, 3, 5, 24])
async def test_every_size_is_drawn(columns: int, rows: int) -> None:
    host = ScriptedHost(
        snapshot(
            server("文件服务器", tool("読む", title="日本語の題", description="説明 " * 30), tool("e\u0301\u0301cole")),
            server(
                "emoji",
                tool("👩‍👩‍👧 family", description="🎭🎭🎭" * 20),
                error="it died: 日本語",
                source="/a/long/" + "x" * 99,
            ),
        )
    )
    picker = Picker(host)
    screen(picker, columns, rows)
    for key in ("?", "esc", "i", "esc", "a", "x", "esc", "/", "読", "enter", "l"):
        press(picker, key)
        screen(picker, columns, rows)


async def test_a_narrow_screen_keeps_names_and_what_is_wrong() -> None:
    host = ScriptedHost(
        snapshot(server("files", tool("read_file"), tool("write_file", enabled=False, verdict="excluded", reason="r")))
    )
    lines = screen(Picker(host), 40, 12)
    assert lines[2] == "      ready · 1 of 2 tools on the wire"
    assert lines[3].split() == ["[x]", "read_file"]
    assert lines[4].split() == ["[", "]", "write_file", "excluded"]


async def test_in_ascii_nothing_else_is_drawn() -> None:
    host = ScriptedHost(snapshot(server("文件", tool("読む", description="a — b…")), server("x", phase="untrusted")))
    picker = Picker(host, ascii=True)
    for keys in ([], ["?"], ["esc", "i"], ["esc", "a"], ["ü"]):
        press(picker, *keys)
        text = seen(picker)
        assert text.isascii()
    press(picker, "esc")
    assert "a - b..." in seen(picker)


async def test_the_filter_shows_what_is_typed_and_matches() -> None:
    picker = Picker(host_of(30))
    press(picker, "/", "1", "9")
    lines = screen(picker)
    assert lines[-2].startswith("/19")
    assert [line for line in lines if "tool_" in line] == [line for line in lines if "tool_19" in line]
    press(picker, "enter")
    assert "filter: 19" in screen(picker)[-2]
    press(picker, "esc")
    assert "tool_0" in seen(picker)


async def test_a_log_is_read_to_its_end(autojump_clock: trio.testing.MockClock) -> None:
    picker = Picker(host_of())
    async with trio.open_nursery() as nursery:
        nursery.start_soon(picker.run)
        await until(lambda: picker._desk is not None)
        press(picker, "l")
        await until(lambda: "and that" in seen(picker))
        press(picker, "esc")
        assert "tool_0" in seen(picker)
        nursery.cancel_scope.cancel()


async def test_what_breaks_in_the_host_leaves_run_as_it_is() -> None:
    host = host_of()
    host.broken = ValueError("planted")
    with pytest.raises(ValueError, match="planted"):
        await Picker(host).run()


async def test_the_cursor_stays_on_its_line_while_rows_come_above_it() -> None:
    host = ScriptedHost(snapshot(server("a", tool("one")), server("b", *(tool(f"tool_{n}") for n in range(50)))))
    picker = Picker(host)
    press(picker, *["down"] * 9)
    at = next(n for n, line in enumerate(screen(picker)) if "tool_6" in line)
    host.publish(
        server("a", tool("one"), tool("two"), tool("three")), server("b", *(tool(f"tool_{n}") for n in range(50)))
    )
    picker.tell(picker_news(host))
    assert "tool_6" in screen(picker)[at]
    assert picker.state.cursor == ("tool", "b", "tool_6")


def test_values_are_what_the_keys_are() -> None:
    assert Key("down").name == "down"
