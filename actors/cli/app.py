"""The verbs and their grammar: reads the arguments, calls the verb, turns what comes of it into an exit code.

One grammar for all verbs: ``playbill VERB [NAMES…] [--config PATH] [--json] [--timeout SECONDS]``; options may stand before
the verb too. Each verb's module is imported when it is called, so that none pays for another.
"""

from __future__ import annotations

import io
import math
import os
import sys
from collections.abc import Callable, Sequence
from importlib.metadata import version
from typing import Annotated, Any

from attrs import frozen
from cyclopts import App, CycloptsError, Parameter, UnusedCliTokensError

from .errors import Exit, diagnose, explain

__all__ = ["Options", "app", "run"]


def _positive(_: Any, value: float | None) -> None:
    if value is not None and not (value > 0 and math.isfinite(value)):
        raise ValueError("it must be a number of seconds above 0")


@Parameter(name="*")
@frozen(kw_only=True)
class Options:
    """The options that all verbs share."""

    config: Annotated[
        str | None, Parameter(help="The mcp.json to read. Without it: the nearest .mcp.json, else your own.")
    ] = None
    json: Annotated[bool, Parameter(negative="", show_default=False, help="Print JSON, and only that, on stdout.")] = (
        False
    )
    timeout: Annotated[
        float | None, Parameter(validator=_positive, help="Seconds to wait for servers and answers.")
    ] = None


@Parameter(name="*")
@frozen(kw_only=True)
class DemoOptions:
    """The options of the demo, which writes a config of its own."""

    config: Annotated[
        str | None,
        Parameter(
            help="Where to write the demo's mcp.json, for a look at it afterwards: a new file. Without it: a temporary one."
        ),
    ] = None
    json: Annotated[
        bool, Parameter(negative="", show_default=False, help="Print the claims as JSON, and only that, on stdout.")
    ] = False
    timeout: Annotated[
        float | None, Parameter(validator=_positive, help="Seconds that any one wait may take (10).")
    ] = None


def _count(_: Any, value: int | None) -> None:
    if value is not None and value < 1:
        raise ValueError("it must be 1 or more")


@Parameter(name="*")
@frozen(kw_only=True)
class ChaosOptions:
    """The options of the chaos runs, which read no config."""

    seeds: Annotated[int | None, Parameter(validator=_count, help="How many runs are drawn (100).")] = None
    seed: Annotated[int | None, Parameter(help="The first seed; alone, the only one.")] = None
    systematic: Annotated[
        bool,
        Parameter(negative="", show_default=False, help="Play every single fault and every pair of faults instead."),
    ] = False
    replay: Annotated[str | None, Parameter(help="Play the plan in this file instead.")] = None
    keep: Annotated[str | None, Parameter(help="A folder in which the plan that failed is stored.")] = None
    jobs: Annotated[int, Parameter(validator=_count, help="Processes side by side.")] = 1
    json: Annotated[bool, Parameter(negative="", show_default=False, help="Print JSON, and only that, on stdout.")] = (
        False
    )


app = App(
    name="playbill",
    help="Run the MCP servers of an mcp.json under supervision: one catalog, whatever happens to them.",
    help_format="plaintext",
    help_epilogue=(
        "Exit codes: 0 ok, 1 failure, 2 usage, 3 config missing or invalid, 4 a server failed, 5 over budget, "
        "10 to 12 what chaos found, 130 interrupted."
    ),
    version=lambda: f"playbill {version('playbill')}",
)


@app.command
def demo(*, options: DemoOptions = DemoOptions()) -> int:
    """See it work: three real servers, a toggle, a kill -9, a reload; every claim is checked.

    Example: playbill demo
    """
    from .demo import demo as command

    return command(as_json=options.json, wait=options.timeout, config=options.config)


@app.command(name="list")
def list_(*, options: Options = Options()) -> int:
    """List the servers of the config, without starting any.

    Example: playbill list --config mcp.json
    """
    from .listing import list_servers

    return list_servers(options.config, as_json=options.json)


@app.command
def tools(*, options: Options = Options()) -> int:
    """Start the servers and list every tool: its wire name, whether it is sent to the model, and why not.

    Example: playbill tools --timeout 10
    """
    from .showing import show_tools

    return show_tools(options.config, as_json=options.json, timeout=options.timeout)


@app.command
def call(
    name: Annotated[str, Parameter(name="NAME", help="A wire name, or SERVER/TOOL, which starts only that server.")],
    arguments: Annotated[str, Parameter(name="ARGUMENTS", help="The arguments, as one JSON object.")] = "{}",
    /,
    *,
    options: Options = Options(),
) -> int:
    """Call one tool and print what it answers.

    Example: playbill call clock/now '{"zone": "Asia/Tokyo"}'
    """
    from .calling import call_tool

    return call_tool(options.config, name, arguments, as_json=options.json, timeout=options.timeout)


@app.command
def chaos(*, options: ChaosOptions = ChaosOptions()) -> int:
    """Test the host itself: seeded runs in virtual time in which servers and actors fail; each is judged.

    The first failure is shrunk and reported, and the exit code tells its kind: 10 a crash, 11 something never ended,
    12 something was wrong.

    Example: playbill chaos --seeds 300
    """
    from .chaos import chaos as command

    return command(
        seeds=options.seeds,
        seed=options.seed,
        pairwise=options.systematic,
        replay=options.replay,
        keep=options.keep,
        jobs=options.jobs,
        as_json=options.json,
    )


_WITH_VALUE = frozenset({"--config", "--timeout", "--seeds", "--seed", "--replay", "--keep", "--jobs"})


def _verb_first(tokens: Sequence[str]) -> list[str]:
    """The tokens with the options that stand before the verb moved behind it; ``--help`` and ``--version`` stay."""
    at = 0
    while at < len(tokens) and tokens[at].startswith("--") and tokens[at] not in ("--", "--help", "--version"):
        at += 2 if tokens[at] in _WITH_VALUE else 1
    if at >= len(tokens) or tokens[at].startswith("-"):
        return list(tokens)
    return [tokens[at], *tokens[:at], *tokens[at + 1 :]]


def _usage(error: CycloptsError) -> str:
    if isinstance(error, UnusedCliTokensError):
        unused = " ".join(map(repr, error.unused_tokens or ()))
        return f"too many arguments: {unused}; see playbill --help (JSON with spaces needs quotes)"
    return f"{' '.join(str(error).split())} See playbill --help."


def _parse(tokens: Sequence[str]) -> Callable[[], Any]:
    command, bound, _ = app.parse_args(_verb_first(tokens), exit_on_error=False, print_error=False)
    return lambda: command(*bound.args, **bound.kwargs)


def run(tokens: Sequence[str]) -> int:
    """Run one command line.

    Args:
        tokens: the arguments, without the program's name.

    Returns:
        The exit code. Never raises for anything a verb does; what is wrong is said in one line on stderr.
    """
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A name that stdout's encoding lacks must not end a listing.
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        try:
            code = int(_parse(tokens)() or 0)
        finally:
            sys.stdout.flush()
    except CycloptsError as error:
        diagnose(_usage(error))
        return Exit.USAGE
    except BrokenPipeError:
        # Whoever read our output has had enough. What is buffered must not fail again when Python ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return Exit.PIPE
    except BaseException as error:
        if isinstance(error, SystemExit | GeneratorExit):
            raise
        code, message = explain(error)
        if message:
            diagnose(message)
    return code
