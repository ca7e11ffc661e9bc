"""Bodies that are more than they look: compressed a thousandfold, twice, in ten thousand chunks, in letters that are none."""

from __future__ import annotations

import contextlib
import gzip
import zlib
from collections.abc import AsyncIterator

import httpx2
import pytest
import trio
import trio.lowlevel
from playbill.actors.edge.wire.remote import bodies
from playbill.actors.edge.wire.remote.pieces import PIECE, in_pieces

from .conftest import FOR_ONE_LIFE, OnStage, said
from .server import Web, deed, serving

TEXT = b"".join(b"%d " % number for number in range(5_000))


class Network(httpx2.AsyncByteStream):
    """What came in one step."""

    def __init__(self, *parts: bytes) -> None:
        self.parts = parts

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for part in self.parts:
            yield part


def response(*parts: bytes, coding: str | None = None) -> httpx2.Response:
    headers = {} if coding is None else {"Content-Encoding": coding}
    made = httpx2.Response(200, headers=headers, stream=Network(*parts), request=httpx2.Request("POST", "http://web/"))
    in_pieces(made)
    return made


async def turns_of_others(made: httpx2.Response, most: int) -> tuple[bytes | None, int]:
    """The body, or None for one that is too long; and how often another task had a turn meanwhile."""
    turns = 0
    body: bytes | None = None

    async def other() -> None:
        nonlocal turns
        while True:
            await trio.lowlevel.checkpoint()
            turns += 1

    async with trio.open_nursery() as nursery:
        nursery.start_soon(other)
        with contextlib.suppress(bodies.TooLarge):
            body = await bodies.read_whole(made, most)
        nursery.cancel_scope.cancel()
    return body, turns


async def test_others_run_while_a_small_body_grows() -> None:
    body, turns = await turns_of_others(response(gzip.compress(bytes(200 * PIECE)), coding="gzip"), 300 * PIECE)
    assert body == bytes(200 * PIECE)
    assert turns >= 190


async def test_a_body_that_grows_beyond_the_limit_is_not_grown_further() -> None:
    body, turns = await turns_of_others(response(gzip.compress(bytes(500 * PIECE)), coding="gzip"), 10 * PIECE)
    assert body is None
    assert turns <= 15


async def test_others_run_between_many_chunks_that_came_at_once() -> None:
    body, turns = await turns_of_others(response(*[b"x"] * 1000), 10_000)
    assert body == b"x" * 1000
    assert turns >= 990


def framed_deflate(text: bytes) -> bytes:
    return zlib.compress(text)


def bare_deflate(text: bytes) -> bytes:
    made = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return made.compress(text) + made.flush()


@pytest.mark.parametrize(
    ("coding", "body"),
    [
        (None, TEXT),
        ("identity", TEXT),
        ("utf-8", TEXT),  # as some say
        ("gzip", gzip.compress(TEXT)),
        ("X-GZip", gzip.compress(TEXT)),
        ("deflate", framed_deflate(TEXT)),
        ("deflate", bare_deflate(TEXT)),
        ("gzip, identity", gzip.compress(TEXT)),
    ],
)
@pytest.mark.parametrize("part", [7, 4096, 10_000_000])
async def test_a_body_is_what_was_sent_however_it_comes(coding: str | None, body: bytes, part: int) -> None:
    parts = [body[at : at + part] for at in range(0, len(body), part)]
    assert await bodies.read_whole(response(*parts, coding=coding), len(TEXT)) == TEXT


@pytest.mark.parametrize("coding", ["gzip, gzip", "gzip, deflate", "br", "zstd"])
async def test_more_than_one_coding_or_another_is_none_that_was_asked_for(coding: str) -> None:
    with pytest.raises(httpx2.DecodingError, match=f"its content coding is {coding}"):
        await bodies.read_whole(response(gzip.compress(gzip.compress(TEXT)), coding=coding), len(TEXT))


NO_GZIP = {"Content-Type": "text/event-stream", "Content-Encoding": "gzip"}


async def test_a_stream_in_no_coding_that_there_is_costs_only_its_call(on_stage: OnStage) -> None:
    async with serving(Web()) as web, on_stage(web) as stage:
        await stage.ready()
        web.deeds["tools/call"] = [deed(status=200, headers=NO_GZIP, body="no gzip")]
        assert "DecodingError" in said(await stage.call())
        assert said(await stage.call()) == "{}"
        assert stage.state().restarts == 0


async def test_a_stream_of_changes_in_no_coding_is_asked_for_again(
    on_stage: OnStage, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    from playbill.actors.edge.wire.remote import streamable

    monkeypatch.setattr(streamable, "RESUME_FIRST", 0.01)
    async with serving(Web()) as web:
        web.deeds["GET"] = [deed(status=200, headers=NO_GZIP, body="no gzip")] * 2
        async with on_stage(web) as stage:
            await stage.ready()
            await web.until(lambda web: web.streams)
            assert web.seen["GET"] == 3
            assert stage.state().restarts == 0
    assert not [each for each in caplog.records if each.exc_info]


async def test_an_older_stream_in_no_coding_is_the_reason(on_stage: OnStage) -> None:
    async with serving(Web("sse")) as web:
        web.deeds["GET"] = deed(status=200, headers=NO_GZIP, body="no gzip")
        async with on_stage(web, backoff=FOR_ONE_LIFE, type="sse") as stage:
            state = await stage.until(lambda state: state.phase == "backing_off")
            assert str(state.error).startswith(f"the request to 127.0.0.1:{web.port} failed: DecodingError")


@pytest.mark.parametrize("charset", ["zlib", "utf-16", "unicode_escape", "x-none"])
async def test_events_are_in_utf_8_whatever_they_are_said_to_be_in(on_stage: OnStage, charset: str) -> None:
    answer = '{"jsonrpc": "2.0", "id": %d, "result": {"content": [{"type": "text", "text": "é"}]}}'
    async with serving(Web()) as web, on_stage(web) as stage:
        await stage.ready()
        headers = {"Content-Type": f"text/event-stream; charset={charset}"}
        web.deeds["tools/call"] = [deed(status=200, headers=headers, body=f"data: {answer % 4}\n\n")]
        assert said(await stage.call()) == "é"
