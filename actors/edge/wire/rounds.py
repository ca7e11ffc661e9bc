"""Rounds of input (2026-07-28): a server that needs something first answers with what it asks, and is called again with it.

    an answer has                then
    questions                    all are put to the embedder side by side; the request is made again with the answers
    a state only                 the request is made again with it, after a pause that grows
    neither                      it is the result

One question that gets no answer ends the request; so do more than `MAX_ROUNDS` rounds, and more than `MAX_QUESTIONS` in one.
It all happens in the caller's task, by its deadline; the loss of the connection ends it at once.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import trio
from attrs import frozen
from mcp.client.session import ClientRequestContext, ClientSession
from mcp.shared.exceptions import MCPError
from mcp_types import ElicitationRequiredErrorData, ElicitRequest, ErrorData, InputRequiredResult
from pydantic import ValidationError

from .wire import one_line

__all__ = ["NoInput", "Round", "play_rounds", "visit_first"]

MAX_ROUNDS = 10
"""As the SDKs of other languages have it."""

MAX_QUESTIONS = 16

PAUSE_FIRST, PAUSE_MOST = 0.05, 1.0
"""Seconds before a request is made again that only a state is given for: the first time, and at most."""


class NoInput(Exception):
    """What the server asked for is not to be had; the message is one line."""


@frozen
class Round:
    """What a request is made again with; of the first one neither is given.

    Args:
        responses: by the keys of the questions, or None.
        state: as the server gave it, or None.
    """

    responses: dict[str, Any] | None = None
    state: str | None = None


async def play_rounds(
    session: ClientSession, request: Callable[[Round], Awaitable[Any]], lost: trio.Event, result: Any = None
) -> Any:
    """Make a request, and again until it has its result.

    Args:
        session: whose callbacks answer.
        request: makes it.
        lost: set when the connection is.
        result: of the first request, where that was made already.

    Returns:
        The first result that asks for nothing.

    Raises:
        NoInput: there is no answer to what is asked.
        Exception: what ``request`` raises.
    """
    if result is None:
        result = await request(Round())
    pause = PAUSE_FIRST
    for _ in range(MAX_ROUNDS):
        if not isinstance(result, InputRequiredResult):
            return result
        if result.input_requests:
            pause = PAUSE_FIRST
            responses = await _answers(session, result.input_requests, lost)
        else:
            responses = None
            with trio.move_on_after(pause):
                await lost.wait()
            pause = min(2 * pause, PAUSE_MOST)
        result = await request(Round(responses, result.request_state))
    if not isinstance(result, InputRequiredResult):
        return result
    raise NoInput(f"it asked for more input {MAX_ROUNDS} times")


async def visit_first(session: ClientSession, error: MCPError, lost: trio.Event) -> str:
    """What became of the URLs that an error of a call names: whoever can visit them was asked (2025-11-25, error -32042).

    Args:
        session: whose callbacks answer.
        error: of that code.
        lost: set when the connection is.

    Returns:
        The answers in words; empty when the error names none, or nobody answers.
    """
    try:
        named = ElicitationRequiredErrorData.model_validate(error.data).elicitations[:MAX_QUESTIONS]
        questions = {str(number): ElicitRequest(params=params) for number, params in enumerate(named)}
        answers = await _answers(session, questions, lost) if questions else None
    except (ValidationError, NoInput):
        return ""
    return ", ".join(str(answer.action) for answer in (answers or {}).values())


async def _answers(session: ClientSession, questions: dict[str, Any], lost: trio.Event) -> dict[str, Any] | None:
    """The answers to all of them; None when the connection was lost meanwhile, as the next request will say."""
    if len(questions) > MAX_QUESTIONS:
        raise NoInput(f"it asked {len(questions)} questions at once")
    answers: dict[str, Any] = {}
    refused: list[str] = []
    async with trio.open_nursery() as nursery:

        async def ask(key: str, question: Any) -> None:
            meta = question.params.meta if question.params is not None else None
            context = ClientRequestContext(session=session, request_id=key, meta=meta)
            answer = await session.dispatch_input_request(context, question)
            if isinstance(answer, ErrorData):
                refused.append(f"{one_line(key, 60)}: {one_line(answer.message, 200)}")
                nursery.cancel_scope.cancel()
            answers[key] = answer
            if len(answers) == len(questions):
                nursery.cancel_scope.cancel()

        async def give_up() -> None:
            await lost.wait()
            nursery.cancel_scope.cancel()

        nursery.start_soon(give_up)
        for key, question in questions.items():
            nursery.start_soon(ask, key, question)
    if refused:
        raise NoInput(refused[0])
    return answers if len(answers) == len(questions) else None
