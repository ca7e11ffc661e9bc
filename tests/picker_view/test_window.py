"""The window on a long list: what is on the screen, where the cursor is on it, and how little is made."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from playbill.actors.picker.walker import Window


def rows(heights: list[int]) -> list[list[tuple[int, int]]]:
    """Rows of so many lines each: (row, line of it)."""
    return [[(at, line) for line in range(height)] for at, height in enumerate(heights)]


def look(
    window: Window, heights: list[int], cursor: int, height: int, *, first: int = 0, moved: bool = True
) -> list[tuple[int, int]]:
    """The lines on the screen."""
    made = rows(heights)
    return window.lines(len(heights), first, cursor, height, lambda at: made[at], moved=moved)


def test_the_list_does_not_move_while_the_cursor_has_room() -> None:
    window = Window()
    seen = [look(window, [1] * 50, cursor, 10) for cursor in range(10)]
    assert all(each == seen[0] for each in seen)
    assert look(window, [1] * 50, 10, 10)[0] == (1, 0)


def test_going_up_moves_the_list_only_at_the_top() -> None:
    window = Window()
    look(window, [1] * 50, 30, 10)
    seen = look(window, [1] * 50, 29, 10)
    assert look(window, [1] * 50, 25, 10) == seen
    for cursor in range(24, 10, -1):
        look(window, [1] * 50, cursor, 10)
    assert look(window, [1] * 50, 10, 10)[0] == (10, 0)


def test_rows_of_several_lines_do_not_move_the_list_while_the_cursor_has_room() -> None:
    heights = [1, 2, 1, 3, 1, 2] * 9
    window = Window()
    seen = look(window, heights, 0, 12)
    for cursor in (1, 2, 3, 4, 5, 4, 3, 1, 0, 5, 2):
        assert look(window, heights, cursor, 12) == seen


def test_a_row_of_several_lines_is_seen_whole_at_the_bottom() -> None:
    heights = [1] * 10 + [3] + [1] * 10
    window = Window()
    for cursor in range(9):
        look(window, heights, cursor, 10)
    assert look(window, heights, 10, 10)[-3:] == [(10, 0), (10, 1), (10, 2)]
    # It grows where it is: an error came.
    window = Window()
    look(window, [1] * 20, 9, 10)
    assert look(window, [1] * 9 + [2] + [1] * 10, 9, 10, moved=False)[-2:] == [(9, 0), (9, 1)]


def test_rows_that_come_above_leave_the_cursor_on_its_line() -> None:
    window = Window()
    look(window, [1] * 50, 20, 10)
    before = look(window, [1] * 50, 18, 10).index((18, 0))
    after = look(window, [1] * 53, 21, 10, moved=False)
    assert after.index((21, 0)) == before


def test_the_list_is_closed_up_at_its_end() -> None:
    window = Window()
    look(window, [1] * 50, 49, 10)
    assert [at for at, _ in look(window, [1] * 43, 42, 10, moved=False)] == list(range(33, 43))
    assert [at for at, _ in look(window, [1] * 4, 2, 10, moved=False)] == [0, 1, 2, 3]


def test_a_jump_shows_the_cursor_at_the_edge_it_went_to() -> None:
    window = Window()
    assert look(window, [1] * 1000, 999, 10)[-1] == (999, 0)
    assert look(window, [1] * 1000, 0, 10)[0] == (0, 0)


def test_of_a_hundred_thousand_rows_only_those_on_the_screen_are_made() -> None:
    window = Window()
    look(window, [1] * 100_000, 50_000, 40)
    assert window.painted <= 41
    look(window, [1] * 100_000, 50_001, 40)
    assert window.painted <= 41


@given(
    heights=st.lists(st.integers(1, 3), min_size=1, max_size=60),
    first=st.integers(0, 3),
    height=st.integers(1, 20),
    walk=st.lists(st.tuples(st.integers(0, 59), st.booleans(), st.integers(0, 20)), min_size=1, max_size=20),
)
def test_whatever_happens_the_cursor_is_seen_and_no_line_is_wasted(
    heights: list[int], first: int, height: int, walk: list[tuple[int, bool, int]]
) -> None:
    window = Window()
    first = min(first, len(heights) - 1)
    for cursor, moved, shrunk in walk:
        now = heights[: max(first + 1, len(heights) - shrunk)]
        cursor = min(max(cursor, first), len(now) - 1)
        seen = look(window, now, cursor, height, first=first, moved=moved)
        every = [line for row in rows(now)[first:] for line in row]
        assert (cursor, 0) in seen, "the cursor's row is there, from its first line"
        assert len(seen) == min(height, len(every)), "no line is empty while there is something to show"
        begin = every.index(seen[0])
        assert seen == every[begin : begin + len(seen)], "the lines are those of the list, in a row"
