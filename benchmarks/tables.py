"""The committed results as Markdown: every number in the documents comes through here, from `results/`.

Each function takes the JSON of one runner, and is pure; a runner whose results are not there has no section but a line.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from statistics import median
from typing import Any

Results = dict[str, Any]

NAMES = {
    "playbill": "**Playbill**",
    "floor": "raw pipes (the floor)",
    "mcp_client": "mcp `Client`",
    "mcp_group": "mcp `ClientSessionGroup`",
    "fastmcp": "fastmcp `Client`",
    "fastmcp_group": "fastmcp `ClientGroup`",
    "langchain": "langchain-mcp-adapters",
    "langchain_sessions": "langchain, open sessions",
    "openai_agents": "openai-agents",
    "pydantic_ai": "pydantic-ai",
    "google_adk": "google-adk",
}
KINDS = {
    "nobody": "nobody misbehaves",
    "exit": "exits in a call",
    "kill": "kill -9 while idle",
    "hang": "hangs in the handshake",
    "stdout": "floods stdout",
    "stderr": "floods stderr",
    "storm": "storm of list_changed",
    "stubborn": "refuses to die",
}
LOADS = ("sequential", "16 at once")
LONG = 100
"""Characters of what a peer said; the whole is in the JSON."""

BOUND = 1.1
"""Of p99 over that of the busy arm; the issue's own."""


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table; what could break one is taken out."""
    lines = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    lines += [
        "| " + " | ".join(re.sub(r"\s+", " ", str(each)).replace("|", "/") for each in row) + " |" for row in rows
    ]
    return "\n".join(lines)


def number(value: object) -> str:
    """To three figures, or the words themselves."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        words = "–" if value is None else str(value)
        return words if len(words) <= LONG else words[: words.rindex(" ", 0, LONG)] + " …"
    return f"{value:,.0f}" if abs(value) >= 100 or value == int(value) else f"{value:,.3g}"


def made(results: Results) -> str:
    """Where, when and with what it was measured."""
    about = results["about"]
    versions = ", ".join(f"{name} {version}" for name, version in about["versions"].items())
    quick = about["settings"].get("quick") or about.get("preliminary", "no") != "no"
    return (
        f"{about['begun']}: {about['processor']}, {about['memory']}; {about['system']}; Python {about['python']}, "
        f"{versions}; load when it began {about['load before']}."
        + (" **Made with `--quick`: these figures say nothing.**" if quick else "")
    )


def settings(results: Results) -> str:
    """How it was measured, as far as that can be chosen."""
    return ", ".join(f"{name}: {value}" for name, value in results["about"]["settings"].items() if value is not False)


# ── isolation ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def isolation(results: Results) -> str:
    """All cells: the ratios; one of them in full."""
    cells = results["cells"]
    sizes = sorted({(cell["servers"], cell["bad"]) for cell in cells if cell["bad"]})
    by_key = {(cell["kind"], cell["servers"], cell["bad"]): cell for cell in cells}
    struck = [cell for cell in cells if cell["bad"]]
    ratios = [ratio(cell, load) for cell in struck for load in LOADS]
    measured = [each for each in ratios if each is not None]
    errors = sum(load["errors"] for cell in struck for load in cell["arms"]["faulty"]["loads"].values())
    calls = sum(load["calls"] for cell in struck for load in cell["arms"]["faulty"]["loads"].values())
    quiet = [each for cell in cells if not cell["bad"] for load in LOADS if (each := ratio(cell, load)) is not None]
    lines = [
        made(results) + f" {settings(results)}.",
        "",
        f"Calls of healthy servers while others misbehaved: {calls:,}, of which {errors:,} failed. p99 over that of the busy "
        f"arm (median of the rounds): {sum(each <= BOUND for each in measured)} of {len(measured)} at most {BOUND}, "
        f"median {number(median(measured))}, worst {number(max(measured))}"
        + (f"; where nobody misbehaves: {', '.join(map(number, quiet))}." if quiet else "."),
        "",
        "p99 of healthy servers' calls over that of the busy arm, sequential / 16 at once, for each number of servers and how "
        "many of them misbehave:",
        "",
    ]
    rows = []
    for kind in [each for each in KINDS if each in {cell["kind"] for cell in struck}]:
        row = [KINDS[kind]]
        for size in sizes:
            cell = by_key.get((kind, *size))
            row.append(" / ".join(number(ratio(cell, load)) for load in LOADS) + failed(cell) if cell else "–")
        rows.append(row)
    lines += [table(["", *(f"{bad} of {servers}" for servers, bad in sizes)], rows), ""]
    lines += ["How long until a server that misbehaved was callable again, median (longest), in ms:", ""]
    rows = []
    for kind in [each for each in KINDS if each in {cell["kind"] for cell in struck}]:
        row = [KINDS[kind]]
        for size in sizes:
            back = (by_key.get((kind, *size)) or {"arms": {"faulty": {"back": None}}})["arms"]["faulty"]["back"]
            row.append(f"{back['median ms']:,.0f} ({back['max ms']:,.0f})" if back else "–")
        rows.append(row)
    lines += [table(["", *(f"{bad} of {servers}" for servers, bad in sizes)], rows), ""]
    servers, bad = sizes[-1]
    lines += [f"{bad} of {servers} in full, calls one after the other, in ms; CPU in % of a core:", ""]
    rows = []
    for kind in [each for each in KINDS if (each, servers, bad) in by_key]:
        for arm, found in by_key[kind, servers, bad]["arms"].items():
            load = found["loads"]["sequential"]
            rows.append(
                [KINDS[kind] if arm == "calm" else "", arm]
                + [number(load[key]) for key in ("p50", "p99", "p99.9", "max", "errors", "calls")]
                + [number(found[key]) for key in ("host CPU %", "CPU below %", "burned %", "host MB")]
            )
    head = ["p50", "p99", "p99.9", "max", "errors", "calls", "CPU of the host", "of all below it", "burned", "host MB"]
    lines.append(table(["", "arm", *head], rows))
    return "\n".join(lines)


def ratio(cell: Results, load: str) -> float | None:
    """p99 of the faulty arm over that of the busy one, median of the rounds."""
    found: float | None = cell["p99 over busy"][load]["median"]
    return found


def failed(cell: Results) -> str:
    """How many calls failed, when some did."""
    count = sum(load["errors"] for load in cell["arms"]["faulty"]["loads"].values())
    return f", {count} errors" if count else ""


def isolation_exact(results: Results) -> str:
    """One sentence."""
    wrong = results["differences"]
    return (
        f"In virtual time, each of the {results['faults']} faults that a server can have on the wire strikes half of "
        f"{results['about']['settings']['servers']} servers while the others get {results['calls']} calls: "
        f"{results['faults'] - len(wrong)} of {results['faults']} changed no call of a healthy server by anything."
        + "".join(f"\n- differs: {each}" for each in wrong)
    )


# ── beside others ────────────────────────────────────────────────────────────────────────────────────────────────────────

GROUPS: dict[str, dict[str, str]] = {
    "Connecting and calling": {
        "connect + list 1, ms": "connect + list 1, ms",
        "connect + list 10, ms": "10, ms",
        "connect + list 40, ms": "40, ms",
        "processes started for 40": "processes started for 40",
        "call round trip, µs": "call, µs",
        "calls a second, 16 at once": "calls a second, 16 at once",
    },
    "When a server fails": {
        "4 good beside one that hangs and one that is missing": "4 good ones beside one that hangs and one that is missing",
        "neighbour of a crash, errors": "neighbour of a crash: errors",
        "neighbour of a crash, longest call, ms": "its longest call, ms",
        "a call to the crashed one": "a call to the crashed one",
        "restart by itself": "restart by itself",
        "restart when asked": "restart when asked",
    },
    "In a running group": {
        "add a server to 10": "add a server to 10",
        "drop a server": "drop a server",
        "disable a tool": "disable a tool",
        "list_changed": "list_changed",
        "the same names in two servers": "the same names in two servers",
    },
    "At the end": {
        "close, ms": "close, ms (one of 3 servers refuses to die)",
        "processes left after close": "processes left after close",
        "processes left after kill -9 of the program": "after kill -9 of the program",
    },
}
"""Title → cell of `peers/run.py` → head of a column."""


def merged(results: Results) -> dict[str, dict[str, Any]]:
    """Peer → cell → value; what could not be measured of a row is said in all of its cells."""
    cells: dict[str, dict[str, Any]] = {}
    for by_peer in results["rows"].values():
        names = [each for found in by_peer.values() for each in found if each != "could not"]
        for peer, found in by_peer.items():
            mine = cells.setdefault(peer, {})
            for name in names:
                why = f"could not: {found['could not']}" if "could not" in found and peer != "floor" else "–"
                mine[name] = found.get(name, why)
    order = [each for each in NAMES if each in cells]
    return {peer: cells[peer] for peer in order}


def peers(results: Results) -> str:
    """All cells of `peers/run.py`, in a table for each theme."""
    cells = merged(results)
    pinned = ", ".join(
        f"{name} {found[name if name in found else 'pydantic-ai-slim']}"
        for name, found in results["about"].get("peers' versions", {}).items()
        if name in found or "pydantic-ai-slim" in found
    )
    lines = [made(results) + f" {settings(results)}. Peers: {pinned}."]
    for title, columns in GROUPS.items():
        rows = [[NAMES[peer], *(number(found.get(each)) for each in columns)] for peer, found in cells.items()]
        lines += ["", f"**{title}**", "", table(["", *columns.values()], rows)]
    return "\n".join(lines)


def peers_isolation(results: Results) -> str:
    """Ratios, errors and recovery of each peer under each kind of fault."""
    lines = [
        made(results) + f" {settings(results)}.",
        "",
        "p99 of healthy servers' calls over that of the busy arm, sequential / 16 at once; errors on healthy servers when "
        "there were any:",
        "",
    ]
    kinds = [each for each in KINDS if each in {cell["kind"] for cell in results["cells"]}]
    by_key = {(cell["peer"], cell["kind"]): cell for cell in results["cells"]}
    order = [each for each in NAMES if any(cell["peer"] == each for cell in results["cells"])]
    head = ["", *(KINDS[kind] for kind in kinds)]
    rows = [[NAMES[peer], *(share(by_key.get((peer, kind))) for kind in kinds)] for peer in order]
    lines += [table(head, rows), "", "Whether a server that misbehaved is callable again:", ""]
    rows = [[NAMES[peer], *(again(by_key.get((peer, kind))) for kind in kinds)] for peer in order]
    lines.append(table(head, rows))
    slow = {NAMES[cell["peer"]]: cell["load"] for cell in results["cells"] if "load" in cell}
    lines += [f"\n{name} cannot carry the load, and got {words}." for name, words in slow.items()]
    return "\n".join(lines)


def share(cell: Results | None) -> str:
    """The ratios of a peer's cell, and its errors."""
    if cell is None:
        return "–"
    if "arms" not in cell or "the group failed" in cell:
        return whole(cell)
    if not cell["faults"]:
        return "did not strike"
    words = " / ".join(number(ratio(cell, load)) for load in LOADS)
    without = sum(load["errors"] for load in cell["arms"]["busy"]["loads"].values())
    if cell["errors"] or without:
        words += f", {cell['errors']} errors ({without} in the busy arm)"
    return words


def whole(cell: Results) -> str:
    """Why there is no figure."""
    if "could not" in cell:
        return f"could not: {cell['could not']}"
    return f"the whole group failed: {cell['the group failed']}"


def again(cell: Results | None) -> str:
    """Whether the bad ones came back, and what the user's own restart said."""
    if cell is None or "callable again" not in cell:
        return "–"
    asked = [words.partition(": ")[2] for words in cell["words"] if words.startswith("its user's own restart")]
    return str(cell["callable again"]) + (f"; its user's own restart: {number(asked[0])}" if asked else "")


# ── the rest ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def scaling(results: Results) -> str:
    """Three sweeps."""
    lines = [made(results)]
    for name in ("servers", "tools", "hosts"):
        if rows := results[name]:
            columns = list(dict.fromkeys(column for row in rows for column in row))
            lines += ["", table(columns, [[number(row.get(column)) for column in columns] for row in rows])]
    return "\n".join(lines)


def call(results: Results) -> str:
    """Both arms and their ratio."""
    rows = results["rows"]
    columns = list(rows["ratio"])
    body = [
        [f"`{name}`" if name != "ratio" else name, *(number(row[each]) for each in columns)]
        for name, row in rows.items()
    ]
    return made(results) + f" {settings(results)}.\n\n" + table(["", *columns], body)


def startup(results: Results) -> str:
    """A row for each number of servers."""
    columns = list(results["rows"][0])
    body = [[number(row[each]) for each in columns] for row in results["rows"]]
    return made(results) + f" {settings(results)}.\n\n" + table(columns, body)


def imports(results: Results) -> str:
    """As it was printed."""
    return made(results) + "\n\n```text\n" + results["text"].strip("\n") + "\n```"


SECTIONS: dict[str, Callable[[Results], str]] = {
    "isolation": isolation,
    "isolation_exact": isolation_exact,
    "peers": peers,
    "peers_isolation": peers_isolation,
    "scaling": scaling,
    "call": call,
    "startup": startup,
    "imports": imports,
}
"""Name of the results → what is made of them."""


# ── the front page ───────────────────────────────────────────────────────────────────────────────────────────────────────


def brief(value: object) -> str:
    """A cell of `peers/run.py`, in a few words."""
    words = number(value)
    if words.startswith("could not: it ended with "):
        return "the whole group ended"
    if words.startswith("the 4 cannot be used: "):
        return "the good ones cannot be used"
    if found := re.match(r"([\d.]+) ms", words):
        return f"{float(found[1]) / 1000:.1f} s" if float(found[1]) >= 1000 else f"{float(found[1]):.0f} ms"
    return words


def front(found: dict[str, Results]) -> str:
    """What the first page shows: one table, and under it how it was measured."""
    cells = merged(found["peers"])
    floor = cells.get("floor", {}).get("connect + list 40, ms")
    rows = []
    for peer, each in cells.items():
        if peer == "floor":
            continue
        connect = each.get("connect + list 40, ms")
        whole = isinstance(connect, (int, float)) and isinstance(floor, (int, float))
        errors = each.get("neighbour of a crash, errors")
        rows.append(
            [
                NAMES[peer],
                f"× {connect / floor:.2f}" if whole else brief(connect),  # type: ignore[operator]
                number(each.get("call round trip, µs")),
                number(each.get("calls a second, 16 at once")),
                brief(each.get("4 good beside one that hangs and one that is missing")),
                f"{number(errors)} errors" if isinstance(errors, (int, float)) else brief(errors),
                brief(each.get("restart by itself")),
                number(each.get("processes left after kill -9 of the program")),
            ]
        )
    head = [
        "",
        "connect and list 40, over raw pipes",
        "a call, µs",
        "calls a second, 16 at once",
        "4 good servers beside one that hangs and one that is missing: usable after",
        "a neighbour's crash",
        "restarts a server by itself",
        "processes left after kill -9 of the program",
    ]
    return table(head, rows)
