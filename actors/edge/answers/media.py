"""Which media each provider takes inside a tool's result, as a table, and what is let through.

A provider refuses the whole request for one image that is too large, empty, or not what its type says: so the bytes are
looked at, and what would be refused becomes a note.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping

from attrs import define, field, frozen

from .pieces import Media, Note, from_base64, plain_mime

__all__ = ["TAKES", "Taken", "Takes", "Tally", "admit"]

_PDF = {"application/pdf": "pdf"}
_IMAGES = {"image/png": "png", "image/jpeg": "jpeg", "image/webp": "webp"}
_GIF = {"image/gif": "gif"}
_OFFICE = {
    "application/msword": "doc",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document": "docx",
    "application/vnd.ms-excel": "xls",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": "xlsx",
}

_MAGIC = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"%PDF-", "application/pdf"),
)
_KNOWN_BY_MAGIC = {*_IMAGES, *_GIF, *_PDF}


@frozen(kw_only=True)
class Takes:
    """What a provider takes inside a tool's result, besides text.

    Args:
        images, documents: MIME type → the provider's own word for it.
        max_image, max_document: bytes of one; None: as `max_total`.
        max_total: bytes of all in one result; None: no limit.
        max_images, max_documents: how many in one result; None: no limit.
        encoded: bytes are counted as base64 has them.
        errors_are_text: a result that is an error may hold text alone.
        source: where it is written, with its date.
    """

    images: Mapping[str, str] = field(factory=dict)
    documents: Mapping[str, str] = field(factory=dict)
    max_image: int | None = None
    max_document: int | None = None
    max_total: int | None = None
    max_images: int | None = None
    max_documents: int | None = None
    encoded: bool = True
    errors_are_text: bool = False
    source: str = ""


# Where a limit is one of the whole request, a result may have half of it: the conversation has to fit beside it.
TAKES: dict[str, Takes] = {
    "openai": Takes(source="openai 3.57.0, ChatCompletionToolMessageParam: text alone, 2026-11"),
    "openai-responses": Takes(
        images=_IMAGES | _GIF,
        documents=_PDF,
        max_total=25_000_000,
        source="openai 3.57.0, FunctionCallOutput; guides 'Images and vision', 'File inputs': 50 MB a request, 2026-11",
    ),
    "anthropic": Takes(
        images=_IMAGES | _GIF,
        documents=_PDF,
        max_image=5 * 1024 * 1024,
        max_total=16_000_000,
        errors_are_text=True,
        source="anthropic 2.14.0, ToolResultBlockParam; 'image exceeds 5 MB maximum: … bytes > 5242880 bytes' counts base64 "
        "(langchain#21654); 32 MB a request; \"all content must be type 'text' if 'is_error' is true\" "
        "(vellum-assistant#18387), 2026-11",
    ),
    "gemini": Takes(
        images=_IMAGES,
        documents=_PDF,
        max_total=10_000_000,
        source="google-genai 3.6.1, FunctionResponse.parts (Gemini 3 and later); 20 MB a request "
        "(firebase.google.com/docs/ai-logic/input-file-requirements), 2026-11",
    ),
    "bedrock": Takes(
        images=_IMAGES | _GIF,
        documents=_PDF | _OFFICE,
        max_image=3_750_000,
        max_document=4_500_000,
        max_images=20,
        max_documents=5,
        encoded=False,
        source="botocore 1.44.8, ToolResultContentBlock; API reference, Message: 20 images of 3.75 MB, 5 documents of "
        "4.5 MB, 2026-11",
    ),
}
"""What each provider takes, by its name; ``mcp`` takes everything."""


@frozen
class Taken:
    """A medium that goes along.

    Args:
        image: an image, else a document.
        mime: what it really is.
        word: the provider's word for that.
        raw: the bytes.
        label: the name of a resource, or empty.
    """

    image: bool
    mime: str
    word: str
    raw: bytes
    label: str

    @property
    def base64(self) -> str:
        """The bytes in base64."""
        return b64encode(self.raw).decode("ascii")


@define
class Tally:
    """What one result has of media so far."""

    images: int = 0
    documents: int = 0
    total: int = 0


def _really(raw: bytes) -> str | None:
    for magic, mime in _MAGIC:
        if raw.startswith(magic):
            return mime
    return "image/webp" if raw[:4] == b"RIFF" and raw[8:12] == b"WEBP" else None


def _largest(takes: Takes, image: bool) -> int | None:
    return (takes.max_image if image else takes.max_document) or takes.max_total


def _size(takes: Takes, raw_bytes: int) -> int:
    return (raw_bytes + 2) // 3 * 4 if takes.encoded else raw_bytes


def _decide(media: Media, takes: Takes, tally: Tally, error: bool) -> Taken | str:
    """The medium, or why it is left out."""
    if not takes.images and not takes.documents:
        return "only text is taken here"
    if error and takes.errors_are_text:
        return "an error may hold text alone"
    said = plain_mime(media.mime)
    if media.kind == "audio" or said.startswith(("audio/", "video/")):
        return "this type is not taken here"
    most = max(filter(None, (_largest(takes, True), _largest(takes, False))))
    if len(media.data) > 2 * most:
        return f"larger than {most:,} bytes"
    try:
        raw = from_base64(media.data)
    except ValueError:
        return "its data is not base64"
    if not raw:
        return "it is empty"
    mime = _really(raw) or said
    image = mime in takes.images
    word = takes.images.get(mime) or takes.documents.get(mime)
    if word is None:
        return "this type is not taken here"
    if mime in _KNOWN_BY_MAGIC and _really(raw) is None:
        return "its bytes are of another type"
    size, largest = _size(takes, len(raw)), _largest(takes, image)
    if largest is not None and size > largest:
        return f"larger than {largest:,} bytes{' in base64' if takes.encoded else ''}"
    if takes.max_total is not None and tally.total + size > takes.max_total:
        return f"larger than {takes.max_total:,} bytes together with what is before it"
    count, limit = (tally.images, takes.max_images) if image else (tally.documents, takes.max_documents)
    if limit is not None and count >= limit:
        return f"more than {limit} {'images' if image else 'documents'}"
    tally.total += size
    if image:
        tally.images += 1
    else:
        tally.documents += 1
    return Taken(image, mime, word, raw, media.label)


def admit(media: Media, takes: Takes, tally: Tally, *, error: bool = False) -> Taken | Note:
    """Let a medium through, or say in a note what is left out and why.

    Args:
        media: as read.
        takes: what the provider takes.
        tally: what the result has already; counted up.
        error: the result is an error.
    """
    found = _decide(media, takes, tally, error)
    if isinstance(found, Taken):
        return found
    size = len("".join(media.data.split()).rstrip("=")) * 3 // 4
    name = f" {media.label}" if media.label else ""
    return Note(f"[{media.kind}{name} left out: {media.mime or 'no type given'}, {size:,} bytes: {found}]")
