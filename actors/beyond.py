"""What crosses a connection besides tools, as protocols: what a server offers more, and what it asks of the embedder.

Part of `ports`, which names all of it; here for its length.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any, Literal, Protocol

from attrs import frozen

from .model.client import ClientHandlers
from .model.offers import Prompt, Resource, ResourceTemplate

__all__ = [
    "Client",
    "ClientRefused",
    "Expired",
    "Expiry",
    "Library",
    "Patience",
    "Progress",
    "PromptListing",
    "Question",
    "RequestFailed",
    "ResourceListing",
    "Shelf",
]

Progress = Callable[[float, float | None, str | None], Awaitable[None]]
"""Called with (progress, total, message) for each progress notification of one call."""

Shelf = Literal["resources", "prompts"]
"""What a server may list besides its tools."""


@frozen
class ResourceListing:
    """Complete lists of resources and templates.

    Args:
        resources, templates: in the order advertised.
        problems: one line each, of what had to be left out.
        again: the templates are those from before; they could not be listed, and are to be asked for again.
    """

    resources: tuple[Resource, ...]
    templates: tuple[ResourceTemplate, ...]
    problems: tuple[str, ...] = ()
    again: bool = False


@frozen
class PromptListing:
    """A complete list of prompts; ``problems`` as in `ResourceListing`."""

    prompts: tuple[Prompt, ...]
    problems: tuple[str, ...] = ()


class RequestFailed(Exception):
    """A server answered a request with an error or nonsense, though the connection lives.

    Args:
        reason: one line.
        code: of JSON-RPC, or None.
    """

    def __init__(self, reason: str, code: int | None = None) -> None:
        self.reason = reason
        self.code = code
        super().__init__(reason)


class Library(Protocol):
    """What one connection offers besides tools. All its methods but `listen` raise `ConnectionLost`."""

    @property
    def has(self) -> frozenset[str]:
        """Of ``resources``, ``prompts``, ``completions`` and ``subscriptions``, what the server declares."""
        ...

    def listen(self, changed: Callable[[Shelf], None], updated: Callable[[str, bool], None]) -> None:
        """Say who is called, never waiting, for each list that changed, and for the URI of each resource that did.

        The latter also with True, for one that may have: the server could not say.
        """
        ...

    async def list_resources(self) -> ResourceListing:
        """All pages of both lists. Raises `ListFailed`."""
        ...

    async def list_prompts(self) -> PromptListing:
        """All pages. Raises `ListFailed`."""
        ...

    async def read(self, uri: str, progress: Progress | None, meta: Mapping[str, Any] | None) -> Any:
        """Read a resource: an ``mcp`` ``ReadResourceResult``. Raises `RequestFailed`."""
        ...

    async def prompt(
        self, name: str, arguments: Mapping[str, str], progress: Progress | None, meta: Mapping[str, Any] | None
    ) -> Any:
        """Fill in a prompt: an ``mcp`` ``GetPromptResult``. Raises `RequestFailed`."""
        ...

    async def complete(self, kind: str, of: str, argument: str, value: str, context: Mapping[str, str]) -> Any:
        """What a value may go on with: an ``mcp`` ``Completion``. Raises `RequestFailed`.

        Args:
            kind: ``prompt`` or ``template``.
            of: its name, or its URI template.
            argument, value: which one, and what is typed of it.
            context: the arguments that are filled in already.
        """
        ...

    async def follow(self, uris: frozenset[str], told: Callable[[str, str | None], None]) -> None:
        """Have the changes of these resources told too; several may ask at the same time.

        Args:
            uris: of them.
            told: called, never waiting, for each as soon as the server has answered: with None, or why it refuses.
        """
        ...

    async def unfollow(self, uris: frozenset[str]) -> None:
        """Have the changes of these told no more."""
        ...


Question = Literal["sampling", "elicitation", "roots"]
"""What a server may ask of the embedder."""


class ClientRefused(Exception):
    """The embedder does not answer a server's question.

    Args:
        reason: one line, for the server.
        code, data: of JSON-RPC, when the handler chose them; else None.
    """

    def __init__(self, reason: str, code: int | None = None, data: Any = None) -> None:
        self.reason = reason
        self.code = code
        self.data = data
        super().__init__(reason)


class Patience(Protocol):
    """The idle limit of one call."""

    def hold(self) -> None:
        """It stands still: the server waits for somebody else. Never waits."""
        ...

    def heard(self) -> None:
        """It counts, from now. Never waits."""
        ...


class Expired(Exception):
    """The deadline of a call is past."""


class Expiry(Patience, Protocol):
    """The deadline of one call, where it is no cancel scope.

    Attributes:
        settle: called, never waiting, when the deadline is past while nobody is `within` it; set by who waits for the answer.
        listens: whether the server should be asked for progress.
    """

    listens: bool
    settle: Callable[[], None] | None

    def progressed(self) -> None:
        """The server said that it goes on. Never waits."""
        ...

    def told(self, progress: Progress | None) -> Progress | None:
        """What is to be told of progress, for the same; None: nothing is."""
        ...

    async def within(self, work: Callable[[], Awaitable[Any]]) -> Any:
        """Go on in a cancel scope, as whatever may wait for anything else must; one after the other, never one in another.

        Raises:
            Expired: it did not end in time.
        """
        ...


class Client(Protocol):
    """The embedder, as one incarnation of a server meets it."""

    @property
    def handlers(self) -> ClientHandlers:
        """What it answers, and so what is announced."""
        ...

    def met(self, protocol_version: str | None) -> None:
        """The handshake is done. Never waits."""
        ...

    async def ask(self, question: Question, params: Any) -> Any:
        """Have a handler answer; cancelling this cancels it.

        Args:
            question: what is asked.
            params: as the ``mcp`` SDK has them; None for ``roots``.

        Returns:
            What the handler returned; of ``roots`` a tuple of `Root`.

        Raises:
            ClientRefused: there is no handler, or it raised, or gave no answer in time; or too much is asked at once.
        """
        ...

    def tell(self, notice: Literal["logging", "elicitation_complete"], *said: Any) -> None:
        """Have a handler hear of something, when there is one and as soon as it can. Never waits.

        Args:
            notice: which one.
            said: of ``logging`` the level, the data and the logger or None; else the elicitation's id.
        """
        ...

    def holding(self, patience: Patience) -> AbstractContextManager[None]:
        """Inside, a call is in flight; its idle limit stands still while the server waits for an answer of ours."""
        ...

    def close(self) -> None:
        """The incarnation is over: whatever of it is still with a handler is cancelled. Never waits."""
        ...
