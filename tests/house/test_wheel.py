"""What is installed is what is meant: the wheel is built, installed elsewhere and used from an empty folder."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def run(*command: str | Path, cwd: Path, **env: str) -> str:
    """Run a program to its end; what it printed, or a failure with what it said on stderr."""
    done = subprocess.run(
        [str(part) for part in command], cwd=cwd, env={**os.environ, **env}, capture_output=True, text=True
    )
    assert done.returncode == 0, f"{command} ended with {done.returncode}:\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, made from the source distribution, so that nothing left in the checkout gets into it.

    With the setuptools that is here: the two environments that `build` makes by itself are what pip makes, and ./check.
    Of a copy: setuptools gathers what it packs in the folder itself, and another test may be doing so at the same time.
    """
    out = tmp_path_factory.mktemp("wheel")
    checkout = tmp_path_factory.mktemp("copy") / "checkout"
    shutil.copytree(ROOT, checkout, ignore=shutil.ignore_patterns(".*", "playbill-*", "node_modules"))
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", out, checkout, cwd=out)
    (found,) = out.glob("*.whl")
    return found


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel installed in it and nothing else."""
    target = tmp_path_factory.mktemp("installed")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
    run(*pip, "install", "--no-deps", "--target", target, wheel, cwd=target)
    return target


def test_the_wheel_holds_every_module_of_the_checkout_and_no_test(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    code = {name for name in names if not name.split("/")[0].endswith(".dist-info")}
    expected = {
        f"playbill/{folder}/{path.relative_to(ROOT / folder).as_posix()}"
        for folder in ("actors", "supervision")
        for path in (ROOT / folder).rglob("*")
        if path.suffix == ".py" or path.name == "py.typed"
    }
    assert code == expected
    assert {"playbill/actors/py.typed", "playbill/supervision/py.typed"} <= code
    assert any(name.endswith("licenses/LICENSE") for name in names)


def test_the_installed_wheel_is_imported_from_an_empty_folder(installed: Path, tmp_path: Path) -> None:
    code = (
        "import playbill.actors, playbill.supervision\n"
        "print(playbill.actors.__file__)\nprint(playbill.supervision.__file__)"
    )
    printed = run(sys.executable, "-P", "-c", code, cwd=tmp_path, PYTHONPATH=str(installed)).split()
    folder = installed.resolve() / "playbill"
    assert printed == [str(folder / "actors" / "__init__.py"), str(folder / "supervision" / "__init__.py")]


def test_the_installed_command_runs_from_an_empty_folder(installed: Path, tmp_path: Path) -> None:
    script = installed / "bin" / "playbill"
    assert "demo" in run(script, "--help", cwd=tmp_path, PYTHONPATH=str(installed))
    assert list(tmp_path.iterdir()) == []
