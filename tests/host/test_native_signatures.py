"""`native_tool`: a signature becomes a schema, a docstring a description; arguments are checked; what cannot be is refused."""

from __future__ import annotations

import enum
import functools
import inspect
import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from typing import Annotated, Any, Literal, Optional

import attrs
import pytest
from attrs import evolve
from playbill.actors import NativeTool, native_tool
from playbill.actors.model.native import check_natives
from playbill.actors.model.profile import PORTABLE, PROFILES
from pydantic import BaseModel, ConfigDict, Field
from typing_extensions import TypedDict


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Address(BaseModel):
    street: str
    number: Annotated[int, Field(ge=1)] = 1


@dataclass
class Point:
    x: int
    y: int = 0


class Range(TypedDict):
    low: int


def bound(tool: NativeTool, **arguments: Any) -> Any:
    assert tool.bind is not None
    by_place, by_name = tool.bind(arguments)
    return tool.handler(*by_place, **by_name)


def refused(tool: NativeTool, **arguments: Any) -> str:
    assert tool.bind is not None
    with pytest.raises(ValueError, match="the arguments do not fit") as found:
        tool.bind(arguments)
    assert "\n" not in str(found.value)
    return str(found.value)


def everything(
    place: int,
    /,
    text: Annotated[str, Field(description="What to say.", max_length=5)],
    address: Address,
    colour: Colour = Colour.RED,
    mode: Literal["fast", "slow"] = "fast",
    day: Optional[date] = None,  # noqa: UP045
    point: Point | None = None,
    span: Range | None = None,
    schema: list[Address] = [],  # noqa: B006
    _hidden: float = Field(default=0.5, ge=0),
    *,
    self: bool = False,
    anything: Any = object(),  # noqa: B008
    plain=3,  # type: ignore[no-untyped-def]
) -> tuple[Any, ...]:
    """Takes everything.

    On more than one line.
    """
    return place, text, address, colour, mode, day, point, span, schema, _hidden, self, plain


def test_a_signature_becomes_a_schema() -> None:
    tool = native_tool(everything)
    assert tool.name == "everything"
    assert tool.description == "Takes everything.\n\nOn more than one line."
    assert tool.handler is everything
    schema = tool.input_schema
    assert schema["type"] == "object"
    assert schema["required"] == ["place", "text", "address"]
    assert schema["additionalProperties"] is False
    of = schema["properties"]
    assert list(of) == list(inspect.signature(everything).parameters)
    assert of["place"] == {"type": "integer"}
    assert of["text"] == {"type": "string", "description": "What to say.", "maxLength": 5}
    assert of["mode"] == {"type": "string", "enum": ["fast", "slow"], "default": "fast"}
    assert of["colour"]["default"] == "red"
    assert schema["$defs"]["Colour"]["enum"] == ["red", "blue"]
    assert schema["$defs"]["Address"]["required"] == ["street"]
    assert of["_hidden"] == {"type": "number", "minimum": 0, "default": 0.5}
    assert "default" not in of["anything"]
    json.dumps(schema, allow_nan=False)


@dataclass
class Span:
    low: float = -math.inf
    high: float = 1.0


@pytest.mark.parametrize(
    ("kind", "default"),
    [
        (float, math.inf),
        (float, math.nan),
        (list[float], [1.0, -math.inf]),
        (dict[str, float], {"x": math.nan}),
        (Span, Span()),
        (str, "\ud800"),
    ],
)
def test_a_default_that_json_does_not_have_is_left_out_and_still_the_default(kind: Any, default: Any) -> None:
    def limit(most=default, least: float = 0.5):  # type: ignore[no-untyped-def]
        """Limits."""

    limit.__annotations__["most"] = kind
    tool = native_tool(limit)
    for profile in PROFILES.values():
        if not profile.strict:
            check_natives([tool], profile)
    of = tool.input_schema["properties"]
    assert "default" not in of["most"]
    assert of["least"]["default"] == 0.5
    json.dumps(tool.input_schema, allow_nan=False)
    assert tool.bind is not None
    _, found = tool.bind({})
    assert repr(found["most"]) == repr(default)


def test_arguments_become_what_the_handler_is_annotated_with() -> None:
    tool = native_tool(everything)
    found = bound(
        tool,
        place="7",
        text="hi",
        address={"street": "s"},
        colour="blue",
        day="2026-02-03",
        point={"x": 1},
        span={"low": 2},
        schema=[{"street": "t", "number": 2}],
        self=True,
    )
    assert found == (
        7, "hi", Address(street="s"), Colour.BLUE, "fast", date(2026, 2, 3), Point(1), {"low": 2},
        [Address(street="t", number=2)], 0.5, True, 3,
    )  # fmt: skip


def test_every_flaw_of_the_arguments_is_told_in_one_line() -> None:
    told = refused(native_tool(everything), place="x", text="too long", address={"number": 0}, mode="mid", txt=1)
    assert told.startswith("the arguments do not fit: place: Input should be a valid integer")
    for words in (
        "text: String should have at most 5 characters",
        "address.street is missing",
        "address.number: Input should be greater than or equal to 1",
        "mode: Input should be 'fast' or 'slow'",
        "txt is unknown, did you mean text?",
    ):
        assert words in told


def test_an_unknown_key_inside_an_argument_is_not_taken_for_an_unknown_argument() -> None:
    @dataclass
    class Place:
        __pydantic_config__ = ConfigDict(extra="forbid")
        city: str

    def weather(place: Place) -> None:
        """Tells."""

    said = refused(native_tool(weather), place={"city": "Bern", "zip": 3})
    assert "place.zip: " in said
    assert "arguments are" not in said


def test_a_default_that_can_be_changed_is_not_shared_between_calls() -> None:
    def collect(into: list[int] = []) -> list[int]:  # noqa: B006
        """Collects."""
        into.append(1)
        return into

    tool = native_tool(collect)
    assert bound(tool) == bound(tool) == [1]


def test_no_parameters_are_a_schema_too_and_take_no_arguments() -> None:
    @native_tool
    def ping() -> str:
        """Answers."""
        return "pong"

    assert ping.input_schema == {"type": "object", "properties": {}, "additionalProperties": False}
    assert bound(ping) == "pong"
    assert "x is unknown, it takes no arguments" in refused(ping, x=1)


def test_many_flaws_are_counted_and_not_all_told() -> None:
    @native_tool
    def numbers(them: list[int]) -> None:
        """Counts."""

    assert refused(numbers, them=["x"] * 30).endswith("and 20 more")


def test_it_decorates_with_and_without_parentheses() -> None:
    @native_tool
    def one() -> None:
        """One."""

    @native_tool()
    async def two() -> None:
        """Two."""

    @native_tool(name="drei", description="Three.")
    def three() -> None: ...

    assert [(tool.name, tool.description) for tool in (one, two, three)] == [
        ("one", "One."),
        ("two", "Two."),
        ("drei", "Three."),
    ]


def test_a_schema_of_ones_own_is_kept_and_arguments_are_passed_as_they_come() -> None:
    def raw(**kwargs: Any) -> Any:
        """Takes anything."""
        return kwargs

    tool = native_tool(raw, input_schema={"type": "object", "properties": {"a": {"type": "integer"}}})
    assert tool.input_schema["properties"] == {"a": {"type": "integer"}}
    assert tool.bind is None


def test_annotations_may_name_what_is_local_or_defined_later() -> None:
    class Local(BaseModel):
        n: int

    def local(it: Local, other: Later) -> None:
        """Looks."""

    assert set(native_tool(local).input_schema["$defs"]) == {"Local", "Later"}


class Later(BaseModel):
    n: int = 0


def test_what_a_handler_returns_need_not_be_known() -> None:
    def odd(n: int) -> NoSuchType:  # type: ignore[name-defined]  # noqa: F821
        """Odd."""

    assert native_tool(odd).input_schema["required"] == ["n"]


class Shop:
    def __init__(self, stock: int) -> None:
        self.stock = stock

    def left(self, sold: int = 0) -> int:
        """What is left."""
        return self.stock - sold

    def __call__(self, more: int) -> int:
        return self.stock + more

    @classmethod
    def named(cls, name: str) -> str:
        """Of the class."""
        return cls.__name__ + name

    @staticmethod
    def fixed(n: int) -> int:
        """Of nobody."""
        return n


def wrapped(n: int) -> int:
    """Wrapped."""
    return n


@functools.wraps(wrapped)
def wrapper(*args: Any, **kwargs: Any) -> int:
    return wrapped(*args, **kwargs) + 1


@pytest.mark.parametrize(
    ("handler", "name", "arguments", "answer"),
    [
        (Shop(5).left, "left", {"sold": "2"}, 3),
        (Shop(5), "Shop", {"more": 1}, 6),
        (Shop.named, "named", {"name": "x"}, "Shopx"),
        (Shop.fixed, "fixed", {"n": 1}, 1),
        (functools.partial(Shop(5).left), "left", {}, 5),
        (wrapper, "wrapped", {"n": 1}, 2),
    ],
    ids=["method", "object", "classmethod", "staticmethod", "partial", "wrapped"],
)
def test_methods_objects_partials_and_wrappers_are_read_too(
    handler: Callable[..., Any], name: str, arguments: dict[str, Any], answer: Any
) -> None:
    tool = native_tool(handler, description="A tool.")
    assert tool.name == name
    assert bound(tool, **arguments) == answer


def test_what_a_partial_binds_is_not_the_models_to_give() -> None:
    def fetch(base: str, path: str, *, secret: str = "none") -> str:
        """Fetches."""
        return f"{base}/{path}?{secret}"

    tool = native_tool(functools.partial(functools.partial(fetch, "http://x"), secret="s3"))
    assert list(tool.input_schema["properties"]) == ["path"]
    assert tool.description == "Fetches."
    assert "s3" not in json.dumps(tool.input_schema)
    assert bound(tool, path="a") == "http://x/a?s3"
    assert "secret is unknown" in refused(tool, path="a", secret="mine")


@attrs.define
class Boxed:
    n: int


def starred(*args: int) -> None:
    """Starred."""


def doubly(**kwargs: int) -> None:
    """Starred."""


def unknown(n: NoSuchType) -> None:  # type: ignore[name-defined]  # noqa: F821
    """Unknown."""


def boxed(fine: int, box: Boxed) -> None:
    """Boxed."""


def called_back(call: Callable[[], int]) -> None:
    """Called."""


def yielding() -> Any:
    """Yields."""
    yield 1


def silent(n: int) -> None: ...


@pytest.mark.parametrize(
    ("handler", "reason"),
    [
        (starred, r"'starred' takes \*args, of which no schema can be made"),
        (doubly, r"'doubly' takes \*\*kwargs, of which no schema can be made"),
        (unknown, "'unknown': parameter 'n': its annotation cannot be resolved: name 'NoSuchType' is not defined"),
        (boxed, "'boxed': parameter 'box': .*Boxed.*; make it a dataclass, a TypedDict or a pydantic model"),
        (called_back, "'called_back': parameter 'call': "),
        (yielding, "'yielding' yields, and a call has one result"),
        (silent, "'silent' has neither a docstring nor a description"),
        (lambda: 1, "lambda needs a name"),
        (Shop.left, "'left' is a method without its object"),
        (3, "made of something callable, not of 3"),
    ],
)
def test_what_cannot_be_a_tool_is_refused_in_one_line(handler: Any, reason: str) -> None:
    with pytest.raises(ValueError, match=reason) as found:
        native_tool(handler)
    assert "\n" not in str(found.value)


def test_what_is_made_of_a_signature_passes_every_profile() -> None:
    typed = native_tool(Shop(1).left)
    for profile in PROFILES.values():
        check_natives([typed] if profile.strict else [typed, native_tool(everything)], profile)


def test_strict_mode_takes_no_parameter_that_may_be_anything() -> None:
    with pytest.raises(ValueError, match=r"'everything'.*inputSchema\.properties\.anything"):
        check_natives([native_tool(everything)], evolve(PORTABLE, strict=True))
