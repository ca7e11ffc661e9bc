"""A minimal MCP server over stdio: the standard library alone, the legacy era; tools, and what else a server answers itself.

Theory of operation: one thread reads lines and answers each; a tool marked ``slow`` runs in a thread of its own,
so that it holds up nobody, and `notifications/cancelled` sets the event it waits on. EOF on stdin ends the process.
Anything this server does not know, `server/discover` too, is answered with method-not-found, which sends a client that
speaks newer eras back to `initialize`.

Source of the message shapes: MCP specification 2025-11-25, basic/lifecycle and server/tools.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

__all__ = ["BadArguments", "Tool", "serve"]

VERSIONS = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")

PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND, INVALID_PARAMS = -32700, -32600, -32601, -32602

Json = dict[str, Any]

Answers = Mapping[str, Callable[[Json], Json]]
"""By method, such as ``resources/read``: makes the result of the params; may raise `BadArguments`."""


class BadArguments(Exception):
    """Raised by a tool: its message is the answer, marked as an error, so that a model can mend its call."""


class Tool(NamedTuple):
    """One tool.

    Args:
        name, title, description: as advertised.
        properties: JSON Schema of each argument.
        required: the arguments that must be given.
        run: called with the arguments as keywords; returns the text of the answer. A slow one is also given
            ``cancelled``, a ``threading.Event``.
        slow: run it in its own thread.
        read_only: what the annotation ``readOnlyHint`` says.
    """

    name: str
    title: str
    description: str
    properties: Json
    required: tuple[str, ...]
    run: Callable[..., str]
    slow: bool = False
    read_only: bool = True

    def advertised(self) -> Json:
        """The tool as `tools/list` tells it."""
        schema = {
            "type": "object",
            "properties": self.properties,
            "required": list(self.required),
            "additionalProperties": False,
        }
        return {
            "name": self.name,
            "title": self.title,
            "description": self.description,
            "inputSchema": schema,
            "annotations": {"readOnlyHint": self.read_only},
        }


_KINDS: dict[str, tuple[type, ...]] = {"string": (str,), "integer": (int,), "number": (int, float), "boolean": (bool,)}


def check(tool: Tool, arguments: Json) -> None:
    """Hold arguments against the tool's schema (the parts of JSON Schema these servers use).

    Raises:
        BadArguments: they do not fit; the message says which and why.
    """
    for key in tool.required:
        if key not in arguments:
            raise BadArguments(f"{tool.name}: the argument {key!r} is missing")
    for key, value in arguments.items():
        if key not in tool.properties:
            raise BadArguments(f"{tool.name}: there is no argument {key!r}; there are: {', '.join(tool.properties)}")
        rule = tool.properties[key]
        kind = rule.get("type")
        if kind == "array":
            fits = isinstance(value, list) and all(isinstance(item, str) for item in value)
        else:
            fits = isinstance(value, _KINDS[kind]) and (kind == "boolean" or not isinstance(value, bool))
        if not fits:
            what = "an array of strings" if kind == "array" else f"of type {kind}"
            raise BadArguments(f"{tool.name}: the argument {key!r} must be {what}")
        low, high = rule.get("minimum"), rule.get("maximum")
        if (low is not None and value < low) or (high is not None and value > high):
            raise BadArguments(f"{tool.name}: the argument {key!r} must be {low} to {high}, not {value}")


def serve(name: str, title: str, instructions: str, tools: Sequence[Tool], answers: Answers | None = None) -> None:
    """Serve these tools on stdin and stdout until stdin ends.

    Args:
        name, title: of the server.
        instructions: for the model: what the server is for.
        tools: in the order they are listed.
        answers: to other methods; what is before the slash is declared as a capability.
    """
    server = _Server(name, title, instructions, tools, answers or {})
    try:
        for line in sys.stdin.buffer:
            if line.strip():
                server.take(line)
    except KeyboardInterrupt:
        pass
    # At once: a slow tool's thread must not keep a server alive whose client is gone.
    os._exit(0)


class _Server:
    def __init__(self, name: str, title: str, instructions: str, tools: Sequence[Tool], answers: Answers) -> None:
        more: Json = {method.partition("/")[0]: {"listChanged": False} for method in answers}
        self.hello = {
            "capabilities": {"tools": {"listChanged": False}, **more},
            "serverInfo": {"name": name, "title": title, "version": "1"},
            "instructions": instructions,
        }
        self.tools = {tool.name: tool for tool in tools}
        self.answers = answers
        self.running: dict[str | int, threading.Event] = {}
        self.writing = threading.Lock()

    def send(self, message: Json) -> None:
        data = json.dumps({"jsonrpc": "2.0", **message}, separators=(",", ":")).encode() + b"\n"
        try:
            with self.writing:
                sys.stdout.buffer.write(data)
                sys.stdout.buffer.flush()
        except BrokenPipeError:  # the client is gone, and nobody else is served here
            os._exit(0)

    def fail(self, key: Any, code: int, message: str) -> None:
        self.send({"id": key, "error": {"code": code, "message": message}})

    def take(self, line: bytes) -> None:
        """One line of input: a request is answered, a notification heeded, an answer ignored."""
        try:
            message = json.loads(line)
        except (ValueError, RecursionError) as error:
            return self.fail(None, PARSE_ERROR, f"not JSON: {error}")
        if not isinstance(message, dict):
            return self.fail(None, INVALID_REQUEST, "a message is one JSON object")
        method, params, key = message.get("method"), message.get("params"), message.get("id")
        params = params if isinstance(params, dict) else {}
        if not isinstance(method, str):
            return None
        if key is None:
            if method == "notifications/cancelled" and params.get("requestId") in self.running:
                self.running[params["requestId"]].set()
            return None
        if not isinstance(key, str | int):
            return self.fail(None, INVALID_REQUEST, "an id is a string or an integer")
        return self.answer(key, method, params)

    def answer(self, key: str | int, method: str, params: Json) -> None:
        if method == "initialize":
            asked = params.get("protocolVersion")
            version = asked if asked in VERSIONS else VERSIONS[0]
            self.send({"id": key, "result": {"protocolVersion": version, **self.hello}})
        elif method == "ping":
            self.send({"id": key, "result": {}})
        elif method == "tools/list":
            self.send({"id": key, "result": {"tools": [tool.advertised() for tool in self.tools.values()]}})
        elif method == "tools/call":
            self.call(key, params)
        elif method in self.answers:
            try:
                result = self.answers[method](params)
                self.send({"id": key, "result": result})
            except BadArguments as error:
                self.fail(key, INVALID_PARAMS, str(error))
        else:
            self.fail(key, METHOD_NOT_FOUND, f"method not found: {method}")

    def call(self, key: str | int, params: Json) -> None:
        tool = self.tools.get(str(params.get("name")))
        arguments = params.get("arguments") or {}
        if tool is None:
            return self.fail(key, INVALID_PARAMS, f"unknown tool: {params.get('name')}")
        if not isinstance(arguments, dict):
            return self.fail(key, INVALID_PARAMS, "arguments must be an object")
        try:
            check(tool, arguments)
        except BadArguments as error:
            return self.reply(key, str(error), is_error=True)
        if not tool.slow:
            return self.run(key, tool, arguments)
        cancelled = self.running[key] = threading.Event()
        work = threading.Thread(target=self.run, args=(key, tool, arguments, cancelled), daemon=True)
        return work.start()

    def run(self, key: str | int, tool: Tool, arguments: Json, cancelled: threading.Event | None = None) -> None:
        try:
            text, is_error = tool.run(**arguments, **({"cancelled": cancelled} if cancelled else {})), False
        except BadArguments as error:
            text, is_error = str(error), True
        except Exception as error:
            text, is_error = f"{tool.name} failed: {type(error).__name__}: {error}", True
        finally:
            self.running.pop(key, None)
        if cancelled is None or not cancelled.is_set():
            self.reply(key, text, is_error=is_error)

    def reply(self, key: str | int, text: str, *, is_error: bool) -> None:
        self.send({"id": key, "result": {"content": [{"type": "text", "text": text}], "isError": is_error}})
