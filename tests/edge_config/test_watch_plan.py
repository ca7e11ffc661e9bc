"""Which folders are watched for a file, and which change concerns us: over made-up file systems."""

from __future__ import annotations

from pathlib import PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st
from playbill.actors.edge.config.watch_plan import Look, Plan, Seen, plan, trace


def file_system(*files: str, links: dict[str, str] | None = None, folders: tuple[str, ...] = ()) -> Look:
    """A file system with these files and links, their folders, and nothing else."""
    known: dict[str, Seen] = {"/": Seen("folder", identity=0)}
    for path, seen in [
        *((path, Seen("file")) for path in files),
        *((path, Seen("folder", identity=path)) for path in folders),
        *((path, Seen("link", target=target)) for path, target in (links or {}).items()),
    ]:
        for parent in reversed(PurePosixPath(path).parents):
            known.setdefault(str(parent), Seen("folder", identity=str(parent)))
        known[path] = seen
    return lambda path: known.get(path, Seen("missing"))


def planned(look: Look, *paths: str) -> Plan:
    return plan(paths, look, lambda _: True)


def folders(look: Look, *paths: str) -> set[str]:
    return {folder for folder, _ in planned(look, *paths).folders}


def test_a_plain_file_is_watched_in_its_folder_and_nowhere_else() -> None:
    found = planned(file_system("/a/b/mcp.json"), "/a/b/mcp.json")
    assert found.folders == {("/a/b", "/a/b")}
    assert not found.missing
    assert found.concerns("/a/b/mcp.json")


@pytest.mark.parametrize(
    "name",
    [
        "mcp.json~",
        ".mcp.json.swp",
        ".mcp.json.swx",
        "4913",
        "mcp.json.lock",
        ".mcp.json.playbill.tmp",
        "#mcp.json#",
        ".#mcp.json",
        "mcp.json.bak",
        "mcp.json.tmp.1234",
        "mcp",
        "json",
        "deep/mcp.json",
    ],
)
def test_what_lies_beside_the_file_concerns_nobody(name: str) -> None:
    found = planned(file_system("/a/b/mcp.json", f"/a/b/{name}"), "/a/b/mcp.json")
    assert not found.concerns(f"/a/b/{name}")


def test_a_link_is_watched_where_it_lies_and_where_it_points() -> None:
    look = file_system("/dot/files/mcp.json", links={"/home/mcp.json": "/dot/files/mcp.json"})
    found = planned(look, "/home/mcp.json")
    assert folders(look, "/home/mcp.json") == {"/home", "/dot/files"}
    assert found.concerns("/home/mcp.json")
    assert found.concerns("/dot/files/mcp.json")
    assert not found.concerns("/dot/files/other.json")


def test_every_link_of_a_chain_is_watched_relative_ones_and_links_to_folders_too() -> None:
    look = file_system(
        "/store/v1/mcp.json",
        links={"/home/mcp.json": "../conf/mcp.json", "/conf": "/etc/conf", "/etc/conf/mcp.json": "/store/now/mcp.json",
               "/store/now": "v1"},
    )  # fmt: skip
    assert folders(look, "/home/mcp.json") == {"/home", "/", "/etc/conf", "/store", "/store/v1"}
    found = planned(look, "/home/mcp.json")
    assert [found.concerns(path) for path in ("/conf", "/store/now", "/store/v1/mcp.json")] == [True] * 3
    assert not found.missing


def test_a_missing_file_is_watched_for_where_it_would_be() -> None:
    found = planned(file_system(folders=("/a/b",)), "/a/b/mcp.json")
    assert found.folders == {("/a/b", "/a/b")}
    assert found.missing
    assert found.concerns("/a/b/mcp.json")


def test_a_missing_folder_is_watched_for_in_the_nearest_one_there_is() -> None:
    found = planned(file_system(folders=("/a",)), "/a/b/c/mcp.json")
    assert found.folders == {("/a", "/a")}
    assert found.missing
    assert found.concerns("/a/b")
    assert not found.concerns("/a/c")


def test_a_link_that_points_nowhere_is_watched_at_both_ends() -> None:
    look = file_system(folders=("/dot",), links={"/home/mcp.json": "/dot/mcp.json"})
    assert folders(look, "/home/mcp.json") == {"/home", "/dot"}
    assert planned(look, "/home/mcp.json").missing


def test_links_in_a_circle_end() -> None:
    look = file_system(links={"/a/x": "/b/y", "/b/y": "/a/x"})
    found = planned(look, "/a/x")
    assert found.missing
    assert folders(look, "/a/x") == {"/a", "/b"}


def test_something_else_in_the_place_of_the_file_or_of_its_folder_is_a_missing_file() -> None:
    assert planned(file_system(folders=("/a/mcp.json",)), "/a/mcp.json").missing
    assert planned(file_system("/a/b"), "/a/b/mcp.json").missing


def test_two_files_make_one_plan() -> None:
    look = file_system("/a/mcp.json", "/b/mcp.json")
    found = planned(look, "/a/mcp.json", "/b/mcp.json", "/b/mcp.json")
    assert folders(look, "/a/mcp.json", "/b/mcp.json") == {"/a", "/b"}
    assert [found.concerns(path) for path in ("/a/mcp.json", "/b/mcp.json")] == [True, True]
    assert planned(file_system("/a/mcp.json"), "/a/mcp.json", "/b/mcp.json").missing


def test_a_change_of_a_watched_folder_itself_outdates_the_plan() -> None:
    found = planned(file_system("/a/b/mcp.json"), "/a/b/mcp.json")
    assert found.concerns("/a/b")
    assert found.outdated_by({"/a/b/mcp.json", "/a/b"})
    assert not found.outdated_by({"/a/b/mcp.json"})


def test_a_folder_made_anew_under_the_same_name_is_another_plan() -> None:
    one = plan(["/a/x"], lambda path: Seen("folder", identity=1) if path != "/a/x" else Seen("file"), lambda _: True)
    two = plan(["/a/x"], lambda path: Seen("folder", identity=2) if path != "/a/x" else Seen("file"), lambda _: True)
    assert one != two


def test_a_folder_on_the_way_that_cannot_be_read_is_left_out_and_the_last_never() -> None:
    look = file_system("/dot/mcp.json", links={"/home/mcp.json": "/dot/mcp.json"})
    assert {folder for folder, _ in plan(["/home/mcp.json"], look, lambda _: False).folders} == {"/dot"}


def test_a_name_told_in_another_case_or_in_other_forms_of_its_letters_is_ours() -> None:
    found = planned(file_system("/a/Müller.json"), "/a/Müller.json")
    assert found.concerns("/a/mu\u0308ller.JSON")


def test_a_name_that_is_no_text_is_known_as_the_system_tells_it() -> None:
    found = planned(file_system(folders=("/a",)), "/a/mcp\udcff.json")
    assert found.concerns("/a/mcp\ufffd.json")


names = st.sampled_from(["a", "b", "c"])
paths = st.lists(names, min_size=1, max_size=3).map(lambda parts: "/" + "/".join(parts))


@given(
    st.lists(paths, max_size=3),
    st.dictionaries(
        paths, st.one_of(paths, st.lists(st.sampled_from(["a", "b", "..", "."])).map("/".join)), max_size=4
    ),
    paths,
)
def test_whatever_the_links_a_walk_ends_and_every_point_lies_in_a_folder_that_is_there(
    files: list[str], links: dict[str, str], path: str
) -> None:
    look = file_system(*files, links=links)
    way = trace(path, look)
    assert way.points
    assert all(look(folder).kind == "folder" for folder, _ in way.points)
    if way.whole:
        folder, name = way.points[-1]
        assert look(f"{folder.rstrip('/')}/{name}").kind == "file"
