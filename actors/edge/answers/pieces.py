"""What a result holds, piece by piece, whatever the provider. Total: what cannot be read is a note."""

from __future__ import annotations

import contextlib
import json
from base64 import b64decode
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from attrs import frozen

from ...model.schema.sound import canonical

if TYPE_CHECKING:
    from mcp.types import CallToolResult

__all__ = ["Media", "Note", "Piece", "Structured", "Text", "clean", "from_base64", "one_line", "plain_mime", "read"]


@frozen
class Text:
    """Text of the tool."""

    text: str


@frozen
class Note:
    """A line of ours, about what is left out."""

    text: str


@frozen
class Structured:
    """Structured content.

    Args:
        value: any JSON.
        text: the same in text: as the tool itself wrote it, or compact JSON.
    """

    value: Any
    text: str


@frozen
class Media:
    """Something that is not text.

    Args:
        kind: what a person calls it: ``image``, ``audio``, ``resource``.
        mime: as given, on one line; may be empty.
        data: base64, as given.
        label: the name of a resource, or empty.
    """

    kind: str
    mime: str
    data: str
    label: str = ""


Piece = Text | Note | Structured | Media

_TEXT_TYPES = {
    "application/json",
    "application/xml",
    "application/yaml",
    "application/x-yaml",
    "application/javascript",
}


def clean(text: Any) -> str:
    """Text that can be encoded: lone surrogates are replaced."""
    said: str = text if isinstance(text, str) else str(text)
    if said.isascii():
        return said
    try:
        said.encode("utf-8")
    except UnicodeEncodeError:
        return said.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return said


def one_line(text: Any, limit: int = 200) -> str:
    """A server's word within a line of ours: no line ends, no controls, not long."""
    words = " ".join("".join(c if c.isprintable() else " " for c in clean(text)[: 4 * limit]).split())
    return words if len(words) <= limit else f"{words[: limit - 1]}…"


def plain_mime(mime: str) -> str:
    """A MIME type without its parameters, in lower case, in its usual spelling."""
    plain = mime.partition(";")[0].strip().lower()
    return "image/jpeg" if plain == "image/jpg" else plain


def _text(block: Any) -> Piece:
    return Text(clean(block.text))


def _image(block: Any) -> Piece:
    return Media("image", one_line(block.mime_type), block.data)


def _audio(block: Any) -> Piece:
    return Media("audio", one_line(block.mime_type), block.data)


def _link(block: Any) -> Piece:
    about = [one_line(block.mime_type)] if block.mime_type else []
    if block.size is not None:
        about.append(f"{block.size:,} bytes")
    said = f"resource {one_line(block.title or block.name)}: {one_line(block.uri, 1000)}"
    if about:
        said += f" ({', '.join(about)})"
    if block.description:
        said += f": {one_line(block.description, 1000)}"
    return Text(f"[{said}]")


_SPACES = b" \t\r\n\v\f"
_URL_SAFE = bytes.maketrans(b"-_", b"+/")


def from_base64(text: str) -> bytes:
    """The bytes that base64 says, also as MIME breaks it into lines, without padding, and in the alphabet for URLs.

    Servers send all of these (``base64.encodebytes`` is of the first kind), and what they mean is never in doubt.

    Raises:
        ValueError: it is not base64.
    """
    plain = text.encode("ascii").translate(_URL_SAFE, _SPACES).rstrip(b"=")
    return b64decode(plain + b"=" * (-len(plain) % 4), validate=True)


def _resource(block: Any) -> Piece:
    inner = block.resource
    uri = one_line(inner.uri, 1000)
    text = getattr(inner, "text", None)
    if text is not None:
        return Text(f"[resource {uri}]\n{clean(text)}")
    mime = one_line(inner.mime_type or "")
    plain = plain_mime(mime)
    if plain.startswith("text/") or plain in _TEXT_TYPES or plain.endswith(("+json", "+xml")):
        try:
            return Text(f"[resource {uri}]\n{from_base64(inner.blob).decode('utf-8')}")
        except ValueError:
            pass  # not base64, or not UTF-8: as any other blob
    return Media("resource", mime, inner.blob, uri)


_WORTH_LEAVING_OUT = 200
"""Characters of a string that may be the data of an image; what is shorter costs nothing."""

_READERS: dict[str, Callable[[Any], Piece]] = {
    "text": _text,
    "image": _image,
    "audio": _audio,
    "resource_link": _link,
    "resource": _resource,
}


def _blocks(result: CallToolResult) -> Iterator[Piece]:
    for place, block in enumerate(result.content, 1):
        kind = getattr(block, "type", type(block).__name__)
        reader = _READERS.get(kind) if isinstance(kind, str) else None
        if reader is None:
            yield Note(f"[content {place} left out: no known kind: {one_line(kind, 80)}]")
            continue
        try:
            yield reader(block)
        except Exception as error:
            yield Note(f"[content {place} left out: {kind} that cannot be read: {type(error).__name__}]")


def _without(value: Any, media: dict[str, str]) -> Any:
    """A JSON value in which no string repeats media that are among the pieces; servers mirror their images there.

    Args:
        value: structured content.
        media: data → kind, of the pieces.
    """
    if isinstance(value, dict):
        return {key: _without(each, media) for key, each in value.items()}
    if isinstance(value, list):
        return [_without(each, media) for each in value]
    if isinstance(value, str) and len(value) >= _WORTH_LEAVING_OUT:
        kind = media.get(value) or media.get(value.partition(";base64,")[2])
        return value if kind is None else f"[the {kind} that is delivered beside this]"
    return value


def _structured(value: Any) -> Piece:
    try:
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        cleaned = clean(text)
        return Structured(json.loads(cleaned), cleaned)
    except Exception as error:
        try:
            return Text(clean(json.dumps(value, ensure_ascii=False, separators=(",", ":"))))  # NaN, infinity
        except Exception:
            return Note(f"[structured content left out: it has no JSON: {type(error).__name__}]")


def _says(text: str, value: Any) -> bool:
    """Whether a text is that value: its JSON, or the string itself."""
    if isinstance(value, str) and text == value:
        return True
    try:
        return canonical(json.loads(text)) == canonical(value)
    except Exception:
        return False


def _merged(pieces: list[Piece], structured: Structured) -> list[Piece]:
    """The pieces with structured content among them, but not twice: servers repeat it as text, for older clients."""
    value = structured.value
    texts = [(place, piece.text) for place, piece in enumerate(pieces) if isinstance(piece, Text)]
    # Where a tool's return value is no object, the SDKs wrap it: {"result": value}, and the text is of the value.
    inner = value["result"] if isinstance(value, dict) and value.keys() == {"result"} else value
    for place, text in texts:
        if _says(text, value) or _says(text, inner):
            return [*pieces[:place], Structured(value, text), *pieces[place + 1 :]]
    each = isinstance(inner, list) and inner and len(inner) == len(texts)
    if each and all(_says(text, item) for (_, text), item in zip(texts, inner, strict=True)):
        return pieces  # a text for each item
    return [*pieces, structured]


def read(result: CallToolResult) -> list[Piece]:
    """The pieces of a result, in its order; structured content last, or in the place of the text that says the same.

    Args:
        result: of any shape; text that is blank is left out.
    """
    pieces = [piece for piece in _blocks(result) if not isinstance(piece, Text) or piece.text.strip()]
    if result.structured_content is None:
        return pieces
    value = result.structured_content
    media = {piece.data: piece.kind for piece in pieces if isinstance(piece, Media)}
    if media:
        with contextlib.suppress(RecursionError):  # it nests deeper than anybody writes
            value = _without(value, media)
    structured = _structured(value)
    return _merged(pieces, structured) if isinstance(structured, Structured) else [*pieces, structured]
