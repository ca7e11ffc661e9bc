"""How loud it is: ``--verbose`` tells what happens when it happens, ``--quiet`` only what is wrong."""

from __future__ import annotations

import logging
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playbill.actors.cli import hosting
from playbill.actors.cli.voice import Voice, diagnose, speak, voice

from .conftest import shipped

Playbill = Callable[..., "subprocess.CompletedProcess[str]"]
WriteConfig = Callable[..., Path]

TIMED = re.compile(r"playbill: +\d+\.\d{3} s  (.*)")


@pytest.fixture(autouse=True)
def a_voice_of_our_own() -> Iterator[None]:
    """What one test makes of the voice is not heard in the next."""
    before = voice()
    yield
    speak(before)


def _dying(tmp_path: Path) -> dict[str, object]:
    script = "import sys; print('first line\\nsecond \\x1b[31mline', file=sys.stderr); sys.exit(3)"
    return {"command": sys.executable, "args": ["-c", script]}


def test_verbose_tells_events_the_whole_stderr_and_the_end(
    playbill: Playbill, write_config: WriteConfig, tmp_path: Path
) -> None:
    config = write_config(clock=shipped("clock"), dying=_dying(tmp_path))
    plain = playbill("tools", "--config", config)
    done = playbill("tools", "--verbose", "--config", config)
    assert (done.returncode, plain.returncode) == (4, 4)
    assert not TIMED.search(plain.stderr)
    assert "first line" not in plain.stderr
    told = [found[1] for line in done.stderr.splitlines() if (found := TIMED.fullmatch(line))]
    assert "server 'clock': spawned" in told
    assert "server 'clock': started" in told
    assert any(line.startswith("server 'dying': down: the server exited with code 3") for line in told)
    assert told[-1] == "exit code 4"
    assert "dying | first line" in done.stderr.splitlines()
    assert "dying | second  [31mline" in done.stderr.splitlines()
    assert not any(line.startswith("clock | ") for line in done.stderr.splitlines())
    seconds = [float(line.split()[1]) for line in done.stderr.splitlines() if TIMED.fullmatch(line)]
    assert seconds == sorted(seconds)


def test_verbose_leaves_stdout_as_it_is(inside: Playbill, write_config: WriteConfig) -> None:
    config = write_config(a={"command": "x"})
    plain, loud = inside("list", "--config", config), inside("--verbose", "list", "--config", config)
    assert loud.stdout == plain.stdout
    assert TIMED.fullmatch(loud.stderr.strip())


def test_quiet_and_verbose_are_not_both_given(inside: Playbill) -> None:
    done = inside("list", "--quiet", "--verbose")
    assert (done.returncode, done.stderr) == (2, "playbill: --quiet says less, --verbose says more: not both\n")


def test_the_voice_of_one_command_line_is_not_that_of_the_next(inside: Playbill, write_config: WriteConfig) -> None:
    config = write_config(a={"command": "x"})
    assert inside("list", "--verbose", "--config", config).stderr
    assert inside("list", "--config", config).stderr == ""


@pytest.mark.parametrize(
    ("said", "heard"),
    [
        (Voice(), ["warning: w", "error: e 1"]),
        (Voice(quiet=True), ["error: e 1"]),
        (Voice(verbose=True), ["info: i", "warning: w", "error: e 1"]),
    ],
)
def test_what_is_logged_is_a_line_like_any_other(
    capsys: pytest.CaptureFixture[str], said: Voice, heard: list[str]
) -> None:
    logger, before = logging.getLogger("playbill.edge"), list(logging.getLogger("playbill").handlers)
    with hosting._logged(said):
        logger.debug("d")
        logger.info("i")
        logger.warning("w\n")
        logger.error("e %d", 1, exc_info=ValueError("not told"))
    logger.warning("after it")
    assert capsys.readouterr().err.splitlines()[: len(heard)] == [f"playbill: {line}" for line in heard]
    assert logging.getLogger("playbill").handlers == before


def test_a_quiet_demo_says_only_how_it_went(inside: Playbill) -> None:
    done = inside("demo", "--quiet")
    assert done.returncode == 0
    assert re.fullmatch(r"\d+ claims, all true, in [\d.]+ s\n", done.stdout)
    assert done.stderr == ""


def test_a_loud_chaos_tells_every_run(inside: Playbill) -> None:
    done = inside("chaos", "--seed", "4", "--verbose")
    assert any(line.endswith("run 1: seed 4, ok") for line in done.stderr.splitlines())


def test_a_stderr_that_is_gone_ends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    class Gone:
        def write(self, _: str) -> int:
            raise BrokenPipeError

        def flush(self) -> None:
            raise BrokenPipeError

    monkeypatch.setattr("sys.stderr", Gone())
    speak(Voice(verbose=True))
    diagnose("nobody hears this")
