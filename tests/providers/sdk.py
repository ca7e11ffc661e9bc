"""What the providers' own SDKs say of what we make for them: their types, used the way their clients use them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

PROVIDERS = ("openai", "openai-responses", "anthropic", "gemini", "bedrock", "mcp")


def _only(known: Any, value: dict[str, Any]) -> None:
    """A TypedDict lets further keys through; the servers do not."""
    strange = value.keys() - (known.__required_keys__ | known.__optional_keys__)
    assert not strange, f"{known.__name__} has no {sorted(strange)}"


@cache
def _adapter(kind: Any) -> Any:
    from pydantic import TypeAdapter

    return TypeAdapter(kind)


def _typed(kind: Any, value: dict[str, Any]) -> Any:
    _only(kind, value)
    return _adapter(kind).validate_python(value)


@cache
def converse() -> Any:
    """The shape of what Bedrock's Converse takes, as botocore has it, and what checks it."""
    import botocore.session
    from botocore.validate import ParamValidator

    shape = botocore.session.get_session().get_service_model("bedrock-runtime").operation_model("Converse").input_shape
    return ParamValidator(), shape


def _converse(**parameters: Any) -> None:
    validator, shape = converse()
    report = validator.validate({"modelId": "a-model", **parameters}, shape)
    assert not report.has_errors(), report.generate_report()


def _openai_tools(tools: list[dict[str, Any]]) -> None:
    from openai.types.chat import ChatCompletionToolParam
    from openai.types.shared_params import FunctionDefinition

    for tool in tools:
        _typed(ChatCompletionToolParam, tool)
        _only(FunctionDefinition, tool["function"])


def _responses_tools(tools: list[dict[str, Any]]) -> None:
    from openai.types.responses import FunctionToolParam

    for tool in tools:
        _typed(FunctionToolParam, tool)


def _anthropic_tools(tools: list[dict[str, Any]]) -> None:
    from anthropic.types import ToolParam

    for tool in tools:
        _typed(ToolParam, tool)


def _gemini_tools(tools: list[dict[str, Any]]) -> None:
    from google.genai import types

    for tool in tools:
        made = types.Tool.model_validate(tool)
        assert made.model_dump(by_alias=True, exclude_none=True) == tool  # nothing is ignored or understood otherwise


def _bedrock_tools(tools: list[dict[str, Any]]) -> None:
    if tools:  # a list without any is not sent
        _converse(toolConfig={"tools": tools}, messages=[])


def _mcp_tools(tools: list[dict[str, Any]]) -> None:
    from mcp.types import Tool

    for tool in tools:
        made = Tool.model_validate(tool)
        assert made.model_dump(by_alias=True, exclude_none=True) == tool


_TOOLS: dict[str, Callable[[list[dict[str, Any]]], None]] = {
    "openai": _openai_tools,
    "openai-responses": _responses_tools,
    "anthropic": _anthropic_tools,
    "gemini": _gemini_tools,
    "bedrock": _bedrock_tools,
    "mcp": _mcp_tools,
}


def check_tools(provider: str, tools: list[dict[str, Any]]) -> None:
    """Fail unless the provider's SDK takes them as the ``tools`` of a request."""
    _TOOLS[provider](tools)


def names(provider: str, tools: list[dict[str, Any]]) -> list[str]:
    """The names in a provider's ``tools``, in order."""
    if provider == "openai":
        return [tool["function"]["name"] for tool in tools]
    if provider == "gemini":
        return [each["name"] for tool in tools for each in tool["functionDeclarations"]]
    if provider == "bedrock":
        return [tool["toolSpec"]["name"] for tool in tools]
    return [tool["name"] for tool in tools]


def schemas(provider: str, tools: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The input schemas in a provider's ``tools``, in order."""
    return {
        "openai": lambda: [tool["function"]["parameters"] for tool in tools],
        "openai-responses": lambda: [tool["parameters"] for tool in tools],
        "anthropic": lambda: [tool["input_schema"] for tool in tools],
        "gemini": lambda: [each["parametersJsonSchema"] for tool in tools for each in tool["functionDeclarations"]],
        "bedrock": lambda: [tool["toolSpec"]["inputSchema"]["json"] for tool in tools],
        "mcp": lambda: [tool["inputSchema"] for tool in tools],
    }[provider]()


# --- results


def _all(parts: Iterable[Any]) -> list[Any]:
    return list(parts)  # pydantic checks an iterable while it is read


def _openai_answer(answer: dict[str, Any]) -> None:
    from openai.types.chat import ChatCompletionToolMessageParam

    content = _typed(ChatCompletionToolMessageParam, answer)["content"]
    assert isinstance(content, str)
    assert content.strip()


def _responses_answer(answer: dict[str, Any]) -> None:
    from openai.types.responses.response_input_file_content_param import ResponseInputFileContentParam
    from openai.types.responses.response_input_image_content_param import ResponseInputImageContentParam
    from openai.types.responses.response_input_param import FunctionCallOutput
    from openai.types.responses.response_input_text_content_param import ResponseInputTextContentParam

    _typed(FunctionCallOutput, answer)
    output = answer["output"]
    assert output if isinstance(output, list) else output.strip()
    kinds = {
        "input_text": ResponseInputTextContentParam,
        "input_image": ResponseInputImageContentParam,
        "input_file": ResponseInputFileContentParam,
    }
    for part in output if isinstance(output, list) else ():
        _typed(kinds[part["type"]], part)


def _anthropic_answer(answer: dict[str, Any]) -> None:
    from anthropic.types import DocumentBlockParam, ImageBlockParam, TextBlockParam, ToolResultBlockParam

    kinds: dict[str, Any] = {"text": TextBlockParam, "image": ImageBlockParam, "document": DocumentBlockParam}
    assert _all(_typed(ToolResultBlockParam, answer)["content"])
    for part in answer["content"]:
        _typed(kinds[part["type"]], part)
        assert part["type"] != "text" or part["text"].strip()  # "text content blocks must contain non-whitespace text"
        assert (
            part["type"] == "text" or not answer["is_error"]
        )  # "all content must be type 'text' if 'is_error' is true"


def _gemini_answer(answer: dict[str, Any]) -> None:
    from google.genai import types

    part = types.Part.model_validate(answer)
    function = part.function_response
    assert function is not None
    assert function.name
    assert set(function.response or {}) in ({"output"}, {"error"})
    sent = part.model_dump(by_alias=True, exclude_none=True)["functionResponse"]
    assert sent.keys() == answer["functionResponse"].keys()


def _bedrock_answer(answer: dict[str, Any]) -> None:
    call = {"toolUseId": answer["toolResult"]["toolUseId"], "name": "a", "input": {}}
    messages = [{"role": "assistant", "content": [{"toolUse": call}]}, {"role": "user", "content": [answer]}]
    _converse(messages=messages)
    content = answer["toolResult"]["content"]
    assert content
    for part in content:
        assert "text" not in part or part["text"].strip()
        assert "json" not in part or isinstance(part["json"], dict)  # "Provide a json object for the field"


def _mcp_answer(answer: dict[str, Any]) -> None:
    from mcp.types import CallToolResult

    CallToolResult.model_validate(answer)


_ANSWERS: dict[str, Callable[[dict[str, Any]], None]] = {
    "openai": _openai_answer,
    "openai-responses": _responses_answer,
    "anthropic": _anthropic_answer,
    "gemini": _gemini_answer,
    "bedrock": _bedrock_answer,
    "mcp": _mcp_answer,
}


def check_answer(provider: str, answer: dict[str, Any]) -> None:
    """Fail unless the provider's SDK takes it as a tool's result, or its servers are known to refuse it."""
    _ANSWERS[provider](answer)
