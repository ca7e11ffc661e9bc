"""An export that is refused names a profile that exists, and with which it is taken."""

from __future__ import annotations

import re

import pytest
from playbill.actors import Budget, Config, ProfileMismatch, ServerEntry
from playbill.actors.model.config import ConfigState
from playbill.actors.model.profile import PROFILES, Profile, find_profile
from playbill.actors.model.projection import project
from playbill.actors.model.provider import PROVIDERS
from playbill.actors.model.snapshot import Snapshot
from playbill.actors.model.status import Lifecycle, Report, ServerStatus, ToolDef

ODD = ToolDef(
    "odd",
    input_schema={
        "type": "object",
        "properties": {"a b": True, "c": {"type": "array"}},
        "anyOf": [{"required": ["c"]}],
    },
)


def made_for(profile: Profile) -> Snapshot:
    status = ServerStatus(
        lifecycle=Lifecycle(stage="running", generation=1),
        report=Report(generation=1, connected=True, ready=True),
        tools=(ODD,),
        tools_generation=1,
    )
    state = ConfigState(1, Config([ServerEntry("a", command="run")]))
    return project(state, {"a": status}, [], Budget(None), profile=profile)


STRICT = [(name, True) for name, each in PROVIDERS.items() if each.strict]


@pytest.mark.parametrize(("provider", "strict"), [*((name, None) for name in PROVIDERS if name != "mcp"), *STRICT])
def test_the_profile_that_a_refusal_names_exists_and_is_taken(provider: str, strict: bool | None) -> None:
    loose = made_for(PROFILES["mcp"]).catalog
    assert len(loose.tools) == 1
    with pytest.raises(ProfileMismatch) as refused:
        loose.for_provider(provider, strict=strict)
    named = re.search(r"profile='([^']+)'", str(refused.value))
    assert named is not None
    assert named[1] == refused.value.profile
    cure = find_profile(named[1])
    assert isinstance(made_for(cure).catalog.for_provider(provider, strict=strict), list)
