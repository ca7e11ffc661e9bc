"""The verbs: what each takes, and its help. Each verb's module is imported when it is called, so that none pays for another."""

from __future__ import annotations

from typing import Annotated, Literal

from cyclopts import App, Parameter

from . import completers, login_verbs
from .errors import CliError, Exit
from .options import (
    CatalogOptions,
    ChaosOptions,
    DemoOptions,
    EditOptions,
    Options,
    PickOptions,
    RunOptions,
    SaidOptions,
)

__all__ = ["app"]

_OPTIONS, _CATALOG, _EDIT, _DEMO, _CHAOS = Options(), CatalogOptions(), EditOptions(), DemoOptions(), ChaosOptions()
_RUN, _SAID, _PICK = RunOptions(), SaidOptions(), PickOptions()


def _version() -> str:
    from importlib.metadata import version

    return f"playbill {version('playbill')}"


app = App(
    name="playbill",
    help="Run the MCP servers of an mcp.json under supervision: one catalog, whatever happens to them.",
    help_format="plaintext",
    help_epilogue=(
        "Exit codes: 0 ok, 1 failure, 2 usage, 3 config missing or invalid, 4 a server failed, 5 over budget, "
        "10 to 12 what chaos found, 130 interrupted."
    ),
    version=_version,
    version_flags=["--version", "-V"],
)


_Tool = Annotated[
    str | None,
    Parameter(name="TOOL", completer=completers.tools, help="One of its tools, by its own name or its wire name."),
]


@app.command
def demo(*, options: DemoOptions = _DEMO) -> int:
    """See it work: three real servers, a toggle, a kill -9, a reload; every claim is checked.

    Example: playbill demo
    """
    from .demo import demo as command

    return command(as_json=options.json, quiet=options.quiet, wait=options.timeout, config=options.config)


@app.command(name="list")
def list_(*, options: EditOptions = _EDIT) -> int:
    """List the servers of the config, without starting any.

    Example: playbill list --config mcp.json
    """
    from .listing import list_servers

    return list_servers(options.config, scope=options.scope, as_json=options.json, quiet=options.quiet)


@app.command
def tools(*, options: CatalogOptions = _CATALOG) -> int:
    """Start the servers and list every tool: its wire name, whether it is sent to the model, and why not.

    Example: playbill tools --timeout 10
    """
    from .showing import show_tools

    return show_tools(
        options.config,
        scope=options.scope,
        as_json=options.json,
        quiet=options.quiet,
        timeout=options.timeout,
        profile=options.profile,
        budget=options.budget,
    )


@app.command
def why(
    name: Annotated[
        str,
        Parameter(
            name="NAME", completer=completers.subjects, help="One tool: SERVER/TOOL or its wire name; or a server."
        ),
    ],
    tool: _Tool = None,
    /,
    *,
    options: CatalogOptions = _CATALOG,
) -> int:
    """Say why a tool is, or is not, sent to the model; of a server, why it is as it is. Starts only what that needs.

    Example: playbill why files/write_file
    """
    from .explaining import explain_name

    return explain_name(
        options.config,
        name,
        tool,
        scope=options.scope,
        as_json=options.json,
        timeout=options.timeout,
        profile=options.profile,
        budget=options.budget,
    )


@app.command
def call(
    name: Annotated[
        str,
        Parameter(
            name="NAME",
            completer=completers.subjects,
            help="A wire name, or SERVER/TOOL, which starts only that server.",
        ),
    ],
    tool: Annotated[
        str | None,
        Parameter(name="TOOL", completer=completers.tools, help="The tool, when NAME is its server alone."),
    ] = None,
    arguments: Annotated[
        str | None, Parameter(name="ARGUMENTS", help="The arguments, as one JSON object ({}).")
    ] = None,
    /,
    *,
    options: Options = _OPTIONS,
) -> int:
    """Call one tool and print what it answers.

    Example: playbill call clock/now '{"zone": "Asia/Tokyo"}'
    """
    from .calling import call_tool

    given = [each for each in (tool, arguments) if each is not None]
    return call_tool(options.config, name, given, scope=options.scope, as_json=options.json, timeout=options.timeout)


_Owner = Annotated[
    str, Parameter(name="SERVER", completer=completers.servers, help="Whose it is; only this server is started.")
]
_OneServer = Annotated[
    str | None,
    Parameter(name="SERVER", completer=completers.servers, help="Only this server's, and only it is started."),
]


@app.command
def resources(server: _OneServer = None, /, *, options: Options = _OPTIONS) -> int:
    """Start the servers and list what can be read of them: resources, and templates of resources.

    Example: playbill resources notes
    """
    from .reading import show_resources

    return show_resources(
        options.config,
        server,
        scope=options.scope,
        as_json=options.json,
        quiet=options.quiet,
        timeout=options.timeout,
    )


@app.command
def prompts(server: _OneServer = None, /, *, options: Options = _OPTIONS) -> int:
    """Start the servers and list their prompts, with the arguments that each takes.

    Example: playbill prompts
    """
    from .reading import show_prompts

    return show_prompts(
        options.config,
        server,
        scope=options.scope,
        as_json=options.json,
        quiet=options.quiet,
        timeout=options.timeout,
    )


@app.command
def read(
    server: _Owner,
    uri: Annotated[
        str | None,
        Parameter(name="URI", help="Which resource, or a template filled in; without it what there is is listed."),
    ] = None,
    /,
    *,
    options: Options = _OPTIONS,
) -> int:
    """Read one resource and print it.

    Example: playbill read notes note:///titles
    """
    from .reading import read_resource

    return read_resource(
        options.config, server, uri, scope=options.scope, as_json=options.json, timeout=options.timeout
    )


@app.command
def prompt(
    server: _Owner,
    name: Annotated[
        str | None, Parameter(name="NAME", help="Which prompt; without it what there is is listed.")
    ] = None,
    arguments: Annotated[
        str | None, Parameter(name="ARGUMENTS", help="The arguments, as one JSON object of strings ({}).")
    ] = None,
    /,
    *,
    options: Options = _OPTIONS,
) -> int:
    """Fill in one prompt and print its messages.

    Example: playbill prompt notes summary '{"title": "Act one"}'
    """
    from .reading import fill_prompt

    return fill_prompt(
        options.config,
        server,
        name,
        arguments,
        scope=options.scope,
        as_json=options.json,
        timeout=options.timeout,
    )


@app.command
def run(
    *command: Annotated[
        str, Parameter(name="COMMAND", help="A program to run meanwhile, behind --; the host ends with it.")
    ],
    options: RunOptions = _RUN,
) -> int:
    """Keep the servers running and tell every change of the catalog, until Ctrl-C; the config is watched.

    With a command it goes on for as long as that runs: what it makes of the servers and the catalog is seen as it happens.

    Example: playbill run --timeout 30 -- sh -c 'playbill disable clock/wait; sleep 2'
    """
    from .running import run_host

    return run_host(
        options.config,
        command,
        scope=options.scope,
        as_json=options.json,
        quiet=options.quiet,
        watch=options.watch,
        timeout=options.timeout,
        profile=options.profile,
        budget=options.budget,
    )


@app.command
def pick(*, options: PickOptions = _PICK) -> int:
    """Run the servers and see them and their tools live: a key switches a tool, adds a server, shows its log; ? lists the keys.

    Example: playbill pick
    """
    from .picking import pick_tools

    return pick_tools(
        options.config,
        scope=options.scope,
        watch=options.watch,
        timeout=options.timeout,
        profile=options.profile,
        budget=options.budget,
    )


_Subject = Annotated[
    str,
    Parameter(name="NAME", completer=completers.subjects, help="A server, or one tool: SERVER/TOOL or its wire name."),
]
_Server = Annotated[str, Parameter(name="NAME", completer=completers.servers, help="The server.")]


@app.command
def add(
    name: Annotated[str, Parameter(name="NAME", help="What to call the server.")],
    /,
    *command: Annotated[str, Parameter(name="COMMAND", help="What to run, behind --; or the URL of a remote server.")],
    url: Annotated[str | None, Parameter(help="The URL of a remote server, as an option.")] = None,
    type_: Annotated[
        Literal["http", "sse"] | None,
        Parameter(name="--type", help="How it is spoken to (http, and sse where that is all it knows)."),
    ] = None,
    header: Annotated[
        list[str] | None, Parameter(negative="", help="A header for it, 'KEY: VALUE'; as often as needed.")
    ] = None,
    headers_helper: Annotated[
        str | None, Parameter(help="A command line that prints more headers for it, as JSON, at each connection.")
    ] = None,
    env: Annotated[
        list[str] | None, Parameter(negative="", help="A variable for the command, KEY=VALUE; as often as needed.")
    ] = None,
    cwd: Annotated[str | None, Parameter(help="The command's folder (without it: the config's).")] = None,
    protocol_version: Annotated[
        str | None, Parameter(help="The newest protocol to speak with it: 2025-11-25, ….")
    ] = None,
    replace: Annotated[
        bool, Parameter(negative="", show_default=False, help="Replace the server of that name, if there is one.")
    ] = False,
    options: EditOptions = _EDIT,
) -> int:
    """Add a server to the config: the project's .mcp.json if there is one, else your own, which is made.

    Example: playbill add files --env LEVEL=2 -- npx -y @modelcontextprotocol/server-filesystem .
    """
    from .editing import add_server

    return add_server(
        name,
        command,
        url=url,
        header=header or (),
        headers_helper=headers_helper,
        env=env or (),
        cwd=cwd,
        type_=type_,
        protocol_version=protocol_version,
        replace=replace,
        options=options,
    )


@app.command
def remove(name: _Server, /, *, options: EditOptions = _EDIT) -> int:
    """Remove a server from the config file that it comes from.

    Example: playbill remove files
    """
    from .editing import remove_server

    return remove_server(name, options=options)


@app.command
def enable(name: _Subject, tool: _Tool = None, /, *, options: EditOptions = _EDIT) -> int:
    """Let a server run again, or a tool be offered again.

    Example: playbill enable files/read_file
    """
    from .editing import set_enabled

    return set_enabled(name, tool, True, options=options)


@app.command
def disable(name: _Subject, tool: _Tool = None, /, *, options: EditOptions = _EDIT) -> int:
    """Keep a server in the config without running it, or keep one of its tools from the model.

    Example: playbill disable files write_file
    """
    from .editing import set_enabled

    return set_enabled(name, tool, False, options=options)


@app.command
def trust(
    *names: Annotated[str, Parameter(name="NAME", completer=completers.servers, help="The servers.")],
    all_: Annotated[
        bool, Parameter(name="--all", negative="", show_default=False, help="All that are not trusted yet.")
    ] = False,
    yes: Annotated[
        bool, Parameter(negative="", show_default=False, help="Approve what is shown without asking.")
    ] = False,
    options: EditOptions = _EDIT,
) -> int:
    """Approve what a project's .mcp.json would run: it is shown first. An entry that changes asks again.

    Example: playbill trust files
    """
    from .trusting import trust_servers

    return trust_servers(names, every=all_, yes=yes, options=options)


app.command(login_verbs.login)
app.command(login_verbs.logout)


@app.command
def check(
    *,
    strict: Annotated[
        bool, Parameter(negative="", show_default=False, help="Warnings make the exit code 3, as errors do.")
    ] = False,
    options: EditOptions = _EDIT,
) -> int:
    """Check the config, starting nothing: what is wrong, and what would not work on this machine, with line and column.

    Example: playbill check --strict
    """
    from .checking import check_config

    return check_config(strict=strict, options=options)


@app.command
def chaos(*, options: ChaosOptions = _CHAOS) -> int:
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
        wire=options.wire,
        http=options.http,
        jobs=options.jobs,
        as_json=options.json,
    )


@app.command
def completion(
    shell: Annotated[Literal["bash", "zsh", "fish"], Parameter(name="SHELL", help="The shell.")],
    /,
    *,
    install: Annotated[
        bool,
        Parameter(negative="", show_default=False, help="Write the script to where the shell looks for such ones."),
    ] = False,
    options: SaidOptions = _SAID,
) -> int:
    """Print the script with which a shell completes verbs, options, and the names in the config.

    Example: playbill completion bash --install
    """
    from .completing import complete_in

    return complete_in(shell, install=install, options=options)


@app.command(name="help")
def help_(
    verb: Annotated[
        str | None,
        Parameter(name="VERB", completer=completers.verbs, help="The verb; without it: what verbs there are."),
    ] = None,
    /,
    *,
    options: SaidOptions = _SAID,
) -> int:
    """Explain a verb and its options.

    Example: playbill help add
    """
    from ..model.nearest import nearest

    known = [each for each in app if not each.startswith("-")]
    if verb is not None and verb not in known:
        near = nearest(verb, known)
        hint = f" (did you mean {near!r}?)" if near else ""
        raise CliError(Exit.USAGE, f"there is no verb {verb!r}{hint}; they are: {', '.join(known)}")
    app.help_print([] if verb is None else [verb])
    return Exit.OK
