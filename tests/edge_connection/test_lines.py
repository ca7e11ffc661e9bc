"""Lines out of bytes: the same as ``bytes.split``, however the bytes arrive; linear; capped."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st
from playbill.actors.edge.wire.lines import HEAD_KEPT, LineSplitter

TEXT = st.lists(st.sampled_from([b"\n", b"a", b"\r", b"\xff", b"bc", b"\n\n"]), max_size=60).map(b"".join)


def chunks(data: bytes, cuts: list[int]) -> list[bytes]:
    edges = sorted({min(cut, len(data)) for cut in cuts} | {0, len(data)})
    return [data[a:b] for a, b in pairwise(edges)]


@given(TEXT, st.lists(st.integers(0, 120)))
def test_lines_are_those_of_split_at_any_cut(data: bytes, cuts: list[int]) -> None:
    splitter = LineSplitter()
    lines = [line for chunk in chunks(data, cuts) for line in splitter.feed(chunk)]
    *expected, rest = data.split(b"\n")
    assert lines == expected
    assert splitter.partial == rest


@given(TEXT, st.lists(st.integers(0, 120)), st.integers(0, 5))
def test_a_line_over_the_cap_is_skipped_and_reported_once_at_any_cut(data: bytes, cuts: list[int], cap: int) -> None:
    heads: list[bytes] = []
    splitter = LineSplitter(cap, heads.append)
    lines = [line for chunk in chunks(data, cuts) for line in splitter.feed(chunk)]
    *expected, rest = data.split(b"\n")
    assert lines == [line for line in expected if len(line) <= cap]
    too_long = [line for line in [*expected, rest] if len(line) > cap]
    assert len(heads) == len(too_long)
    assert all(line.startswith(head) and head for line, head in zip(too_long, heads, strict=True))


def test_the_head_of_a_skipped_line_is_bounded() -> None:
    heads: list[bytes] = []
    splitter = LineSplitter(1000, heads.append)
    assert splitter.feed(b"x" * 5000) == []
    assert splitter.feed(b"x" * 5000 + b"\nshort\n") == [b"short"]
    assert heads == [b"x" * HEAD_KEPT]


def test_a_skipped_line_holds_no_memory() -> None:
    splitter = LineSplitter(1000)
    for _ in range(100):
        splitter.feed(b"x" * 1000)
        assert len(splitter.partial) <= 2000


def test_each_byte_of_a_long_line_is_copied_a_constant_number_of_times() -> None:
    """Linear: counted, not timed. The splitter is fed a bytes subclass that counts what it is asked to look at."""
    looked_at = 0

    class Counted(bytes):
        def split(self, *args: object, **kwargs: object) -> list[bytes]:  # type: ignore[override]
            nonlocal looked_at
            looked_at += len(self)
            return bytes(self).split(b"\n")

    splitter = LineSplitter()
    total = 4 * 1024 * 1024
    for _ in range(total // 4096):
        splitter.feed(Counted(b"y" * 4096))
    (line,) = splitter.feed(Counted(b"\n"))
    assert len(line) == total
    assert looked_at == total + 1


NOISY = st.lists(
    st.sampled_from([b"{", b"}", b"a", b" ", b"\t", b"\n", b"\n\n", b" {", b"noise\n", b"\r\n"]), max_size=40
).map(b"".join)


@given(NOISY, st.lists(st.integers(0, 120)), st.sampled_from([3, 9, 1000]))
def test_what_is_taken_at_one_look_is_what_lines_one_by_one_would_be(data: bytes, cuts: list[int], cap: int) -> None:
    found: list[tuple[list[bytes], int, bytes, list[bytes], bytes]] = []
    for at_one_look in (True, False):
        long: list[bytes] = []
        splitter = LineSplitter(cap, long.append)
        messages, others, last = [], 0, b""
        for chunk in chunks(data, cuts):
            noise = splitter.noise(chunk) if at_one_look else None
            if noise is not None:
                others, last = others + noise[0], noise[1].strip() or last
                continue
            for line in splitter.feed(chunk):
                if line.lstrip().startswith(b"{"):
                    messages.append(line)
                elif line.strip():
                    others, last = others + 1, line.strip()
        found.append((messages, others, last, long, splitter.partial))
    assert found[0] == found[1]


def test_a_flood_of_noise_is_taken_at_one_look_and_a_message_in_it_is_not() -> None:
    splitter = LineSplitter()
    assert splitter.noise(b"noise\n" * 1000 + b"noi") == (1000, b"noise")
    assert splitter.noise(b"se\n\nmore\nand ") == (2, b"more")
    assert splitter.noise(b'it\n {"jsonrpc": "2.0"}\n') is None
    assert splitter.feed(b'it\n {"jsonrpc": "2.0"}\n') == [b"and it", b' {"jsonrpc": "2.0"}']
    assert splitter.noise(b'{"id"') is None
    assert splitter.feed(b'{"id"') == []
    assert splitter.noise(b": 1}\nnoise\n") is None
    skipping = LineSplitter(5)
    assert skipping.feed(b"too long") == []
    assert skipping.noise(b"er\nx\n") is None
