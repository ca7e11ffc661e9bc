"""What may be wrong with the place that a file is in: each is one clear line, and the old file stays whole.

Real file systems, users and locks. What takes rights that a run of the tests may not have (a file system of its own, other
users) is made where it may be, and by lesser means elsewhere.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import stat
import struct
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from playbill.actors.edge.config import atomic
from playbill.actors.edge.config import file as config_file
from playbill.actors.edge.config.edit import Draft
from playbill.actors.edge.config.file import FileStore
from playbill.actors.edge.config.trust import TrustStore
from playbill.actors.model.config import ServerEntry
from playbill.actors.model.edits import AddServer, SetTool
from playbill.actors.model.errors import ConfigError, PlaybillError, UnknownServer, WriteFailed

TEXT = '{\n  "mcpServers": {\n    "a": {"command": "c"}, // mine\n    "b": {"command": "d"}\n  }\n}\n'
OFF = SetTool("a", "t", False)
HIDDEN = TEXT.replace('"c"}', '"c", "tools": {"exclude": ["t"]}}')
ROOT = os.geteuid() == 0
NOBODY = 65534


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "mcp.json"
    path.write_text(TEXT, "utf-8")
    return path


def in_folder(file: Path) -> list[str]:
    return sorted(each.name for each in file.parent.iterdir())


# A file system that is full, or may not be written.

PLACE = """
import errno, json, os, resource, subprocess, sys
from pathlib import Path
from playbill.actors.edge.config.file import FileStore
from playbill.actors.model.edits import SetTool
from playbill.actors.model.errors import PlaybillError

folder = Path(sys.argv[1])
mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=128k", "none", folder], capture_output=True).returncode == 0
path = folder / "mcp.json"
text = '{"mcpServers": {"a": {"command": "c"}}} // ' + "x" * 30_000
path.write_text(text)
store = FileStore(path, lock_timeout=1)
config = store.load()

def toggle():
    try:
        store.edit([SetTool("a", "t", False)], config)
        return "written"
    except PlaybillError as error:
        return f"{type(error).__name__}: {error}"

def tell(said):
    print(json.dumps([said, path.read_text() == text, sorted(set(os.listdir(folder)) - {"filler"}),
                      store.load(config) is config]))
"""


def run_in_a_place(folder: Path, code: str) -> list[list[Any]]:
    """What a process tells that runs where it may mount file systems, if it may."""
    folder.mkdir()
    alone = ["unshare", "--user", "--map-root-user", "--mount"]
    may = shutil.which("unshare") and subprocess.run([*alone, "true"], capture_output=True, check=False).returncode == 0
    command = [*(alone if may else []), sys.executable, "-c", PLACE + textwrap.dedent(code), str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_a_full_disk_costs_the_edit_and_nothing_else(tmp_path: Path) -> None:
    full, roomy = run_in_a_place(
        tmp_path / "place",
        """
        filler = folder / "filler"
        if mounted:
            with filler.open("wb", buffering=0) as stream:
                try:
                    while True:
                        stream.write(bytes(1024))
                except OSError as error:
                    assert error.errno == errno.ENOSPC
            os.truncate(filler, filler.stat().st_size - 8192)  # room for the beginning of the file
        else:
            resource.setrlimit(resource.RLIMIT_FSIZE, (8192, resource.RLIM_INFINITY))
        tell(toggle())
        if mounted:
            filler.unlink()
        else:
            resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        tell(toggle())
        """,
    )
    assert full[0].startswith("WriteFailed: ")
    assert full[0].endswith(("mcp.json: not written: no space left on device", "mcp.json: not written: file too large"))
    assert full[1:] == [True, ["mcp.json"], True]
    assert roomy == ["written", False, ["mcp.json"], False]


def test_a_file_that_outgrows_the_limit_of_the_process_is_left_as_it_was(tmp_path: Path) -> None:
    (limited,) = run_in_a_place(
        tmp_path / "place",
        """
        resource.setrlimit(resource.RLIMIT_FSIZE, (8192, resource.RLIM_INFINITY))
        tell(toggle())
        """,
    )
    assert limited[0].endswith("mcp.json: not written: file too large")
    assert limited[1:] == [True, ["mcp.json"], True]


def test_a_read_only_file_system_and_a_file_mounted_by_itself_are_told_apart(tmp_path: Path) -> None:
    told = run_in_a_place(
        tmp_path / "place",
        """
        if mounted:
            subprocess.run(["mount", "--bind", path, path], check=True)
            tell(toggle())
            subprocess.run(["umount", path], check=True)
            subprocess.run(["mount", "-o", "remount,ro", folder], check=True)
            tell(toggle())
        """,
    )
    if told:  # it may mount
        alone, read_only = told
        assert alone[0].endswith("it is mounted by itself and cannot be replaced: mount its folder instead")
        assert read_only[0].endswith("mcp.json: not written: its lock cannot be taken: read-only file system")
        assert [each[1:] for each in told] == [[True, ["mcp.json"], True]] * 2


# Rights.


@contextmanager
def as_nobody() -> Iterator[None]:
    """Root may do everything; so these are done as somebody else."""
    if not ROOT:
        yield
        return
    os.setegid(NOBODY)
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(0)


@pytest.fixture
def shared() -> Iterator[Path]:
    """A file in a folder that everybody can get to."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o777)
        path = Path(folder) / "mcp.json"
        path.write_text(TEXT, "utf-8")
        if ROOT:
            os.chown(path, NOBODY, NOBODY)
        yield path
        Path(folder).chmod(0o700)


def test_a_folder_that_may_not_be_written(shared: Path) -> None:
    shared.parent.chmod(0o555)
    with as_nobody():
        store = FileStore(shared, lock_timeout=1)
        with pytest.raises(WriteFailed, match=r"mcp\.json: not written: its lock cannot be taken: permission denied$"):
            store.edit([OFF])
        # What changes nothing is answered there as well as anywhere.
        done = store.edit([SetTool("a", "t", True), SetTool("x", "t", False)])
    assert (done.wrote, [type(each) for each in done.refused]) == (False, [type(None), UnknownServer])
    assert shared.read_text("utf-8") == TEXT
    assert in_folder(shared) == ["mcp.json"]


@pytest.mark.parametrize(
    ("bits", "error", "words"),
    [
        (0o444, WriteFailed, r"mcp\.json: not written: the file is read-only$"),
        (0o000, ConfigError, r"mcp\.json: cannot be read: Permission denied$"),
    ],
)
def test_a_file_that_may_not_be_written_or_read(
    shared: Path, bits: int, error: type[PlaybillError], words: str
) -> None:
    shared.chmod(bits)
    with as_nobody(), pytest.raises(error, match=words):
        FileStore(shared, lock_timeout=1).edit([OFF])
    shared.chmod(0o600)
    assert shared.read_text("utf-8") == TEXT
    assert in_folder(shared) == ["mcp.json"]


def test_a_folder_that_may_not_be_looked_into(shared: Path) -> None:
    inner = shared.parent / "inner"
    inner.mkdir()
    shared.parent.chmod(0o000)
    for path in (shared, inner / "mcp.json"):
        with as_nobody():
            store = FileStore(path, lock_timeout=1)
            for act in (store.load, lambda store=store: store.edit([AddServer(ServerEntry("n", command="c"))])):
                with pytest.raises(ConfigError, match=r"mcp\.json: cannot be read: Permission denied$"):
                    act()
    shared.parent.chmod(0o700)
    assert shared.read_text("utf-8") == TEXT


if ROOT:  # only root can make files of several users

    def test_another_users_file_that_we_may_only_read_is_not_replaced_though_we_could(shared: Path) -> None:
        os.chown(shared, 0, 0)
        shared.chmod(0o644)
        with as_nobody(), pytest.raises(WriteFailed, match=r"mcp\.json: not written: permission denied$"):
            FileStore(shared).edit([OFF])
        assert shared.read_text("utf-8") == TEXT

    def test_a_file_whose_group_we_cannot_keep_is_open_to_no_other_group(shared: Path) -> None:
        os.chown(shared, NOBODY, 1)
        shared.chmod(0o664)
        with as_nobody():
            assert FileStore(shared).edit([OFF]).wrote
        there = shared.stat()
        assert (there.st_uid, there.st_gid, stat.S_IMODE(there.st_mode)) == (NOBODY, NOBODY, 0o644)

    def test_another_users_file_that_all_may_write_keeps_its_group_or_opens_no_further(shared: Path) -> None:
        os.chown(shared, 0, NOBODY)
        shared.chmod(0o660)
        with as_nobody():
            assert FileStore(shared).edit([OFF]).wrote
        there = shared.stat()
        assert (there.st_uid, there.st_gid, stat.S_IMODE(there.st_mode)) == (NOBODY, NOBODY, 0o660)


def test_access_lists_and_notes_stay_on_the_file(file: Path) -> None:
    entries = [(0x01, 6, -1), (0x02, 4, 1), (0x04, 4, -1), (0x10, 4, -1), (0x20, 0, -1)]  # u, uid 1, g, mask, o
    acl = struct.pack("<I", 2) + b"".join(struct.pack("<HHi", *each) for each in entries)
    for name, value in (("system.posix_acl_access", acl), ("user.note", b"mine")):
        with suppress(OSError):  # not every file system has them
            os.setxattr(file, name, value)
    before = {name: os.getxattr(file, name) for name in os.listxattr(file)}
    mode = file.stat().st_mode
    assert FileStore(file).edit([OFF]).wrote
    assert {name: os.getxattr(file, name) for name in os.listxattr(file)} == before
    assert file.stat().st_mode == mode


def test_an_approval_that_cannot_be_kept_leaves_the_added_server_untrusted_and_says_so(
    file: Path, tmp_path: Path
) -> None:
    (tmp_path / "state").write_text("a file where the folder of approvals should be")
    store = FileStore(file, trust=TrustStore(tmp_path / "state" / "trust.json"))
    done = store.edit([AddServer(ServerEntry("n", command="x"))])
    assert done.wrote
    assert isinstance(done.refused[0], WriteFailed)
    assert "trust.json" in str(done.refused[0])
    assert [(e.name, e.trusted) for e in done.config.servers] == [("a", False), ("b", False), ("n", False)]
    assert store.load(done.config) == done.config


# Links.


def test_a_chain_of_relative_links_is_followed_and_kept(file: Path, tmp_path: Path) -> None:
    (tmp_path / "x" / "y").mkdir(parents=True)
    (tmp_path / "x" / "two.json").symlink_to("../mcp.json")
    (tmp_path / "x" / "y" / "one.json").symlink_to("../two.json")
    (tmp_path / "z").symlink_to("x/y")
    assert FileStore(tmp_path / "z" / "one.json").edit([OFF]).wrote
    assert file.read_text("utf-8") == HIDDEN
    assert os.readlink(tmp_path / "x" / "two.json") == "../mcp.json"
    assert os.readlink(tmp_path / "x" / "y" / "one.json") == "../two.json"
    assert in_folder(file) == ["mcp.json", "x", "z"]


@pytest.mark.parametrize("edit", [OFF, AddServer(ServerEntry("n", command="c"))])
def test_a_link_to_what_is_not_there_is_told_and_nothing_is_made_there(tmp_path: Path, edit: Any) -> None:
    link = tmp_path / "mcp.json"
    link.symlink_to("dotfiles.json")
    store = FileStore(link)
    words = rf"mcp\.json: there is no such file: it is a link to {tmp_path / 'dotfiles.json'}, which is not there$"
    for act in (store.load, lambda: store.edit([edit])):
        with pytest.raises(ConfigError, match=words):
            act()
    assert in_folder(link) == ["mcp.json"]


def test_links_in_a_circle_are_one_clear_line(tmp_path: Path) -> None:
    (tmp_path / "mcp.json").symlink_to("other.json")
    (tmp_path / "other.json").symlink_to("mcp.json")
    store = FileStore(tmp_path / "mcp.json")
    for act in (store.load, lambda: store.edit([OFF])):
        with pytest.raises(ConfigError, match=r"mcp\.json: cannot be read: Too many levels of symbolic links$"):
            act()
    assert in_folder(tmp_path / "mcp.json") == ["mcp.json", "other.json"]


def test_another_name_of_the_file_keeps_the_old_text(file: Path, tmp_path: Path) -> None:
    os.link(file, tmp_path / "other.json")
    assert FileStore(file).edit([OFF]).wrote
    assert (tmp_path / "other.json").read_text("utf-8") == TEXT
    assert file.read_text("utf-8") == HIDDEN


# What comes in between: while the edit is worked out, and when only the replacement is left to do.


@pytest.fixture(params=["while it is worked out", "at the last moment"])
def meanwhile(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], Any]], None]:
    """Have something done once, in the midst of an edit."""

    def once(act: Callable[[], Any]) -> None:
        place, name = (Draft, "finish") if request.param == "while it is worked out" else (atomic.os, "fsync")
        real, left = getattr(place, name), [act]

        def then(*args: Any) -> Any:
            done = real(*args)
            if left:
                left.pop()()
            return done

        monkeypatch.setattr(place, name, then)

    return once


def test_an_editor_that_replaces_the_file_meanwhile_loses_nothing(
    file: Path, meanwhile: Callable[[Callable[[], Any]], None]
) -> None:
    def save() -> None:
        new = file.with_name("new")
        new.write_text(TEXT.replace('"d"', '"e"'))
        new.replace(file)

    meanwhile(save)
    done = FileStore(file).edit([OFF])
    assert file.read_text("utf-8") == HIDDEN.replace('"d"', '"e"')
    assert [e.command for e in done.config.servers] == ["c", "e"]
    assert in_folder(file) == ["mcp.json"]


def test_an_editor_that_moves_the_file_away_before_it_saves_is_waited_for(
    file: Path, meanwhile: Callable[[Callable[[], Any]], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    def back(_: float) -> None:
        if not file.exists():
            file.write_text(TEXT.replace('"d"', '"e"'))

    monkeypatch.setattr(config_file.time, "sleep", back)
    meanwhile(lambda: file.rename(file.with_name("mcp.json~")))
    assert FileStore(file).edit([OFF]).wrote
    assert file.read_text("utf-8") == HIDDEN.replace('"d"', '"e"')
    assert file.with_name("mcp.json~").read_text("utf-8") == TEXT


def test_a_mode_that_is_changed_meanwhile_stays_changed(
    file: Path, meanwhile: Callable[[Callable[[], Any]], None]
) -> None:
    meanwhile(lambda: file.chmod(0o600))
    file.chmod(0o644)
    assert FileStore(file).edit([OFF]).wrote
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_a_link_that_is_pointed_elsewhere_meanwhile_is_followed_there(
    file: Path, tmp_path: Path, meanwhile: Callable[[Callable[[], Any]], None]
) -> None:
    other = tmp_path / "other.json"
    other.write_text(TEXT.replace('"d"', '"e"'))
    link = tmp_path / "link.json"
    link.symlink_to("mcp.json")

    def point() -> None:
        link.unlink()
        link.symlink_to("other.json")

    meanwhile(point)
    assert FileStore(link).edit([OFF]).wrote
    assert link.is_symlink()
    assert file.read_text("utf-8") == TEXT
    assert other.read_text("utf-8") == HIDDEN.replace('"d"', '"e"')
    assert in_folder(file) == ["link.json", "mcp.json", "other.json"]


def listen(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(path.name)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (Path.mkdir, "this is a folder, not a file"),
        (os.mkfifo, "it is not a regular file"),
        (listen, "cannot be read: No such device or address"),
        (lambda path: path.symlink_to("/dev/null"), "it is not a regular file"),
    ],
)
def test_something_else_in_the_files_place_is_told_and_left_alone(
    file: Path,
    meanwhile: Callable[[Callable[[], Any]], None],
    monkeypatch: pytest.MonkeyPatch,
    make: Callable[[Path], Any],
    words: str,
) -> None:
    monkeypatch.chdir(file.parent)  # a socket's path must be short

    def swap() -> None:
        file.unlink()
        make(file)

    meanwhile(swap)
    with pytest.raises(ConfigError, match=rf"mcp\.json: .*{words}$"):
        FileStore(file).edit([OFF])
    assert not stat.S_ISREG(file.lstat().st_mode)
    assert in_folder(file) == ["mcp.json"]


def test_a_folder_that_goes_meanwhile_is_told_and_not_made_again(
    file: Path, meanwhile: Callable[[Callable[[], Any]], None]
) -> None:
    store = FileStore(file)
    meanwhile(lambda: shutil.rmtree(file.parent))
    with pytest.raises(WriteFailed, match=rf"mcp\.json: not written: there is no folder {file.parent}$"):
        store.edit([OFF])
    assert not file.parent.exists()


def test_a_file_that_somebody_makes_meanwhile_is_not_replaced_by_a_new_one(
    tmp_path: Path, meanwhile: Callable[[Callable[[], Any]], None]
) -> None:
    path = tmp_path / "mcp.json"
    meanwhile(lambda: path.write_text(TEXT))
    done = FileStore(path).edit([AddServer(ServerEntry("n", command="c"))])
    assert [each.name for each in done.config.servers] == ["a", "b", "n"]
    assert "// mine" in path.read_text()
