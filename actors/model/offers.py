"""What servers offer besides tools: resources, templates of resources, and prompts. Never part of the catalog or its budget."""

from __future__ import annotations

from attrs import field, frozen

from .frozen import FrozenDict

__all__ = ["NOTHING_OFFERED", "Offers", "Prompt", "PromptArgument", "Resource", "ResourceTemplate", "ResourceUpdate"]


@frozen(kw_only=True)
class Resource:
    """One resource, as its server lists it.

    Args:
        uri: what it is read by.
        name, title, description: for people and models; None when not given.
        mime_type: of its content, or None.
        size: bytes of its content, or None.
        annotations, meta: as advertised (Annotations, ``_meta``), or None.
        icons: as advertised, each an Icon of the protocol.
    """

    uri: str = field(kw_only=False)
    name: str
    title: str | None = None
    description: str | None = None
    mime_type: str | None = None
    size: int | None = None
    annotations: FrozenDict | None = None
    icons: tuple[FrozenDict, ...] = ()
    meta: FrozenDict | None = None


@frozen(kw_only=True)
class ResourceTemplate:
    """Many resources in one: a URI template (RFC 6570) whose variables a reader fills in. Else as `Resource`."""

    uri_template: str = field(kw_only=False)
    name: str
    title: str | None = None
    description: str | None = None
    mime_type: str | None = None
    annotations: FrozenDict | None = None
    icons: tuple[FrozenDict, ...] = ()
    meta: FrozenDict | None = None


@frozen(kw_only=True)
class PromptArgument:
    """One argument of a prompt; its value is a string."""

    name: str = field(kw_only=False)
    title: str | None = None
    description: str | None = None
    required: bool = False


@frozen(kw_only=True)
class Prompt:
    """One prompt, as its server lists it.

    Args:
        name: the server's own.
        title, description: for people; None when not given.
        arguments: what it can be given.
        icons: as advertised, each an Icon of the protocol.
        meta: as advertised (``_meta``), or None.
    """

    name: str = field(kw_only=False)
    title: str | None = None
    description: str | None = None
    arguments: tuple[PromptArgument, ...] = ()
    icons: tuple[FrozenDict, ...] = ()
    meta: FrozenDict | None = None


@frozen(kw_only=True)
class Offers:
    """The last good lists of one server, each as in its `ServerState`.

    Args:
        resources, templates, prompts: in the order advertised.
        resources_error, prompts_error: why the newest listing failed, or what was left out of it, in one line; or None.
        resources_generation, prompts_generation: of the incarnation that gave the list; 0: there has been none.
    """

    resources: tuple[Resource, ...] = ()
    templates: tuple[ResourceTemplate, ...] = ()
    prompts: tuple[Prompt, ...] = ()
    resources_error: str | None = None
    prompts_error: str | None = None
    resources_generation: int = 0
    prompts_generation: int = 0


NOTHING_OFFERED = Offers()
"""Nothing was listed yet."""


@frozen
class ResourceUpdate:
    """A resource has changed, or may have: read it anew.

    Args:
        server, uri: of it; of a part of it when the server says so.
        generation: of the incarnation that says it.
        missed: nobody said so, but the server, or the stream of what it says, was away: it may have changed meanwhile.
    """

    server: str
    uri: str
    generation: int
    missed: bool = False
