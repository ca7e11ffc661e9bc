"""Tool lists that are not what they should be: each fault costs as little as possible. Fake servers, both eras."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import trio
from mcp_types import methods as sdk_methods
from playbill.actors.edge.wire import listing as listing_module
from playbill.actors.model.config import ServerEntry
from playbill.actors.model.status import ToolDef
from playbill.actors.ports import ConnectionLost, ListFailed, Listing

from .conftest import Connector

Fake = Callable[..., ServerEntry]
Patience = Callable[[], Any]
OBJECT = {"type": "object"}


@pytest.fixture(params=["legacy", "modern"])
def era(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def list_of(fake: Fake, connect: Connector, patience: Patience, era: str) -> Callable[..., Any]:
    """The listing of a fake server with these options, and proof that it still answers afterwards."""

    async def list_of(**options: Any) -> Listing:
        with patience():
            async with connect(fake(era=era, **options)) as connection:
                listing: Listing = await connection.list_tools()
                assert not (await connection.call_tool("pid", {}, None)).is_error
                return listing

    return list_of


def tool(name: Any, **more: Any) -> dict[str, Any]:
    return {"name": name, "inputSchema": OBJECT, **more}


def names(listing: Listing) -> list[str]:
    return [tool.bare for tool in listing.tools]


async def test_a_tool_is_taken_over_as_advertised(list_of: Callable[..., Any]) -> None:
    raw = tool(
        "t", title="T", description="does", outputSchema={"type": "object", "x-unknown": [1]},
        annotations={"readOnlyHint": True, "vendor": 1}, inputSchema={"type": "object", "properties": {"a": {"const": 1}}},
    )  # fmt: skip
    listing = await list_of(tools=[[raw]])
    (got,) = listing.tools
    assert (got.bare, got.title, got.description) == ("t", "T", "does")
    assert got.input_schema == raw["inputSchema"]
    assert got.output_schema == raw["outputSchema"]
    assert got.annotations == raw["annotations"]
    with pytest.raises(TypeError):
        got.input_schema["type"] = "array"
    assert listing.problems == ()


async def test_pages_are_joined_in_order(list_of: Callable[..., Any]) -> None:
    pages = [[tool("b"), tool("a")], [], [tool("d")], [tool("c")]]
    listing = await list_of(tools=pages)
    assert names(listing) == ["b", "a", "d", "c"]
    assert listing.problems == ()


async def test_one_bad_tool_costs_only_itself(list_of: Callable[..., Any]) -> None:
    bad: list[Any] = [
        tool("bad text", description=["x"]),
        tool(7),
        "not an object",
        {"inputSchema": OBJECT},
        {"name": 7, "inputSchema": 5},
    ]
    listing = await list_of(tools=[[tool("first"), *bad, tool("last")], [tool("next page")]])
    assert names(listing) == ["first", "last", "next page"]
    assert len(listing.problems) == len(bad)
    assert listing.problems[0].startswith("tool 'bad text' left out: ")
    assert listing.problems[1].startswith("the tool at position 2 left out: ")
    assert all("\n" not in problem for problem in listing.problems)


@pytest.mark.parametrize(
    ("wrong", "kept"),
    [
        ({}, {}),
        ({"inputSchema": None}, {}),
        ({"inputSchema": {}}, {}),
        ({"inputSchema": {"$schema": "http://json-schema.org/draft-07/schema#"}}, None),
        ({"inputSchema": {"type": "string"}}, None),
        ({"inputSchema": {"type": ["object", "null"], "properties": {"a": True}}}, None),
        ({"inputSchema": {"type": "object", "properties": []}}, None),
        ({"inputSchema": []}, None),
        ({"inputSchema": "x"}, None),
        ({"inputSchema": 5}, None),
    ],
    ids=str,
)
async def test_a_schema_that_the_protocol_does_not_allow_is_kept_as_advertised_for_the_projection_to_judge(
    list_of: Callable[..., Any], wrong: dict[str, Any], kept: Any
) -> None:
    listing = await list_of(tools=[[tool("first"), {"name": "odd", **wrong}, tool("last")]])
    assert names(listing) == ["first", "odd", "last"]
    assert listing.problems == ()
    assert listing.tools[1].input_schema == (wrong["inputSchema"] if kept is None else kept)


@pytest.mark.parametrize(
    ("pages", "cursors", "expected", "problem"),
    [
        ([["a"], ["b"]], ["1", "1"], ["a", "b"], "leads back to an earlier one"),
        ([["a"], ["b"], ["c"]], ["1", "2", "1"], ["a", "b", "c"], "leads back to an earlier one"),
        ([["a", "b"], ["b", "a"], ["c"]], ["1", "2", None], ["a", "b"], "has only tools of earlier pages"),
        ([["a"], ["b"]], ["", None], ["a"], None),
        ([["a"], ["b"]], [5, None], ["a"], "a cursor that is no string (5)"),
    ],
    ids=["same", "alternating", "known names", "empty", "number"],
)
async def test_cursors_that_go_round_end(
    list_of: Callable[..., Any], pages: Any, cursors: Any, expected: list[str], problem: str | None
) -> None:
    listing = await list_of(tools=[[tool(name) for name in page] for page in pages], cursors=cursors)
    assert names(listing) == expected
    if problem is None:
        assert listing.problems == ()
    else:
        assert len(listing.problems) == 1
        assert problem in listing.problems[0]


async def test_pages_without_end_end(list_of: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listing_module, "MAX_PAGES", 5)
    listing = await list_of(tools=[[tool(f"t{n}")] for n in range(9)])
    assert names(listing) == [f"t{n}" for n in range(5)]
    assert listing.problems == ("the tool list has more than 5 pages; stopped there",)


async def test_a_name_counts_once(list_of: Callable[..., Any]) -> None:
    first, second = tool("a", description="first"), tool("a", description="second")
    listing = await list_of(tools=[[first, tool("b"), second], [second, tool("c")]])
    assert names(listing) == ["a", "b", "c"]
    assert listing.tools[0].description == "first"
    assert listing.problems == ("tool 'a' is listed twice; the first one counts",)


async def test_a_server_without_tools_is_not_asked(list_of: Callable[..., Any]) -> None:
    assert await list_of(no_tools=True) == Listing(())


async def test_an_empty_list_is_an_empty_list(list_of: Callable[..., Any]) -> None:
    assert await list_of(tools=[[]]) == Listing(())


@pytest.mark.parametrize(("answer", "said"), [
    ({"error": {"code": -32603, "message": "database is gone"}}, "refused: database is gone (error -32603)"),
    ({"result": {"tools": "none"}}, "no tool list: "),
    ({"result": {}}, "no tool list: "),
    ({"result": None}, "its result is null"),
])  # fmt: skip
async def test_no_list_at_all_is_a_failure_and_the_connection_lives(
    fake: Fake, connect: Connector, patience: Patience, era: str, answer: dict[str, Any], said: str
) -> None:
    with patience():
        async with connect(fake(era=era, list_answer=answer)) as connection:
            with pytest.raises(ListFailed) as caught:
                await connection.list_tools()
            assert said in caught.value.reason
            assert "tools/list" not in caught.value.reason  # who asked says that
            assert not (await connection.call_tool("pid", {}, None)).is_error


async def test_death_while_listing_is_a_loss(fake: Fake, connect: Connector, patience: Patience, era: str) -> None:
    with patience():
        async with connect(fake(era=era, exit_on="tools/list")) as connection:
            with pytest.raises(ConnectionLost) as caught:
                await connection.list_tools()
            assert caught.value.reason == "the server exited with code 9: no licence"


async def test_a_modern_page_with_the_frame_of_an_older_protocol_is_read(
    fake: Fake, connect: Connector, patience: Patience
) -> None:
    with patience():
        async with connect(fake(era="modern", list_answer={"result": {"tools": [tool("a")]}})) as connection:
            listing = await connection.list_tools()
    assert names(listing) == ["a"]


async def test_a_modern_tool_with_wrong_header_annotations_is_left_out(
    fake: Fake, connect: Connector, patience: Patience
) -> None:
    wrong = {"type": "object", "properties": {"a": {"type": "object", "x-mcp-header": "A"}}}
    with patience():
        async with connect(fake(era="modern", tools=[[tool("a"), tool("bad", inputSchema=wrong)]])) as connection:
            listing = await connection.list_tools()
    assert names(listing) == ["a"]
    assert listing.problems == ("tool 'bad' left out: its x-mcp-header annotations are invalid",)


def nested(depth: int) -> dict[str, Any]:
    deep: dict[str, Any] = {}
    for _ in range(depth):
        deep = {"properties": {"a": deep}}
    return {"type": "object", **deep}


async def test_a_deeply_nested_schema_is_read(list_of: Callable[..., Any]) -> None:
    listing = await list_of(tools=[[tool("a"), tool("deep", inputSchema=nested(90))]])
    assert names(listing) == ["a", "deep"]


async def test_a_schema_beyond_what_the_protocol_library_may_nest_costs_only_its_tool(
    list_of: Callable[..., Any],
) -> None:
    listing = await list_of(tools=[[tool("a"), tool("deep", inputSchema=nested(300)), tool("b")]])
    assert names(listing) == ["a", "b"]
    assert listing.problems == ("tool 'deep' left out: nested too deeply",)


async def test_half_a_character_costs_only_itself(list_of: Callable[..., Any]) -> None:
    listing = await list_of(tools=[[tool("\ud800"), tool("a", description="x\udc00y \U0001f600")]])
    assert names(listing) == ["\N{REPLACEMENT CHARACTER}", "a"]
    assert listing.tools[1].description == "x\N{REPLACEMENT CHARACTER}y \U0001f600"


async def test_a_long_list_is_taken_in_slices_and_others_run_in_between(
    list_of: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listing_module, "SLICE", 5)
    real = sdk_methods.validate_server_result
    sizes: list[tuple[int, int]] = []
    turns = 0

    def validate(method: str, version: str, data: Any, **more: Any) -> None:
        if method == "tools/list":
            sizes.append((turns, len(data["tools"])))
        real(method, version, data, **more)

    async def neighbour() -> None:
        nonlocal turns
        while True:
            turns += 1
            await trio.lowlevel.checkpoint()

    monkeypatch.setattr(sdk_methods, "validate_server_result", validate)
    pages = [[tool(f"t{n}") for n in range(23)], [tool(f"t{n}") for n in range(23, 40)]]
    pages[0][17] = tool("t17", description=5)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(neighbour)
        listing = await list_of(tools=pages)
        nursery.cancel_scope.cancel()
    assert names(listing) == [f"t{n}" for n in range(40) if n != 17]
    (problem,) = listing.problems
    assert problem.startswith("tool 't17' left out: ")
    assert max(size for _, size in sizes) == 5
    at_once = [sum(size for turn, size in sizes if turn == each) for each in {turn for turn, _ in sizes}]
    assert max(at_once) <= 4 * 5  # a slice is validated whole, perhaps each tool by itself, and by the session


async def test_a_list_without_end_is_cut(list_of: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listing_module, "MAX_TOOLS", 12)
    pages = [[tool(f"t{n}") for n in range(9)], [tool(f"t{n}") for n in range(9, 18)], [tool("never asked for")]]
    listing = await list_of(tools=pages)
    assert names(listing) == [f"t{n}" for n in range(12)]
    assert listing.problems == ("the tool list has more than 12 tools; those beyond are left out",)


async def test_a_list_of_too_many_characters_is_cut(
    list_of: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listing_module, "MAX_CHARS", 5_000)
    pages = [[tool(f"{page}{number}", description="x" * 1_000) for number in range(3)] for page in "abc"]
    listing = await list_of(tools=pages)
    assert names(listing) == ["a0", "a1", "a2", "b0"]
    assert listing.problems == ("the tools have more than 5000 characters; those beyond are left out",)


async def test_a_list_of_just_the_most_is_whole(list_of: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listing_module, "MAX_TOOLS", 9)
    assert await list_of(tools=[[tool(f"t{n}") for n in range(9)]]) == Listing(
        tuple(ToolDef(f"t{n}") for n in range(9)), ()
    )


async def test_of_many_faults_the_first_are_told(list_of: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listing_module, "MAX_PROBLEMS", 3)
    listing = await list_of(tools=[[tool("a"), *range(7)]])
    assert names(listing) == ["a"]
    assert [problem.split(" left out")[0] for problem in listing.problems] == [
        "the tool at position 1", "the tool at position 2", "the tool at position 3", "and 4 more faults of tools",
    ]  # fmt: skip


async def test_a_tool_that_did_not_change_is_the_same_object(
    fake: Fake, connect: Connector, patience: Patience
) -> None:
    with patience():
        async with connect(fake(tools=[[tool("a", description="d")]])) as connection:
            assert (await connection.list_tools()).tools[0] is (await connection.list_tools()).tools[0]


def test_a_schema_beyond_what_python_may_nest_costs_only_its_tool() -> None:
    """The validation refuses it before that, unless much of the stack is used already."""
    page = listing_module._Page("2025-11-25", tools=[tool("a"), tool("deep", inputSchema=nested(1000))])
    tools: dict[str, Any] = {}
    problems: list[str] = []
    listing_module._take(page, tools, {}, problems)
    assert list(tools) == ["a"]
    assert list(tools) == ["a"]
    assert problems == ["tool 'deep' left out: its schema is nested too deeply"]
