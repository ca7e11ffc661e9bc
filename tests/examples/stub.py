"""A provider's HTTP API on loopback, scripted: it answers what it is told to, and is as strict as the real one.

Theory of operation. A stub is a trio server in the test's own run, so that a test may wait for what it sees without any clock.
Each request takes the next of its `replies`. One that the provider would refuse is answered with a 400, as there, and is
kept in `refused`, which a test finds empty at its end. What is held against it: the tools (the provider's rules as a JSON
Schema, and the SDK's own types), and the conversation: each call of the model has its result, in the order of the calls, and
there is no other.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, ClassVar

import trio
from attrs import Factory, define, frozen

from ..providers.rules import violations
from ..providers.sdk import check_answer, check_tools

Json = dict[str, Any]


@frozen
class Use:
    """The model asks for a call."""

    id: str
    name: str
    arguments: Any = Factory(dict)


@frozen
class Reply:
    """What the stub answers one request with.

    Args:
        text: what the model says.
        uses: the calls it asks for.
        cut: it had no room left to finish.
        status: an HTTP error instead.
        hang: begin the answer, and never end it.
        broken: hang up in the midst of the answer.
        first: what happens before the answer.
    """

    text: str = ""
    uses: tuple[Use, ...] = ()
    cut: bool = False
    status: int = 200
    hang: bool = False
    broken: bool = False
    first: Callable[[], Awaitable[object]] | None = None


def say(text: str, **more: Any) -> Reply:
    return Reply(text, **more)


def ask(*uses: Use, text: str = "", **more: Any) -> Reply:
    return Reply(text, uses, **more)


@define(eq=False)
class Stub:
    """A provider.

    Attributes:
        url: of its API, once it runs.
        replies: what is still to be answered.
        bodies: what was asked, in order, that was not refused.
        refused: what of it the provider would not take, one line each.
        hanging: an answer has begun that does not end.
        gone: the one who waited for that has hung up.
    """

    replies: list[Reply]
    url: str = ""
    bodies: list[Json] = Factory(list)
    refused: list[str] = Factory(list)
    tried: int = 0
    strict: bool = False
    hanging: trio.Event = Factory(trio.Event)
    gone: trio.Event = Factory(trio.Event)

    provider: ClassVar[str]
    path: ClassVar[str]
    root: ClassVar[str] = ""

    async def serve(self, task_status: trio.TaskStatus[None]) -> None:
        """Run until cancelled."""
        async with trio.open_nursery() as nursery:
            listeners = await nursery.start(partial(trio.serve_tcp, self._connection, 0, host="127.0.0.1"))
            port = listeners[0].socket.getsockname()[1]
            self.url = f"http://127.0.0.1:{port}{self.root}"
            task_status.started()

    async def _connection(self, stream: trio.SocketStream) -> None:
        data = b""
        while b"\r\n\r\n" not in data:
            data += await stream.receive_some()
        head, _, body = data.partition(b"\r\n\r\n")
        lines = head.decode().split("\r\n")
        headers = {key.lower(): value.strip() for key, _, value in (line.partition(":") for line in lines[1:])}
        while len(body) < int(headers.get("content-length", 0)):
            body += await stream.receive_some()
        try:
            await self._answer(stream, lines[0].split()[1], json.loads(body))
        except trio.BrokenResourceError:  # the one who asked has hung up
            self.gone.set()

    async def _answer(self, stream: trio.SocketStream, path: str, body: Json) -> None:
        self.tried += 1
        wrong = [] if path.partition("?")[0] == self.root + self.path else [f"no such path: {path}"]
        wrong += self.check_request(body)
        reply = self.replies.pop(0) if self.replies else None
        if reply is None:
            wrong.append("nothing more was to be asked")
        if wrong or reply is None:
            self.refused += wrong
            await self._error(stream, 400, wrong[0])
            return
        if reply.first is not None:
            await reply.first()
        if reply.status != 200:
            await self._error(stream, reply.status, "come again")
            return
        self.bodies.append(body)
        kind, parts = self.encode(reply, body)
        head = f"HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\n"
        await stream.send_all(head.encode())
        whole = not (reply.hang or reply.broken)
        for part in parts if whole else parts[:-1]:
            await stream.send_all(f"{len(part):x}\r\n".encode() + part + b"\r\n")
        if whole:
            await stream.send_all(b"0\r\n\r\n")
        elif reply.hang:
            self.hanging.set()
            while await stream.receive_some():
                pass
            self.gone.set()

    async def _error(self, stream: trio.SocketStream, status: int, message: str) -> None:
        body = json.dumps({"type": "error", "error": {"type": "an_error", "message": message}}).encode()
        retry = "retry-after-ms: 1\r\n" if status in (429, 500) else ""
        head = f"HTTP/1.1 {status} Bad\r\ncontent-type: application/json\r\n{retry}content-length: {len(body)}\r\n"
        await stream.send_all(head.encode() + b"connection: close\r\n\r\n" + body)

    def check_request(self, body: Json) -> list[str]:
        """What the provider would refuse of a request."""
        wrong = self.check_messages(body)
        if "tools" in body:
            tools = [{key: value for key, value in tool.items() if key != "cache_control"} for tool in body["tools"]]
            wrong += violations(self.provider, tools, strict=self.strict)
            wrong += ["an empty list of tools"] if not tools else []
            check_tools(self.provider, body["tools"])
        elif "tool_choice" in body:
            wrong.append("a choice of tools without tools")
        return wrong

    def check_messages(self, body: Json) -> list[str]:
        raise AssertionError

    def encode(self, reply: Reply, body: Json) -> tuple[str, list[bytes]]:
        raise AssertionError

    def results(self, number: int) -> list[Json]:
        """The results of calls that a request ended with."""
        raise AssertionError

    def tools(self, number: int) -> list[Json]:
        return list(self.bodies[number].get("tools", ()))


def _in_two(body: Json) -> tuple[str, list[bytes]]:
    text = json.dumps(body).encode()
    return "application/json", [text[:20], text[20:]]


class AnthropicStub(Stub):
    """``POST /v1/messages``, as one answer or as a stream."""

    provider = "anthropic"
    path = "/v1/messages"

    def check_messages(self, body: Json) -> list[str]:
        wrong = [f"{key} is missing" for key in ("model", "max_tokens") if not body.get(key)]
        asked: list[str] = []
        if body["messages"][0]["role"] != "user":
            wrong.append("messages: first message must use the user role")
        for number, message in enumerate(body["messages"]):
            content = message["content"]
            blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
            if not blocks or any(block["type"] == "text" and not block["text"].strip() for block in blocks):
                wrong.append(f"messages.{number}: text content blocks must be non-empty")
            allowed = {"text": {"type", "text", "citations"}, "tool_use": {"type", "id", "name", "input"}}
            for block in blocks:
                extra = block.keys() - allowed.get(block["type"], block.keys())
                wrong += [f"messages.{number}: {key}: Extra inputs are not permitted" for key in extra]
            given = [block for block in blocks if block["type"] == "tool_result"]
            for block in given:
                check_answer("anthropic", block)
            if [block["tool_use_id"] for block in given] != asked or blocks[: len(given)] != given:
                wrong.append(
                    f"messages.{number}: results {[block['tool_use_id'] for block in given]} for calls {asked}"
                )
            asked = [block["id"] for block in blocks if block["type"] == "tool_use"]
        return wrong + ([f"calls without results: {asked}"] if asked else [])

    def encode(self, reply: Reply, body: Json) -> tuple[str, list[bytes]]:
        usage = {"input_tokens": 1, "output_tokens": 1}
        reason = "max_tokens" if reply.cut else "tool_use" if reply.uses else "end_turn"
        message: Json = {"id": "msg_1", "type": "message", "role": "assistant", "model": body["model"], "content": []}
        message |= {"stop_reason": None, "stop_sequence": None, "usage": usage}
        if not body.get("stream"):
            content: list[Json] = [{"type": "text", "text": reply.text, "citations": None}] if reply.text else []
            content += [
                {"type": "tool_use", "id": use.id, "name": use.name, "input": use.arguments} for use in reply.uses
            ]
            return _in_two({**message, "content": content, "stop_reason": reason})
        events: list[Json] = [{"type": "message_start", "message": message}]
        blocks: list[tuple[Json, Json]] = []
        if reply.text:
            blocks.append(({"type": "text", "text": ""}, {"type": "text_delta", "text": reply.text}))
        for use in reply.uses:
            start = {"type": "tool_use", "id": use.id, "name": use.name, "input": {}}
            blocks.append((start, {"type": "input_json_delta", "partial_json": json.dumps(use.arguments)}))
        for index, (start, delta) in enumerate(blocks):
            events.append({"type": "content_block_start", "index": index, "content_block": start})
            events.append({"type": "content_block_delta", "index": index, "delta": delta})
            events.append({"type": "content_block_stop", "index": index})
        delta = {"stop_reason": reason, "stop_sequence": None}
        events.append({"type": "message_delta", "delta": delta, "usage": {"output_tokens": 2}})
        events.append({"type": "message_stop"})
        return "text/event-stream", [f"event: {each['type']}\ndata: {json.dumps(each)}\n\n".encode() for each in events]

    def results(self, number: int) -> list[Json]:
        blocks = self.bodies[number]["messages"][-1]["content"]
        return [
            {
                "id": block["tool_use_id"],
                "error": block["is_error"],
                "text": block["content"][0]["text"],
            }
            for block in blocks
        ]


class ResponsesStub(Stub):
    """``POST /v1/responses``."""

    provider = "openai-responses"
    path = "/responses"
    root = "/v1"

    def check_messages(self, body: Json) -> list[str]:
        wrong = [] if body.get("model") else ["model is missing"]
        asked: list[str] = []
        for number, item in enumerate(body["input"]):
            if item.get("type") == "function_call":
                asked.append(item["call_id"])
            elif item.get("type") == "function_call_output":
                check_answer("openai-responses", item)
                if not asked or asked.pop(0) != item["call_id"]:
                    wrong.append(f"input[{number}]: no tool call found for {item['call_id']} in its turn")
            elif asked and item.get("type") != "reasoning":
                wrong.append(f"input[{number}]: no tool output found for {asked}")
        return wrong + ([f"no tool output found for {asked}"] if asked else [])

    def encode(self, reply: Reply, body: Json) -> tuple[str, list[bytes]]:
        output: list[Json] = []
        if reply.text:
            content = [{"type": "output_text", "text": reply.text, "annotations": []}]
            output.append(
                {"type": "message", "id": "m", "role": "assistant", "status": "completed", "content": content}
            )
        for use in reply.uses:
            arguments = use.arguments if isinstance(use.arguments, str) else json.dumps(use.arguments)
            output.append(
                {
                    "type": "function_call",
                    "id": f"fc_{use.id}",
                    "call_id": use.id,
                    "name": use.name,
                    "arguments": arguments,
                    "status": "completed",
                }
            )
        whole: Json = {"id": "resp_1", "object": "response", "created_at": 0, "model": body["model"], "output": output}
        whole |= {"status": "incomplete" if reply.cut else "completed", "error": None, "parallel_tool_calls": True}
        whole |= {"incomplete_details": {"reason": "max_output_tokens"} if reply.cut else None}
        whole |= {
            "tool_choice": "auto",
            "tools": [],
            "instructions": None,
            "metadata": {},
            "temperature": 1,
            "top_p": 1,
        }
        return _in_two(whole)

    def results(self, number: int) -> list[Json]:
        items = self.bodies[number]["input"]
        found = []
        for item in reversed(items):
            if item.get("type") != "function_call_output":
                break
            text = item["output"]
            found.append({"id": item["call_id"], "error": text.startswith("[The "), "text": text})
        return found[::-1]
