"""Which listed resource was meant by what was asked for. Pure, and linear in what a server lists."""

from __future__ import annotations

import re
from collections.abc import Sequence

from .nearest import nearest
from .offers import Resource, ResourceTemplate

__all__ = ["meant_by", "variables_of"]

_VARIABLE = re.compile(r"\{[^{}]*\}")


def meant_by(uri: str, resources: Sequence[Resource], templates: Sequence[ResourceTemplate]) -> str | None:
    """The URI that was perhaps meant; None when none is near, or this one is listed or fits a template.

    Args:
        uri: what was asked for; somebody may have given the name or the title of a resource instead.
        resources, templates: of the server.
    """
    listed = [each.uri for each in resources]
    if uri in listed or any(_fits(uri, each.uri_template) for each in templates):
        return None
    for resource in resources:
        if uri in (resource.name, resource.title):
            return resource.uri
    for template in templates:
        if uri in (template.name, template.title):
            return template.uri_template
    return nearest(uri, listed)


def variables_of(uri: str, templates: Sequence[ResourceTemplate]) -> list[str]:
    """The variables that are still to be filled in, each in its braces: of a URI that is a template as it is listed."""
    return _VARIABLE.findall(uri) if any(uri == each.uri_template for each in templates) else []


def _fits(uri: str, template: str) -> bool:
    """Whether a template could give a URI, whatever its variables hold (RFC 6570, taken generously)."""
    first, *rest = _VARIABLE.split(template)
    if not rest or not uri.startswith(first):
        return uri == template
    at = len(first)
    *between, last = rest
    for each in between:
        found = uri.find(each, at)
        if found < 0:
            return False
        at = found + len(each)
    return len(uri) - len(last) >= at and uri.endswith(last)
