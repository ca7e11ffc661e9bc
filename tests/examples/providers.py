"""The two agents, and what each talks to."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import anthropic
import anthropic_agent
import openai
import openai_agent
from attrs import frozen

from .stub import AnthropicStub, ResponsesStub, Stub


@frozen
class Provider:
    """One of the two agents.

    Args:
        name: of the provider, as `Catalog.for_provider` takes it.
        module: the example.
        stub: what it talks to.
        client, error: of the SDK: the client, and what it raises for a 500.
        variable: what the names of the SDK's environment variables begin with.
    """

    name: str
    module: ModuleType
    stub: type[Stub]
    client: Any
    error: type[Exception]
    variable: str


ANTHROPIC = Provider(
    "anthropic",
    anthropic_agent,
    AnthropicStub,
    anthropic.AsyncAnthropic,
    anthropic.InternalServerError,
    "ANTHROPIC",
)
OPENAI = Provider(
    "openai-responses", openai_agent, ResponsesStub, openai.AsyncOpenAI, openai.InternalServerError, "OPENAI"
)
