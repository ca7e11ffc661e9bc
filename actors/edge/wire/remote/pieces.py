"""Bodies of responses in small pieces, so that no server can hold up the others with one: not by what a compressed body grows
to, and not by how many chunks it sends at once.

What came from the network in one step may hold thousands of chunks, or grow a thousandfold. Whoever reads it would handle all
of that in one step too, and could not be cancelled. So others run between the pieces of a body, which are of at most `PIECE`
bytes when it is decompressed; and of content codings (RFC 9110, 8.4.1) only one is undone: each could grow the last one's
thousandfold.
"""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterator, Iterator

import httpx2
import trio

__all__ = ["ACCEPTED", "PIECE", "in_pieces"]

PIECE = 16 * 1024

ACCEPTED = "gzip, deflate"
"""For Accept-Encoding."""

_WINDOWS = {"gzip": zlib.MAX_WBITS | 16, "x-gzip": zlib.MAX_WBITS | 16, "deflate": zlib.MAX_WBITS}
_OTHERS = frozenset({"br", "zstd", "compress", "x-compress"})


def in_pieces(response: httpx2.Response) -> None:
    """Have the body of a response, of which nothing was read, come in small pieces, without its content coding.

    Reading it raises `httpx2.DecodingError` when it is not in the coding that it is said to be in, or in another or more than
    one. What is no coding at all (some servers write ``utf-8`` there) is not minded.
    """
    said = response.headers.get("content-encoding", "")
    codings = [
        each for each in (part.strip().lower() for part in said.split(",")) if each in _WINDOWS or each in _OTHERS
    ]
    assert isinstance(response.stream, httpx2.AsyncByteStream)
    response.stream = _Pieces(response.stream, codings)
    if said:
        del response.headers["content-encoding"]
    # Of event streams, as nothing else is read as text: they are in UTF-8, whatever they say (HTML, 9.2.5).
    response.encoding = "utf-8"


class _Pieces(httpx2.AsyncByteStream):
    def __init__(self, stream: httpx2.AsyncByteStream, codings: list[str]) -> None:
        self._stream = stream
        self._codings = codings
        self._inflate: zlib._Decompress | None = None

    async def __aiter__(self) -> AsyncIterator[bytes]:
        if len(self._codings) > 1 or not _OTHERS.isdisjoint(self._codings):
            raise httpx2.DecodingError(f"its content coding is {', '.join(self._codings)[:80]}")
        first, parts = True, self._stream.__aiter__()
        try:
            async for part in parts:
                for piece in self._undone(part) if self._codings else (part,):
                    if not first and len(piece) <= PIECE:  # of larger ones there are few in one step
                        await trio.lowlevel.checkpoint()
                    first = False
                    yield piece
        finally:
            with trio.CancelScope(shield=True) as enough:  # see `bodies`; nothing, when it was read to its end
                enough.cancel()
                async for _ in parts:
                    pass

    async def aclose(self) -> None:
        await self._stream.aclose()

    def _undone(self, part: bytes) -> Iterator[bytes]:
        try:
            yield from self._inflated(part)
        except zlib.error as error:
            raise httpx2.DecodingError(str(error)) from error

    def _inflated(self, part: bytes) -> Iterator[bytes]:
        if self._inflate is None:
            self._inflate = zlib.decompressobj(_WINDOWS[self._codings[0]])
            if self._codings[0] == "deflate" and part:
                try:
                    zlib.decompressobj().decompress(part, 1)
                except zlib.error:  # many send it without the frame that RFC 9110, 8.4.1.2, asks for
                    self._inflate = zlib.decompressobj(-zlib.MAX_WBITS)
        while piece := self._inflate.decompress(part, PIECE):  # also without input, some output may be left
            yield piece
            part = self._inflate.unconsumed_tail
