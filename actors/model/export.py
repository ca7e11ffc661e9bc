"""The catalog as each provider's ``tools`` field takes it: the exact JSON, in the catalog's order, under its names.

Theory of operation. Tools were judged, mended or quarantined once, in the projection, for the profile that the catalog was
made for. Here nothing is judged a second way: a tool is encoded as it is, or, when the provider would refuse one, nothing
is, because a provider that refuses one tool refuses the whole request. Names, descriptions and the count are looked at
every time, which is cheap. Schemas are looked at only where the catalog's profile does not promise enough: its rules do not
cover the provider's, or the tool is a native one, which ships whatever it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from .errors import ProfileMismatch
from .profile import PROFILES, Profile
from .provider import find_provider
from .schema.lint import lint
from .wire import WireTool

__all__ = ["export"]

_NAMED = 3
"""How many of the tools that would be refused the message names."""


def _flaws(tools: Sequence[WireTool], made_for: Profile, wanted: Profile) -> Iterator[tuple[WireTool, str]]:
    """The tools that would be refused, each with the first reason."""
    covered = made_for.schema.covers(wanted.schema) and (made_for.strict or not wanted.strict)
    matches, plain = re.compile(wanted.tool_name).fullmatch, not wanted.refused
    for tool in tools:
        reason = None if plain and matches(tool.wire_name) else wanted.name_flaw(tool.wire_name)
        if reason is None and wanted.description and not (tool.description or "").strip():
            reason = "it has no description"
        if reason is None and not (covered and tool.server is not None):
            flaw = lint(tool.input_schema, wanted)
            reason = None if flaw is None else f"{flaw.path}: {flaw}" if flaw.path else str(flaw)
        if reason is not None:
            yield tool, reason


def _to_ask_for(wanted: Profile) -> str:
    """The name of a profile whose catalogs the wanted one takes.

    A provider in strict mode has none of its own in the table where another one's rules are the same.
    """
    for each in (PROFILES.get(wanted.name), *PROFILES.values()):
        if (
            each is not None
            and each.strict == wanted.strict
            and each.tool_name == wanted.tool_name
            and each.schema.covers(wanted.schema)
        ):
            return each.name
    return wanted.name


def _mismatch(
    provider: str, made_for: Profile, wanted: Profile, flaws: Sequence[tuple[WireTool, str]], count: int
) -> ProfileMismatch:
    said, cure = [], []
    profile = _to_ask_for(wanted)
    if flaws:
        named = "; ".join(f"{tool.wire_name!r}: {reason}" for tool, reason in flaws[:_NAMED])
        more = f"; and {len(flaws) - _NAMED} more" if len(flaws) > _NAMED else ""
        said.append(f"would refuse {len(flaws)} of {count} tools ({named}{more})")
        # Native tools are mended there too; one that cannot be is refused where the host or view is opened, with the reason.
        if made_for.name == profile:
            cure.append("mend these tools, which nothing was made of")  # only of a catalog made by hand
        else:
            cure.append(f"open the host or a view with profile={profile!r}")
    if wanted.max_tools is not None and count > wanted.max_tools:
        said.append(f"takes at most {wanted.max_tools} tools and there are {count}")
        cure.append(f"have a budget of {wanted.max_tools} or less")
    message = f"{provider!r} {' and '.join(said)}; the catalog was made for {made_for.name!r}: {', and '.join(cure)}"
    pairs = tuple((tool.wire_name, reason) for tool, reason in flaws)
    return ProfileMismatch(message, provider=provider, profile=profile, flaws=pairs)


def export(
    tools: Sequence[WireTool], made_for: Profile, name: str, *, strict: bool | None = None
) -> list[dict[str, Any]]:
    """What a provider's ``tools`` field takes. Pure; see `Catalog.for_provider`.

    Args:
        tools: of the catalog, in its order.
        made_for: the profile they were judged for.
        name: of the provider.
        strict: OpenAI's strict mode; None: as the profile says.

    Raises:
        ValueError: there is no such provider, or it has no strict mode.
        ProfileMismatch: it would refuse one of them, or so many.
    """
    provider = find_provider(name)
    if strict and not provider.strict:
        raise ValueError(f"provider {name!r} has no strict mode of OpenAI's")
    if strict is None:
        strict = made_for.strict and provider.strict
    wanted = PROFILES[provider.profile]
    if strict and not wanted.strict:
        wanted = wanted.in_strict_mode()
    flaws = tuple(_flaws(tools, made_for, wanted))
    if flaws or (wanted.max_tools is not None and len(tools) > wanted.max_tools):
        raise _mismatch(name, made_for, wanted, flaws, len(tools))
    encode = provider.encode
    return provider.gather([encode(tool, strict) for tool in tools])
