"""The site and the pictures: every page has a place in the navigation, every picture is shown, and nothing is fetched."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from pathlib import Path

import capture
import conf
import pytest
from rich.text import Text
from tools import scenes
from tools.picture import described, picture, text_of
from tools.scenes import SCENES, Scene, normalised

from .markdown import DOCS, DOCUMENTS, ROOT

PICTURES = sorted((DOCS / "pictures").glob("*.svg"))


def test_every_page_has_one_place_in_the_navigation() -> None:
    there = {str(path.relative_to(DOCS).with_suffix("")) for path in DOCS.rglob("*.md")} - {"index"}
    named = [page for pages in conf.NAVIGATION.values() for page in pages]
    assert sorted(named) == sorted(there)


def test_every_picture_is_shown_somewhere_and_every_one_shown_is_there() -> None:
    shown = {
        (path.parent / target).resolve()
        for path in DOCUMENTS
        for target in re.findall(r"!\[[^\]]+\]\(([^)]+)\)", path.read_text("utf-8"))
    }
    assert shown == set(PICTURES)
    assert {f"{name}.svg" for name in SCENES} <= {path.name for path in PICTURES}


def test_the_readme_shows_the_program() -> None:
    readme = (ROOT / "README.md").read_text("utf-8")
    assert [name for name in SCENES if f"](docs/pictures/{name}.svg)" not in readme] == []


@pytest.mark.parametrize("path", PICTURES, ids=lambda path: path.name)
def test_a_picture_refers_to_nothing_outside_itself(path: Path) -> None:
    text = path.read_text("utf-8")
    ET.fromstring(text)
    assert re.findall(r"https?://[^\"' )<]+", text) == ["http://www.w3.org/2000/svg"]
    assert re.findall(r"url\((?!#)|@import|<image|<script|href=", text) == []


@pytest.mark.parametrize("name", SCENES)
def test_what_a_picture_is_compared_by_is_what_it_shows(name: str) -> None:
    svg = (DOCS / "pictures" / f"{name}.svg").read_text("utf-8")
    assert len(described(svg).splitlines()) > 10
    assert "/tmp" not in svg, "a path that is another one at every run"
    assert drawn(svg) == re.sub(r"\s", "", described(svg))


def drawn(svg: str) -> str:
    """The letters that are drawn, line by line and from left to right, without blanks."""
    pieces = [
        (float(each.attrib["y"]), float(each.attrib["x"]), each.text or "")
        for each in ET.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")
        if "title" not in each.attrib.get("class", "")
    ]
    return re.sub(r"\s", "", "".join(text for _, _, text in sorted(pieces)))


def test_a_screen_survives_being_drawn_and_is_read_back() -> None:
    screen = [Text("a <b> & c"), Text(""), Text.from_markup("[bold red]d[/] ✔  ")]
    svg = picture(screen, title="x", columns=20)
    assert described(svg) == text_of(screen) == "a <b> & c\n\nd ✔"
    assert drawn(svg) == "a<b>&cd✔"


def test_what_differs_from_run_to_run_is_replaced_and_keeps_its_colour() -> None:
    line = Text.assemble("pid ", ("123", "red"), " ok")
    (after,) = normalised([Text(" "), line, Text("")], (r"(?<=pid )\d+", lambda found: "4101"))
    assert after.plain == "pid 4101 ok"
    assert [(span.start, span.end, span.style) for span in after.spans] == [(4, 8, "red")]


def test_a_process_that_is_named_twice_has_one_name_in_the_picture() -> None:
    screen = [Text("pid 123"), Text("pid 77"), Text("pid 123 again")]
    shown = normalised(screen, (r"(?<=pid )\d+", scenes._counted(4101)))
    assert [line.plain for line in shown] == ["pid 4101", "pid 4102", "pid 4101 again"]


def scene_of(text: str) -> Scene:
    return Scene("x", 20, lambda: [Text(text)])


def test_a_stale_picture_is_told_with_what_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(capture, "PICTURES", tmp_path)
    monkeypatch.setattr(capture, "SCENES", {"one": scene_of("a word")})
    assert capture.main(["--check"]) == 1  # there is none yet
    assert capture.main([]) == 0
    assert capture.main(["--check"]) == 0
    capsys.readouterr()

    monkeypatch.setattr(capture, "SCENES", {"one": scene_of("another word")})
    assert capture.main(["--check"]) == 1
    said = capsys.readouterr().err
    assert said.startswith("pictures are stale: run python docs/capture.py\n")
    assert "-a word" in said
    assert "+another word" in said


def test_a_program_that_fails_makes_no_picture(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail() -> list[Text]:
        raise RuntimeError("it ended with 1")

    monkeypatch.setattr(capture, "PICTURES", tmp_path)
    monkeypatch.setattr(capture, "SCENES", {"one": Scene("x", 20, fail)})
    assert capture.main([]) == 1
    assert "it ended with 1" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_picture_that_there_is_not_is_refused_with_those_that_there_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(capture, "PICTURES", tmp_path)
    monkeypatch.setattr(capture, "SCENES", {"one": scene_of("a word")})
    for arguments in (["two"], ["--check", "two"]):
        assert capture.main(arguments) == 2
        assert capsys.readouterr().err.endswith("the pictures are: one\n")
    assert list(tmp_path.iterdir()) == []
