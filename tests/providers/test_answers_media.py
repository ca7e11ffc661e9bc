"""Media in a result: base64 is read as the world writes it, and what a provider takes, and how much of it, is kept to."""

from __future__ import annotations

from base64 import encodebytes, urlsafe_b64encode
from typing import Any

import pytest
from mcp.types import BlobResourceContents, EmbeddedResource, ImageContent

from .test_answers import GIF, JPEG, MODELS, PDF, PNG, SEEING, WEBP, answer, b64, blob, image, media, said


def unpadded(raw: bytes) -> str:
    return b64(raw).rstrip("=")


def for_urls(raw: bytes) -> str:
    return urlsafe_b64encode(raw).decode()


def as_mime(raw: bytes) -> str:
    return encodebytes(raw).decode().replace("\n", "\r\n")


LONG = PNG + b"\xfb\xff\xbe" * 60 + b"."
"""Longer than a line of MIME, with characters that differ between the alphabets, and of a length that is padded."""


@pytest.mark.parametrize("written", [as_mime, unpadded, for_urls, lambda raw: f" {b64(raw)}\t\n"])
@pytest.mark.parametrize("provider", SEEING)
def test_base64_as_programs_write_it_is_read_and_sent_as_providers_take_it(provider: str, written: Any) -> None:
    block = ImageContent(data=written(LONG), mime_type="image/png")
    assert answer(provider, block) == answer(provider, image(LONG))
    assert media(provider, answer(provider, block))
    doc = EmbeddedResource(
        resource=BlobResourceContents(uri="file:///a.txt", blob=written(b"hi, there" * 9), mime_type="text/plain")
    )
    assert "hi, therehi" in said(provider, answer(provider, doc))


@pytest.mark.parametrize("bad", ["iVBOR", "iVBO\N{NO-BREAK SPACE}", "iV=BOR", "é", "\ud800"])
def test_what_is_not_base64_is_left_out(bad: str) -> None:
    made = answer("anthropic", ImageContent(data=bad, mime_type="image/png"))
    assert "its data is not base64" in said("anthropic", made)


def test_the_size_of_what_is_left_out_does_not_count_line_breaks() -> None:
    made = answer("openai", ImageContent(data=as_mime(LONG), mime_type="image/png"))
    assert f"{len(LONG)} bytes" in said("openai", made)


def test_which_types_are_taken() -> None:
    every = [image(PNG), image(JPEG, "image/jpg"), image(GIF, "image/gif"), image(WEBP, "image/webp")]
    taken = {each: len(media(each, answer(each, *every))) for each in MODELS}
    assert taken == {"openai": 0, "openai-responses": 4, "anthropic": 4, "gemini": 3, "bedrock": 4}
    assert "image/gif" in said("gemini", answer("gemini", *every))


def test_an_image_at_the_limit_goes_and_one_over_it_does_not() -> None:
    largest = {"anthropic": 5 * 1024 * 1024 // 4 * 3, "bedrock": 3_750_000}
    for provider, size in largest.items():
        assert len(media(provider, answer(provider, image(PNG.ljust(size, b"\0"))))) == 1
        over = answer(provider, image(PNG.ljust(size + 1, b"\0")))
        assert media(provider, over) == []
        assert f"{size + 1:,} bytes: larger than " in said(provider, over)
    huge = ImageContent(data="A" * 120_000_000, mime_type="image/png")
    assert "90,000,000 bytes: larger than" in said("gemini", answer("gemini", huge))


def test_media_of_one_result_are_limited_together() -> None:
    three = [image(PNG.ljust(3_500_000, b"\0"))] * 4
    made = answer("anthropic", *three)
    assert len(media("anthropic", made)) == 3
    assert "larger than 16,000,000 bytes together with what is before it" in said("anthropic", made)
    many = answer("bedrock", *[image()] * 22, *[blob(PDF, "application/pdf")] * 6)
    assert len(media("bedrock", many)) == 25
    assert "more than 20 images" in said("bedrock", many)
    assert "more than 5 documents" in said("bedrock", many)
