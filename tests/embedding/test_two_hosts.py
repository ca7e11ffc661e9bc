"""Two programs with a host each, and a person, change one file at the same time; a fourth reads it all the while.

Each toggle is of a tool of its own, so that one that is lost is missed at the end. `PLAYBILL_TOGGLES=500` makes the long run:

    PLAYBILL_TOGGLES=500 pytest tests/embedding/test_two_hosts.py

The person's editor takes no lock: it reads, writes a new file and puts that in the old one's place. Two things could go wrong
then, and only one of them is ours. (1) A host replaces the file between its last look and its replacement: the person's edit is
gone, seen at the next save, and made again; how often is counted. (2) The editor replaces a text that it has not read: a toggle
is gone, and only the editor could have prevented it. So that (2) cannot happen, the hosts are stopped (SIGSTOP) wherever they
just are, also with the lock in their hands, while the editor reads and saves.
"""

from __future__ import annotations

import json
import os
import re
import select
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO

import pytest
from playbill.actors.edge.config.read import read_config

from ..forked import Forked
from .conftest import Project, fake

TOGGLES = int(os.environ.get("PLAYBILL_TOGGLES", "100"))
PATIENCE = 60 + TOGGLES

READER = """
import sys, threading, time
from playbill.actors.edge.config.read import read_config
threading.Thread(target=lambda: (sys.stdin.read(), over.append(1)), daemon=True).start()
over, texts, last = [], 0, None
print("ready", flush=True)
while not over:
    with open(sys.argv[1], "rb") as stream:
        data = stream.read()
    if data != last:
        last, texts = data, texts + 1
        read_config(data.decode(), sys.argv[1])
    time.sleep(0.001)
print(texts, flush=True)
"""


class Person:
    """Edits by hand: each save adds a comment, a key, and a tool to hide, in the list that the hosts add to."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.saved = ""
        self.count = 0
        self.again = 0

    def save(self, *, new: bool = True) -> None:
        """Read the file, do all that is not in it (any more), and put it in the old one's place."""
        text = self.file.read_text("utf-8")
        lost = [number for number in range(self.count) if not self.has(text, number)]
        self.again += len(lost)
        if new:
            lost.append(self.count)
            self.count += 1
        for number in lost:
            text = text.replace("{\n", f'{{\n  "hand{number}": "a note", // by hand {number}\n', 1)
            text = text.replace('"exclude": [', f'"exclude": ["h{number}", ', 1)
        new = self.file.with_name("mcp.json.new")
        new.write_text(text, "utf-8")
        new.replace(self.file)
        self.saved = text

    def wait(self, hosts: Sequence[IO[str] | None]) -> Sequence[IO[str] | None]:
        """Until a host has done all its toggles, or one of them, and a little while longer; which have done all."""
        late = time.monotonic() + PATIENCE
        while not (done := select.select(hosts, [], [], 0.1)[0]) and self.file.read_text("utf-8") == self.saved:
            assert time.monotonic() < late, "no host has toggled anything since the last edit by hand"
        return done

    def has(self, text: str, number: int) -> bool:
        """Whether an edit is in a text: all of it, or nothing."""
        there = [f'"hand{number}"' in text, f"// by hand {number}\n" in text, f'"h{number}"' in text]
        assert len(set(there)) == 1, f"half of the edit {number} is there"
        return all(there)


class Processes(list[subprocess.Popen[str]]):
    """The processes of a test, and the folder of what each writes on stderr."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.folder = folder

    def complaints(self) -> str:
        """All that they wrote on stderr, for who wants to know why one has died."""
        return "\n".join(f"{each.name}: {each.read_text()}" for each in sorted(self.folder.iterdir()))


@pytest.fixture
def processes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Processes]:
    started = Processes(tmp_path_factory.mktemp("complaints"))
    yield started
    for process in started:
        process.send_signal(signal.SIGCONT)
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout):
            assert stream is not None
            stream.close()


def start(processes: Processes, *command: object) -> Forked:
    line = [sys.executable, *map(str, command)]
    with (processes.folder / f"process {len(processes)}").open("w") as stderr:
        process = Forked(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr, text=True)
    processes.append(process)
    return process


def hear(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().rstrip()


def tell(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.write("go\n")
    process.stdin.flush()


def stop(process: subprocess.Popen[str]) -> None:
    """Have it stand still where it is; it has when this returns."""
    process.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)


def test_two_hosts_and_a_person_change_one_file_and_nothing_is_lost(project: Project, processes: Processes) -> None:
    names = [f"{prefix}{number}" for prefix in "xy" for number in range(TOGGLES)]
    tools = [{"name": name, "inputSchema": {"type": "object"}} for name in ["z", *names]]
    project.write(s={**fake(tools=[tools]), "tools": {"exclude": ["z"]}})
    file = project.path
    # The list on one line, where a person's `replace` finds it.
    file.write_text(re.sub(r'"exclude": \[\s*"z"\s*\]', '"exclude": ["z"]', file.read_text()))

    script = Path(__file__).with_name("toggler.py")
    hosts = [
        start(processes, script, file, "x", TOGGLES, "watch"),
        start(processes, script, file, "y", TOGGLES, "no-watch"),
    ]
    reader = start(processes, "-c", textwrap.dedent(READER), file)
    assert [hear(each) for each in processes] == ["ready"] * 3, processes.complaints()
    for host in hosts:
        tell(host)
    person, busy = Person(file), list(hosts)
    while busy:
        for host in hosts:
            stop(host)
        person.save()
        for host in hosts:
            host.send_signal(signal.SIGCONT)
        # A while to type the next edit, and until the file has changed again or one has done all its toggles: an editor that
        # saves faster than anybody gets a turn on a busy machine proves nothing.
        done = person.wait([host.stdout for host in busy])
        for host in [host for host in busy if host.stdout in done]:
            assert hear(host) == "toggled", processes.complaints()
            busy.remove(host)
    person.save(new=False)

    text = file.read_text("utf-8")
    (server,) = read_config(text).servers
    wanted = ["z", *names, *(f"h{number}" for number in range(person.count))]
    assert sorted(server.exclude) == sorted(wanted)
    assert all(person.has(text, number) for number in range(person.count))
    for host in hosts:
        tell(host)
    said = [hear(host) for host in hosts]
    assert all(said), processes.complaints()
    answers = [json.loads(each) for each in said]
    assert [set(each["hidden"]) for each in answers] == [{"z", *names}] * 2  # the person's tools, no server has
    assert [host.wait(PATIENCE) for host in hosts] == [0, 0], processes.complaints()
    assert reader.stdin is not None
    reader.stdin.close()
    read = int(hear(reader))
    assert reader.wait(PATIENCE) == 0
    assert read > 1
    assert [each.name for each in file.parent.iterdir()] == ["mcp.json"]
    print(
        f"{2 * TOGGLES} toggles, {person.count} edits by hand of which {person.again} were made again, "
        f"{read} texts read, {sum(each['refused'] for each in answers)} toggles refused and done again"
    )
