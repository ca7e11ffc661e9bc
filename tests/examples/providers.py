"""The two agents, and what each talks to. The SDKs are imported when a test runs: that takes seconds, in every worker."""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import Any

from attrs import frozen

from .stub import AnthropicStub, ResponsesStub, Stub


@frozen
class Provider:
    """One of the two agents.

    Args:
        name: of the provider, as `Catalog.for_provider` takes it.
        sdk, of_sdk: the name of the SDK's module, and of its client.
        stub: what it talks to.
        variable: what the names of the SDK's environment variables begin with.
    """

    name: str
    sdk: str
    of_sdk: str
    stub: type[Stub]
    variable: str

    @property
    def module(self) -> ModuleType:
        """The example."""
        return importlib.import_module(f"{self.sdk}_agent")

    @property
    def client(self) -> Any:
        """The SDK's client."""
        return getattr(importlib.import_module(self.sdk), self.of_sdk)

    @property
    def error(self) -> type[Exception]:
        """What the SDK raises for a 500."""
        error: type[Exception] = importlib.import_module(self.sdk).InternalServerError
        return error


ANTHROPIC = Provider("anthropic", "anthropic", "AsyncAnthropic", AnthropicStub, "ANTHROPIC")
OPENAI = Provider("openai-responses", "openai", "AsyncOpenAI", ResponsesStub, "OPENAI")
