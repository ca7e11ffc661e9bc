"""A host without a world: a configuration and statuses as values, the real projection, and operations done by hand."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from attrs import define, evolve, field
from playbill.actors.model.budget import Budget
from playbill.actors.model.config import Config, ConfigState, ServerEntry
from playbill.actors.model.edits import (
    AddServer,
    Edit,
    RemoveServer,
    SetEnabled,
    SetPin,
    apply_edit,
)
from playbill.actors.model.edits import SetTool as EditTool
from playbill.actors.model.errors import PlaybillError
from playbill.actors.model.native import NativeTool
from playbill.actors.model.projection import Memo, project
from playbill.actors.model.snapshot import Snapshot
from playbill.actors.model.status import Lifecycle, Report, ServerStatus, ToolDef
from playbill.actors.picker.reducer import State, reduce, start, visible
from playbill.actors.picker.values import (
    Add,
    Answer,
    Done,
    Event,
    Failed,
    FetchLog,
    FetchReview,
    Identity,
    Key,
    News,
    Operation,
    Pin,
    Remove,
    Review,
    SetServer,
    SetTool,
    Trust,
)

NATIVE = NativeTool("search_docs", "ours", {"type": "object"}, print)


def entry(name: str, **keys: Any) -> ServerEntry:
    return ServerEntry(name, **{"command": "run", "source": "/etc/mcp.json", "line": 7, **keys})


def tools(*names: str, generation: int = 1) -> ServerStatus:
    """The status of a ready server that lists these tools."""
    return listed([ToolDef(name, description=f"Does {name}.\nAnd more.") for name in names], generation=generation)


def listed(defs: Iterable[ToolDef], *, generation: int = 1) -> ServerStatus:
    return ServerStatus(
        lifecycle=Lifecycle(stage="running", generation=generation),
        report=Report(generation=generation, connected=True, ready=True, pid=42, protocol_version="2025-11-25"),
        tools=tuple(defs),
        tools_generation=generation,
    )


STARTING = ServerStatus(lifecycle=Lifecycle(stage="starting", generation=1))
CONNECTED = ServerStatus(
    lifecycle=Lifecycle(stage="running", generation=1), report=Report(generation=1, connected=True)
)
NO_LOGIN = ServerStatus(
    lifecycle=Lifecycle(stage="running", generation=1),
    report=Report(generation=1, needs_auth=True, error="it answered 401"),
)


def backing_off(at: float | None, attempt: tuple[int, int] | None = (4, 5), **keys: Any) -> ServerStatus:
    life = Lifecycle(
        stage="backing_off",
        generation=1,
        restarts=3,
        first=False,
        next_retry_at=at,
        attempt=attempt,
        error="it exited with 1",
    )
    return ServerStatus(lifecycle=life, **keys)


def parked(at: float | None = None, **keys: Any) -> ServerStatus:
    life = Lifecycle(stage="parked", generation=1, restarts=5, first=False, next_retry_at=at, error="it exited with 1")
    return ServerStatus(lifecycle=life, **keys)


@define
class Stage:
    """A host's data: change it, and read `snapshot`."""

    config: Config = field(factory=Config)
    statuses: dict[str, ServerStatus] = field(factory=dict)
    cap: int | None = None
    natives: tuple[NativeTool, ...] = ()
    config_error: str | None = None
    _memo: Memo = field(factory=Memo)
    _previous: Snapshot | None = None

    @property
    def snapshot(self) -> Snapshot:
        self._previous = project(
            ConfigState(1, self.config, self.config_error),
            self.statuses,
            self.natives,
            Budget(self.cap),
            self._previous,
            self._memo,
        )
        return self._previous

    def news(self) -> News:
        return News(self.snapshot)

    def edit(self, edit: Edit) -> None:
        self.config = apply_edit(self.config, edit)

    def answer(self, operation: Operation) -> Event:
        """Do an operation as a host would, and say what came of it."""
        try:
            match operation:
                case SetTool(server=server, bare=bare, on=on):
                    self.edit(EditTool(server, bare, on))
                case SetServer(server=server, on=on):
                    self.edit(SetEnabled(server, on))
                case Pin(server=server, bare=bare, on=on):
                    self.edit(SetPin(server, bare, on))
                case Add(server=server, command=command, url=url):
                    self.edit(AddServer(entry(server, command=command, url=url)))
                case Remove(server=server):
                    self.edit(RemoveServer(server))
                case Trust(server=server):
                    at = self.config.get(server)
                    assert at is not None
                    servers = [evolve(at, trusted=True) if each is at else each for each in self.config.servers]
                    self.config = evolve(self.config, servers=servers)
                case FetchLog(server=server):
                    return Answer(operation.id, f"{server}: listening\nbye\n")
                case FetchReview(server=server):
                    return Answer(operation.id, Review((f"server {server} would run:", "  command  run"), "seal"))
        except PlaybillError as error:
            return Failed(operation.id, str(error))
        return Done(operation.id, self.snapshot)


def make(servers: dict[str, ServerStatus | None], **keys: Any) -> Stage:
    """A stage with these servers, and what is known of them."""
    config = Config([entry(name) for name in servers])
    return Stage(config, {name: status for name, status in servers.items() if status is not None}, **keys)


def opened(stage: Stage, now: float = 100.0) -> State:
    return start(stage.snapshot, now)


def press(state: State, *keys: str) -> tuple[State, list[Operation]]:
    """The state after some keys, and all that came of them."""
    found: list[Operation] = []
    for key in keys:
        state, operations = reduce(state, Key(key))
        found += operations
    return state, found


def typed(text: str) -> tuple[str, ...]:
    return tuple(text)


def told(state: State, *events: Event) -> State:
    for event in events:
        state, _ = reduce(state, event)
    return state


def at(state: State, *identity: str) -> State:
    """The state with the cursor on a row, which is there."""
    assert visible(state).find(identity) is not None
    return evolve(state, cursor=identity)


def row(state: State, *identity: str) -> Any:
    """The row of that identity."""
    place = visible(state).find(identity)
    assert place is not None, identity
    return visible(state)[place]


def identities(state: State) -> list[Identity]:
    shown = visible(state)
    return [shown.identity(place) for place in range(shown.top, len(shown))]
