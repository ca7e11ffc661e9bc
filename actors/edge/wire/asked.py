"""What a server asks of the embedder and tells it, between the ``mcp`` SDK's session and a `ports.Client`.

Only what has a handler is announced: the session announces what it was given a callback for. What is asked is looked at before
it is validated, in bounded time: a form of a million fields is refused without being read. The answers are checked here, so
that nonsense of a handler reaches no server.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, get_args

import mcp_types as types
from mcp.shared.exceptions import MCPError
from pydantic import TypeAdapter, ValidationError

from ...model.client import LogLevel
from ...ports import Client, ClientRefused, Question
from ...telemetry.log import Log
from .rpc import encode
from .wire import explain_validation

if TYPE_CHECKING:
    from mcp.client.session import ClientRequestContext

__all__ = ["QUESTIONS", "Asked", "check_size", "told_question"]

_LOG = Log("playbill.client")

MAX_ITEMS = {"sampling/createMessage": 50_000, "elicitation/create": 5_000, "roots/list": 1_000}
"""Values, at any depth, of one question; a larger one is refused."""

MAX_CHARS = {"sampling/createMessage": 64_000_000, "elicitation/create": 1_000_000, "roots/list": 100_000}
"""Characters of all its strings together. (A sampling request may hold pictures.)"""

_LEVELS = {level: rank for rank, level in enumerate(get_args(LogLevel))}

_SAMPLED: TypeAdapter[Any] = TypeAdapter(types.CreateMessageResult | types.CreateMessageResultWithTools)
_ELICITED: TypeAdapter[Any] = TypeAdapter(types.ElicitResult)


QUESTIONS: Mapping[str, Question] = {
    "sampling/createMessage": "sampling",
    "elicitation/create": "elicitation",
    "roots/list": "roots",
}
"""Which handler a request of a server is for."""


def told_question(method: str) -> None:
    """Log that a server asks something, whether there is a handler or not; nothing of what it asks."""
    if method in QUESTIONS:
        _LOG.info("asks the program: %s", method, event="question", method=method)


def check_size(method: str, params: Any) -> None:
    """Refuse a question that is too large to be looked at; takes bounded time.

    Raises:
        MCPError: it is.
    """
    items, chars = MAX_ITEMS.get(method), MAX_CHARS.get(method)
    if items is None or chars is None:
        return
    left: list[Any] = [params]
    while left:
        value = left.pop()
        items -= 1
        if isinstance(value, str):
            chars -= len(value)
        elif isinstance(value, Mapping):
            items -= len(value)
            if items >= 0:
                chars -= sum(len(key) for key in value)
                left.extend(value.values())
        elif isinstance(value, list) and len(value) <= items:
            left.extend(value)
        elif isinstance(value, list):
            items = -1
        if items < 0 or chars < 0:
            raise MCPError(code=types.INVALID_PARAMS, message=f"{method} is too large")


def _rank(level: str) -> int:
    """How severe a level is; one that nobody knows is severe."""
    return _LEVELS.get(level, len(_LEVELS))


class Asked:
    """The callbacks of a session, which have a client answer.

    Args:
        client: the embedder.
    """

    def __init__(self, client: Client) -> None:
        self.client = client

    def callbacks(self) -> dict[str, Any]:
        """What a ``ClientSession`` is given: callbacks for what has a handler, and no others."""
        handlers = self.client.handlers
        given: dict[str, Any] = {}
        if handlers.sampling is not None:
            given["sampling_callback"] = self._sampling
            if handlers.sampling_tools:
                given["sampling_capabilities"] = types.SamplingCapability(tools=types.SamplingToolsCapability())
        if handlers.elicitation is not None:
            given["elicitation_callback"] = self._elicitation
        if handlers.roots is not None:
            given["list_roots_callback"] = self._roots
        if handlers.logging is not None:
            given["log_level"] = handlers.log_level
        return given

    async def _sampling(self, context: ClientRequestContext, params: types.CreateMessageRequestParams) -> Any:
        if (params.tools or params.tool_choice) and not self.client.handlers.sampling_tools:
            return types.ErrorData(code=types.INVALID_PARAMS, message="sampling with tools is not supported")
        return await self._ask("sampling", params, _SAMPLED)

    async def _elicitation(self, context: ClientRequestContext, params: types.ElicitRequestParams) -> Any:
        return await self._ask("elicitation", params, _ELICITED)

    async def _roots(self, context: ClientRequestContext) -> Any:
        return await self._ask("roots", None, None)

    async def _ask(self, question: Question, params: Any, adapter: TypeAdapter[Any] | None) -> Any:
        try:
            answer = await self.client.ask(question, params)
        except ClientRefused as refused:
            code = types.INTERNAL_ERROR if refused.code is None else refused.code
            answer = types.ErrorData(code=code, message=refused.reason, data=refused.data)
        try:
            made = self._made(answer, adapter)
            # Here it costs the question; further down, what cannot be made JSON of would end the connection.
            encode(made.model_dump(mode="json", by_alias=True, exclude_none=True))
        except Exception as error:  # whatever the embedder's objects do
            # The answer may be what a person typed: it is not quoted.
            what = explain_validation(error) if isinstance(error, ValidationError) else error
            _LOG.warning("the %s handler returned what is no answer: %s", question, what)
            return types.ErrorData(code=types.INTERNAL_ERROR, message=f"the {question} handler returned no answer")
        return made

    @staticmethod
    def _made(answer: Any, adapter: TypeAdapter[Any] | None) -> Any:
        if isinstance(answer, types.ErrorData):
            return answer
        if adapter is None:
            roots = [types.Root.model_validate({"uri": root.uri, "name": root.name}) for root in answer]
            return types.ListRootsResult(roots=roots)
        if isinstance(answer, Mapping):
            return adapter.validate_python(dict(answer), by_name=False)
        return adapter.validate_python(answer)

    def heard(self, method: str, params: Mapping[str, Any] | None) -> bool:
        """Take a notification, if it is one for the client; returns whether it was. Never waits.

        Args:
            method, params: as received, unvalidated.
        """
        params = params or {}
        if method == "notifications/message":
            level, logger = params.get("level"), params.get("logger")
            # Not every server does as it is asked.
            if isinstance(level, str) and "data" in params and _rank(level) >= _rank(self.client.handlers.log_level):
                self.client.tell("logging", level, params["data"], logger if isinstance(logger, str) else None)
            return True
        if method == "notifications/elicitation/complete":
            elicitation = params.get("elicitationId")
            if isinstance(elicitation, str):
                self.client.tell("elicitation_complete", elicitation)
            return True
        return False
