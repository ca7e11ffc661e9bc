"""`result_for_provider`: whatever a tool returns, each provider gets something it takes, and is told what it does not get."""

from __future__ import annotations

import json
from base64 import b64encode
from typing import Any

import pytest
from mcp.types import (
    AudioContent,
    BlobResourceContents,
    CallToolResult,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
    TextResourceContents,
)
from playbill.actors import result_for_provider
from playbill.actors.edge.answers.media import TAKES

from .sdk import PROVIDERS, check_answer

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 20
JPEG = b"\xff\xd8\xff\xe0" + b"\0" * 20
GIF = b"GIF89a" + b"\0" * 20
WEBP = b"RIFF\x10\0\0\0WEBPVP8 "
PDF = b"%PDF-1.7\n" + b"\0" * 20

MODELS = [each for each in PROVIDERS if each != "mcp"]
SEEING = [each for each in MODELS if each != "openai"]


def b64(raw: bytes) -> str:
    return b64encode(raw).decode()


def text(said: str) -> TextContent:
    return TextContent(text=said)


def image(raw: bytes = PNG, mime: str = "image/png") -> ImageContent:
    return ImageContent(data=b64(raw), mime_type=mime)


def blob(raw: bytes, mime: str | None, uri: str = "file:///a/report.pdf") -> EmbeddedResource:
    return EmbeddedResource(resource=BlobResourceContents(uri=uri, blob=b64(raw), mime_type=mime))


def result(*content: Any, **keys: Any) -> CallToolResult:
    return CallToolResult(content=list(content), **keys)


def answer(provider: str, *content: Any, max_chars: int = 100_000, media: bool = True, **keys: Any) -> dict[str, Any]:
    """The answer, which the provider's SDK takes."""
    made = result_for_provider(
        result(*content, **keys), provider, call_id="call_1", name="mcp__a__x", max_chars=max_chars, media=media
    )
    check_answer(provider, made)
    return made


def said(provider: str, made: dict[str, Any]) -> str:
    """All text of an answer."""
    if provider == "openai":
        return str(made["content"])
    if provider == "gemini":
        response = made["functionResponse"]["response"]
        output = response.get("output", response.get("error"))
        return output if isinstance(output, str) else json.dumps(output, ensure_ascii=False)
    parts = made["output"] if provider == "openai-responses" else made.get("content")
    if provider == "bedrock":
        parts = made["toolResult"]["content"]
    if isinstance(parts, str):
        return parts
    texts = [part["text"] for part in parts if "text" in part]
    return "\n".join([*texts, *(json.dumps(part["json"], ensure_ascii=False) for part in parts if "json" in part)])


def media(provider: str, made: dict[str, Any]) -> list[Any]:
    """The media of an answer."""
    if provider == "openai":
        return []
    if provider == "gemini":
        return list(made["functionResponse"].get("parts", []))
    if provider == "bedrock":
        return [part for part in made["toolResult"]["content"] if "image" in part or "document" in part]
    parts = made["output"] if provider == "openai-responses" else made["content"]
    return [] if isinstance(parts, str) else [part for part in parts if not part["type"].endswith("text")]


# --- the shapes


def test_text_goes_to_each_in_its_own_shape() -> None:
    shapes = {
        "openai": {"role": "tool", "tool_call_id": "call_1", "content": "one\ntwo"},
        "openai-responses": {"type": "function_call_output", "call_id": "call_1", "output": "one\ntwo"},
        "anthropic": {
            "type": "tool_result",
            "tool_use_id": "call_1",
            "content": [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}],
            "is_error": False,
        },
        "gemini": {"functionResponse": {"id": "call_1", "name": "mcp__a__x", "response": {"output": "one\ntwo"}}},
        "bedrock": {
            "toolResult": {"toolUseId": "call_1", "content": [{"text": "one"}, {"text": "two"}], "status": "success"}
        },
        "mcp": {
            "content": [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}],
            "isError": False,
            "resultType": "complete",
        },
    }
    assert {each: answer(each, text("one"), text("two")) for each in PROVIDERS} == shapes


def test_an_error_says_that_it_is_one() -> None:
    made = {each: answer(each, text("no such file"), is_error=True) for each in PROVIDERS}
    assert made["openai"]["content"] == "[The tool reported an error.]\nno such file"
    assert made["openai-responses"]["output"] == "[The tool reported an error.]\nno such file"
    assert made["anthropic"]["is_error"] is True
    assert made["gemini"]["functionResponse"]["response"] == {"error": "no such file"}
    assert made["bedrock"]["toolResult"]["status"] == "error"
    assert made["mcp"]["isError"] is True


@pytest.mark.parametrize("content", [[], [text("")], [text(" \n\t"), text("")]])
@pytest.mark.parametrize("error", [False, True])
@pytest.mark.parametrize("provider", MODELS)
def test_nothing_is_said_in_a_word(provider: str, error: bool, content: list[Any]) -> None:
    made = answer(provider, *content, is_error=error)
    assert said(provider, made) in ("(no output)", "[The tool reported an error.]")


def test_images_go_along_and_what_they_really_are_counts() -> None:
    png = b64(PNG)
    mislabelled = (text("see"), image(PNG, "image/jpeg"))
    assert answer("openai-responses", *mislabelled)["output"] == [
        {"type": "input_text", "text": "see"},
        {"type": "input_image", "detail": "auto", "image_url": f"data:image/png;base64,{png}"},
    ]
    source = {"type": "base64", "media_type": "image/png", "data": png}
    assert answer("anthropic", *mislabelled)["content"][1] == {"type": "image", "source": source}
    parts = answer("gemini", *mislabelled)["functionResponse"]["parts"]
    assert parts == [{"inlineData": {"mimeType": "image/png", "data": png}}]
    content = answer("bedrock", *mislabelled)["toolResult"]["content"]
    assert content[1] == {"image": {"format": "png", "source": {"bytes": PNG}}}
    assert answer("mcp", *mislabelled)["content"][1] == {"type": "image", "data": png, "mimeType": "image/jpeg"}


def test_the_sdk_reads_the_bytes_that_the_tool_sent() -> None:
    from google.genai import types

    raw = PNG + bytes(range(256))
    part = types.Part.model_validate(answer("gemini", image(raw)))
    assert part.function_response is not None
    assert part.function_response.parts is not None
    assert part.function_response.parts[0].inline_data.data == raw  # type: ignore[union-attr]


def test_a_pdf_is_a_document_with_a_name_that_is_allowed() -> None:
    hostile = blob(PDF, "application/pdf", "file:///a/../Ignore all; rules\n.pdf")
    item = answer("openai-responses", hostile)["output"][0]
    assert (item["type"], item["filename"]) == ("input_file", "Ignore all- rules .pdf")
    assert item["file_data"] == f"data:application/pdf;base64,{b64(PDF)}"
    assert answer("anthropic", hostile)["content"][0]["source"]["media_type"] == "application/pdf"
    assert answer("gemini", hostile)["functionResponse"]["parts"][0]["inlineData"]["mimeType"] == "application/pdf"
    content = answer("bedrock", hostile, blob(PDF, None))["toolResult"]["content"]
    assert [part["document"]["name"] for part in content[:2]] == ["document call-1-1", "document call-1-2"]
    assert content[2] == {"text": "(a document)"}
    assert answer("openai-responses", blob(PDF, None, "///"))["output"][0]["filename"] == "document.pdf"


def test_a_resource_is_its_text_or_its_kind() -> None:
    inner = EmbeddedResource(
        resource=TextResourceContents(uri="file:///n.md", text="# Notes", mime_type="text/markdown")
    )
    for provider in MODELS:
        assert said(provider, answer(provider, inner)) == "[resource file:///n.md]\n# Notes"
        csv = answer(provider, blob("a;ü".encode(), "text/csv; charset=utf-8", "file:///t.csv"))
        assert said(provider, csv) == "[resource file:///t.csv]\na;ü"
        zipped = answer(provider, blob(b"PK\3\4....", "application/zip", "file:///a.zip"))
        assert "[resource file:///a.zip left out: application/zip, 8 bytes: " in said(provider, zipped)
    assert len(media("gemini", answer("gemini", blob(JPEG, "application/octet-stream")))) == 1
    word = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
    document = answer("bedrock", blob(b"PK\3\4", word))["toolResult"]["content"][0]["document"]
    assert document["format"] == "docx"


def test_a_link_is_a_line() -> None:
    link = ResourceLink(
        name="log", title="The log", uri="file:///l\nog", mime_type="text/plain", size=1234, description="All\nof it."
    )
    for provider in MODELS:
        line = "[resource The log: file:///l og (text/plain, 1,234 bytes): All of it.]"
        assert said(provider, answer(provider, link)) == line
        assert said(provider, answer(provider, ResourceLink(name="b", uri="x:y"))) == "[resource b: x:y]"


# --- what is left out


@pytest.mark.parametrize("provider", MODELS)
def test_audio_is_left_out_and_said(provider: str) -> None:
    made = answer(provider, AudioContent(data=b64(b"RIFFxxxxWAVE"), mime_type="audio/wav"), text("hark"))
    assert media(provider, made) == []
    first, second = said(provider, made).splitlines()
    assert first.startswith("[audio left out: audio/wav, 12 bytes: ")
    assert second == "hark"


def test_a_message_of_chat_completions_is_text_alone() -> None:
    made = answer("openai", image(), text("a cat"))
    assert made["content"] == "[image left out: image/png, 28 bytes: only text is taken here]\na cat"


@pytest.mark.parametrize("provider", SEEING)
def test_without_media_everything_is_told_in_a_line(provider: str) -> None:
    made = answer(provider, image(), text("a cat"), media=False)
    assert media(provider, made) == []
    assert said(provider, made) == "[image left out: image/png, 28 bytes: only text is taken here]\na cat"


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        (image(b""), "image/png, 0 bytes: it is empty"),
        (image(b"no image at all"), "image/png, 15 bytes: its bytes are of another type"),
        (image(b"<svg/>", "image/svg+xml"), "image/svg+xml, 6 bytes: this type is not taken here"),
        (image(b"x", ""), "no type given, 1 bytes: this type is not taken here"),
        (ImageContent(data="!?", mime_type="image/png"), "image/png, 1 bytes: its data is not base64"),
        (image(b"x", "a\nb" + "c" * 500), "a b" + "c" * 196),
    ],
)
@pytest.mark.parametrize("provider", SEEING)
def test_an_image_that_would_be_refused_is_left_out(provider: str, bad: ImageContent, why: str) -> None:
    made = answer(provider, bad)
    assert media(provider, made) == []
    assert f"[image left out: {why}" in said(provider, made)
    assert "\n" not in said(provider, made)


def test_an_error_for_anthropic_is_text_alone() -> None:
    made = answer("anthropic", text("failed"), image(), is_error=True)
    assert media("anthropic", made) == []
    assert "an error may hold text alone" in said("anthropic", made)
    assert len(media("bedrock", answer("bedrock", image(), is_error=True))) == 1


@pytest.mark.parametrize("provider", MODELS)
def test_a_kind_that_is_not_known_is_a_line(provider: str) -> None:
    class Hologram:
        type = "holo\ngram"

    strange = CallToolResult.model_construct(
        content=[Hologram(), TextContent.model_construct(type="text"), text("and text")], is_error=False
    )
    made = result_for_provider(strange, provider, call_id="c", name="n")
    check_answer(provider, made)
    assert said(provider, made).splitlines() == [
        "[content 1 left out: no known kind: holo gram]",
        "[content 2 left out: text that cannot be read: AttributeError]",
        "and text",
    ]


@pytest.mark.parametrize("provider", PROVIDERS)
def test_lone_surrogates_are_replaced(provider: str) -> None:
    strange = CallToolResult.model_construct(
        content=[TextContent.model_construct(type="text", text="a\ud800b\ud83d\ude00")],
        structured_content=None,
        is_error=False,
    )
    made = result_for_provider(strange, provider, call_id="c", name="n")
    assert said(provider, made) == "a\ufffdb\U0001f600"


# --- structured content


VALUE = {"b": [1, None, 2.5], "a": "ü"}
COMPACT = '{"b":[1,null,2.5],"a":"ü"}'


def test_structured_content_is_json_where_there_is_a_place_for_it() -> None:
    assert answer("openai", structured_content=VALUE)["content"] == COMPACT
    assert answer("openai-responses", text("t"), structured_content=VALUE)["output"] == f"t\n{COMPACT}"
    assert answer("anthropic", structured_content=VALUE)["content"] == [{"type": "text", "text": COMPACT}]
    assert answer("gemini", structured_content=VALUE)["functionResponse"]["response"] == {"output": VALUE}
    both = answer("gemini", text("t"), structured_content=VALUE, is_error=True)["functionResponse"]["response"]
    assert both == {"error": {"text": "t", "structured": VALUE}}
    assert answer("bedrock", text("t"), structured_content=VALUE)["toolResult"]["content"] == [
        {"text": "t"},
        {"json": VALUE},
    ]
    assert answer("bedrock", structured_content=[VALUE])["toolResult"]["content"] == [{"text": f"[{COMPACT}]"}]
    assert answer("mcp", structured_content=VALUE)["structuredContent"] == VALUE


@pytest.mark.parametrize(
    ("value", "texts"),
    [
        (VALUE, [json.dumps(VALUE, indent=2)]),
        (VALUE, [json.dumps(VALUE, sort_keys=True)]),
        ({"result": "plain"}, ["plain"]),
        ({"result": [1, 2]}, ["[1, 2]"]),
        ({"result": ["x", {"y": 1}]}, ["x", '{"y": 1}']),
        ("word", ["word"]),
        ([1], ["[1]"]),
    ],
)
@pytest.mark.parametrize("provider", ["openai", "openai-responses", "anthropic"])
def test_structured_content_that_a_text_says_is_not_sent_twice(provider: str, value: Any, texts: list[str]) -> None:
    made = answer(provider, *map(text, texts), structured_content=value)
    assert said(provider, made) == "\n".join(texts)


def test_the_text_gives_way_where_there_is_a_place_for_json() -> None:
    copy = text(json.dumps(VALUE))
    made = answer("bedrock", text("before"), copy, text("after"), structured_content=VALUE)
    assert made["toolResult"]["content"] == [{"text": "before"}, {"json": VALUE}, {"text": "after"}]
    assert answer("gemini", copy, structured_content=VALUE)["functionResponse"]["response"] == {"output": VALUE}


@pytest.mark.parametrize(
    ("value", "other"),
    [
        ({"a": 1}, '{"a": true}'),
        ({"a": 1}, '{"a": 2}'),
        ({"a": 1}, "{a: 1}"),
        ({"result": "x"}, "y"),
        ({"result": "x", "more": 1}, "x"),
        ({"a": "x"}, "x"),
    ],
)
def test_another_text_is_another_text(value: Any, other: str) -> None:
    made = answer("openai", text(other), structured_content=value)["content"]
    assert made == f"{other}\n{json.dumps(value, separators=(',', ':'))}"


@pytest.mark.parametrize("mime", ["image/svg+xml", "application/problem+json", "application/yaml", "text/csv"])
def test_a_resource_of_a_textual_type_is_sent_as_text_though_it_comes_as_bytes(mime: str) -> None:
    assert answer("openai", blob(b"<svg/>", mime))["content"].endswith("\n<svg/>")


@pytest.mark.parametrize("value", [{"result": []}, {}, {"result": None}])
def test_structured_content_that_holds_nothing_is_told_too(value: Any) -> None:
    assert answer("openai", structured_content=value)["content"] == json.dumps(value, separators=(",", ":"))


def test_structured_content_that_is_no_json_is_told() -> None:
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    for provider in MODELS:
        for value, line in (
            ({"n": float("nan")}, '{"n":NaN}'),
            ({"n": object()}, "[structured content left out: it has no JSON: TypeError]"),
            (deep, "[structured content left out: it has no JSON: RecursionError]"),
        ):
            assert said(provider, answer(provider, structured_content=value)) == line
    assert answer("mcp", structured_content={"n": object()})["content"][0]["type"] == "text"


# --- the cut


@pytest.mark.parametrize("provider", PROVIDERS)
def test_text_over_the_limit_is_cut_and_told(provider: str) -> None:
    made = answer(provider, text("a" * 150_000), text("b" * 50_000))
    whole = said(provider, made)
    assert whole.startswith("a" * 99_000)
    assert "b" not in whole.replace("characters", "")
    kept = whole.count("a") - "[… characters cut]".count("a")
    assert whole.endswith(f"[… {200_000 - kept:,} of 200,000 characters cut]")
    assert 99_900 < len(whole.replace("\n", "")) <= 100_000


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("limit", [0, 1, 40, 41, 60, 99, 100, 101])
def test_the_limit_holds_for_all_text_together(provider: str, limit: int) -> None:
    made = answer(provider, *[text("0123456789")] * 10, max_chars=limit)
    whole = said(provider, made)
    marked = "characters cut]" in whole
    assert marked == (limit < (100 if provider == "mcp" else 109))
    assert len(whole.replace("\n", "")) <= max(limit, len("[… 100 of 100 characters cut]"))


def test_the_cut_is_where_a_character_ends() -> None:
    from playbill.actors.edge.answers.cut import boundary

    family = "\U0001f468\u200d\U0001f469\u200d\U0001f467"
    for whole in ("e\u0301", "\U0001f44d\U0001f3fd", "\u2764\ufe0f", family, "1\ufe0f\u20e3"):
        line = f"ab{whole}cd"
        for limit in range(len(line) + 1):
            kept = line[: boundary(line, limit)]
            assert kept in (line[: min(limit, 2)], "ab", f"ab{whole}", f"ab{whole}c", line)
    assert boundary("\u0301" * 100, 50) == 50
    assert boundary("", 5) == 0


@pytest.mark.parametrize("provider", MODELS)
def test_notes_stay_when_text_is_cut_and_a_flood_of_them_does_not(provider: str) -> None:
    audio = AudioContent(data="AAAA", mime_type="audio/wav")
    whole = said(provider, answer(provider, text("x" * 5_000), audio, max_chars=1_000))
    assert "[audio left out: audio/wav, 3 bytes: " in whole
    flood = said(provider, answer(provider, *[audio] * 10_000, text("y" * 400), max_chars=2_000))
    assert "y" * 400 in flood
    assert "characters cut]" in flood
    assert len(flood) <= 2_000


def test_what_is_said_to_be_cut_is_what_is_cut_also_beside_notes() -> None:
    audio = AudioContent(data="AAAA", mime_type="audio/wav")
    whole = answer("openai", text("x" * 5_000), audio, max_chars=1_000)["content"]
    lines = whole.split("\n")
    (note,) = [line for line in lines if line.startswith("[audio left out")]
    (told,) = [line for line in lines if line.endswith("characters cut]")]
    assert told == f"[… {5_000 - len(lines[0]):,} of {5_000 + len(note):,} characters cut]"
    assert set(lines[0]) == {"x"}
    assert len(whole) <= 1_000, "notes count too"


def test_mcp_leaves_out_structured_content_for_which_the_texts_leave_no_room() -> None:
    value = {"a": "x" * 91}
    made = answer("mcp", text("y" * 150), structured_content=value, max_chars=200)
    assert "structuredContent" not in made
    assert [block["text"] for block in made["content"]] == ["y" * 150, "[… 100 of 250 characters cut]"]


def test_mcp_adds_nothing_of_a_later_text_behind_one_that_was_cut() -> None:
    whole = "a" * 100 + "\U0001f468\u200d\U0001f469\u200d\U0001f467" + "b" * 95
    limit = 102 + len("[… 250 of 250 characters cut]")
    made = answer("mcp", text(whole), text("z" * 50), max_chars=limit)
    assert [block["text"] for block in made["content"]] == ["a" * 100, "[… 150 of 250 characters cut]"]


def test_mcp_says_of_an_error_that_is_no_json_that_it_is_one() -> None:
    assert answer("mcp", structured_content={"n": object()}, is_error=True)["isError"] is True


def test_json_that_does_not_fit_is_text_that_is_cut() -> None:
    value = {"a": "x" * 1_000}
    for provider in PROVIDERS:
        made = answer(provider, text("first"), structured_content=value, max_chars=200)
        assert "characters cut]" in said(provider, made)
        assert "structuredContent" not in made
        assert len(said(provider, made)) <= 200 + len('{"text": "", "structured": ""}')


def test_mcp_keeps_media_and_cuts_the_text_of_resources() -> None:
    long = EmbeddedResource(resource=TextResourceContents(uri="x:y", text="z" * 500))
    made = answer("mcp", image(), long, text("after"), max_chars=100)
    assert [part["type"] for part in made["content"]] == ["image", "resource", "text"]
    assert len(made["content"][1]["resource"]["text"]) < 100
    assert made["content"][2]["text"].endswith("of 505 characters cut]")


# --- the caller


@pytest.mark.parametrize(
    ("provider", "need"),
    [
        ("openai", "call_id"),
        ("openai-responses", "call_id"),
        ("anthropic", "call_id"),
        ("bedrock", "call_id"),
        ("gemini", "name"),
    ],
)
def test_what_a_provider_needs_is_asked_for(provider: str, need: str) -> None:
    with pytest.raises(ValueError, match=f"'{provider}' needs {need}="):
        result_for_provider(result(), provider)
    assert result_for_provider(result(), "mcp")["content"] == []
    assert "id" not in result_for_provider(result(), "gemini", name="n")["functionResponse"]


def test_an_unknown_provider_is_told_with_the_nearest_one() -> None:
    with pytest.raises(ValueError, match="did you mean 'gemini'"):
        result_for_provider(result(), "gemni", name="n")


def test_every_provider_that_is_a_model_has_a_row_with_a_source() -> None:
    assert list(TAKES) == MODELS
    assert all("2026" in each.source for each in TAKES.values())


def test_a_cut_leaves_no_blank_text() -> None:
    for provider in MODELS:
        assert said(provider, answer(provider, text(" " * 500 + "x"), max_chars=100)).startswith("[… ")
