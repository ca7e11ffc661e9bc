"""Errors become one line and one exit code."""

from __future__ import annotations

import pytest
from playbill import actors
from playbill.actors import (
    CallTimeout,
    ConfigError,
    HostClosed,
    LoginFailed,
    NotSupported,
    OperationTimeout,
    PlaybillError,
    ProfileMismatch,
    RequestRefused,
    ServerDied,
    ServerExists,
    ServerUnavailable,
    ToolNotOffered,
    UnknownPrompt,
    UnknownServer,
    UnknownTool,
    WriteFailed,
)
from playbill.actors.cli.errors import CliError, Exit, explain, one_line

ROWS: list[tuple[PlaybillError, int]] = [
    (UnknownServer("a"), 2),
    (UnknownTool("a"), 2),
    (UnknownPrompt("a", server="b"), 2),
    (ServerExists("a"), 2),
    (ConfigError("a"), 3),
    (ServerUnavailable("a", "b"), 4),
    (ServerDied("a", "b"), 4),
    (CallTimeout("a", 1), 4),
    (ToolNotOffered("a", "b"), 1),
    (WriteFailed("a", "b"), 1),
    (OperationTimeout("a", 1, None), 1),
    (ProfileMismatch("a"), 1),
    (NotSupported("a", "prompts"), 1),
    (RequestRefused("a", "b", "c"), 1),
    (LoginFailed("a", "b"), 4),
    (HostClosed(), 1),
]


@pytest.mark.parametrize(("error", "code"), ROWS, ids=lambda value: type(value).__name__)
def test_each_error_of_a_host_has_its_exit_code_and_its_own_words(error: PlaybillError, code: int) -> None:
    assert explain(error) == (code, str(error))


def test_every_error_in_the_public_names_is_in_that_table() -> None:
    public = {each for name in actors.__all__ if issubclass_of_error(each := getattr(actors, name))}
    assert public - {PlaybillError} == {type(error) for error, _ in ROWS}


def issubclass_of_error(thing: object) -> bool:
    return isinstance(thing, type) and issubclass(thing, PlaybillError)


def test_of_a_group_the_error_with_a_code_of_its_own_is_told() -> None:
    group = ExceptionGroup("", [ValueError("noise"), ExceptionGroup("", [ServerDied("clock", "killed by SIGKILL")])])
    assert explain(group) == (4, "server 'clock' died during the call: killed by SIGKILL")


def test_an_interruption_in_a_group_wins_and_says_nothing() -> None:
    assert explain(BaseExceptionGroup("", [CliError(Exit.USAGE, "x"), KeyboardInterrupt()])) == (130, "")


def test_an_error_of_ours_is_named_and_not_thrown_at_a_person(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PLAYBILL_DEBUG", raising=False)
    code, line = explain(ZeroDivisionError("division by zero"))
    assert code == 1
    assert line.startswith("unexpected ZeroDivisionError: division by zero")


def test_what_a_server_says_cannot_drive_the_terminal() -> None:
    assert one_line("a\x1b[2J\nb\u202ec\x9b") == "a [2J b c "
