"""The pytest plugin as its users have it: in a pytest of its own, by its entry point.

Determinism contract: every inner test is in virtual time, or ends by what it is told and not by a clock.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from importlib.metadata import distributions
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
WITHOUT = ("-p", "no:cacheprovider", "-p", "no:hypothesispytest")
NO_TRIO = ("-p", "no:trio")


def run(pytester: pytest.Pytester, source: str, *args: str, ini: str = "") -> pytest.RunResult:
    """Run a test file; warnings are errors."""
    pytester.makepyfile(source)
    return run_files(pytester, *args, ini=ini)


def run_files(pytester: pytest.Pytester, *args: str, ini: str = "") -> pytest.RunResult:
    """Run the test files that are there."""
    pytester.makeini(f"[pytest]\nfilterwarnings = error\n{ini}\n")
    # pytest-trio imports hypothesis where there is one, which takes longer than all the rest.
    (pytester.path / "hypothesis.py").write_text("raise ImportError('not here')\n")
    return pytester.runpytest_subprocess("-q", "--strict-markers", *WITHOUT, *args)


def test_the_plugin_is_registered_where_playbill_is_installed() -> None:
    # Not by `entry_points()`, which looks at one distribution of a name only: in a checkout that may be an old build's.
    plugins = {
        each.value for found in distributions(name="playbill") for each in found.entry_points.select(group="pytest11")
    }
    assert plugins == {"playbill.actors.testing.plugin"}, "install the checkout again: pip install -e ."


def test_loading_the_plugin_imports_nothing_that_a_fixture_needs() -> None:
    code = (
        "import sys, pytest; before = set(sys.modules)\n"
        "import playbill.actors.testing.plugin\n"
        "new = {n for n in sys.modules if n not in before and n.split('.')[0] not in sys.stdlib_module_names}\n"
        "print(*sorted(n for n in new if not n.startswith('__editable__')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [
        "playbill",
        "playbill.actors",
        "playbill.actors.testing",
        "playbill.actors.testing.plugin",
    ]


def test_a_run_that_uses_no_fixture_never_imports_the_rest(pytester: pytest.Pytester) -> None:
    source = """
        import sys

        def test_it(pytestconfig):
            assert pytestconfig.pluginmanager.hasplugin("playbill")
            loaded = [n for n in sys.modules if n.split(".")[0] in ("playbill", "trio", "mcp", "mcp_types", "attr")]
            assert sorted(loaded) == ["playbill", "playbill.actors", "playbill.actors.testing",
                                      "playbill.actors.testing.plugin"]
    """
    # Another plugin that is installed here might import trio itself.
    others = ("-p", "no:anyio")
    run(pytester, source, *NO_TRIO, *others).assert_outcomes(passed=1)


MARKED = """
    import pytest
    import trio
    from playbill.actors import ServerDied, ServerUnavailable
    from playbill.actors.testing import Fault, Script

    pytestmark = pytest.mark.playbill_servers(search=Script(("find",), connect_delay=1, call_delay=5), notes=["read"])

    MARK
    async def test_with_nursery_and_virtual_time(playbill_servers, playbill_host, nursery, autojump_clock):
        assert [s.phase for s in playbill_host.snapshot().model.servers] == ["starting"] * 2
        assert not (await playbill_host.ready(timeout=10)).missing
        assert trio.current_time() == pytest.approx(1, abs=0.2)
        began = trio.current_time()
        playbill_servers.fail("search", "call_reply", "crash")
        answers = []

        async def neighbour():
            answers.append(await playbill_host.call_tool("notes", "read"))

        nursery.start_soon(neighbour)
        with pytest.raises(ServerDied, match="killed by signal 9"):
            await playbill_host.call_tool("search", "find")
        assert trio.current_time() == pytest.approx(began + 5)
        assert answers == [{"tool": "read", "arguments": {}}]
        assert playbill_servers.waiting == ()

    MARK
    @pytest.mark.playbill_servers(search=["other"])
    async def test_the_nearest_mark_decides(playbill_servers, playbill_host, autojump_clock):
        await playbill_host.ready(timeout=10)
        assert await playbill_host.call_tool("search", "other") == {"tool": "other", "arguments": {}}
        playbill_servers.scripted.scripts["notes"].refuse = "changed by this test only"

    MARK
    async def test_what_another_test_changed_is_as_it_was(playbill_servers, playbill_host, autojump_clock):
        assert playbill_servers.scripted.scripts["notes"].refuse is None
        playbill_servers.scripted.scripts["search"].connect_delay = 99

    MARK
    async def test_and_so_is_a_script_of_the_mark(playbill_servers, playbill_host, autojump_clock):
        assert playbill_servers.scripted.scripts["search"].connect_delay == 1

    @pytest.fixture
    def failing(playbill_servers):
        playbill_servers.plan([Fault(0.0, "search", "spawn", "crash"), Fault(3.0, "notes", "idle", "crash")])

    MARK
    async def test_faults_told_before_the_host_is_open(failing, playbill_servers, playbill_host, autojump_clock):
        await playbill_host.ready(require=["notes"], timeout=2)
        await trio.sleep_until(4)
        await playbill_host.ready(timeout=30)
        assert playbill_servers.scripted.spawns == {"search": 1, "notes": 2}
        assert playbill_servers.waiting == ()

    MARK
    async def test_in_real_time(playbill_servers, playbill_host):
        playbill_servers.fail("notes", "call", "crash")
        await playbill_host.ready(require=["notes"], timeout=10)
        with pytest.raises(ServerDied):
            await playbill_host.call_tool("notes", "read")

    def test_a_sync_test_runs_its_own_trio(playbill_servers):
        async def main():
            async with playbill_servers.open() as host:
                await host.ready(require=["notes"], timeout=10)
                return await host.call_tool("notes", "read")

        assert trio.run(main) == {"tool": "read", "arguments": {}}
"""


def test_everything_works_by_marker_without_trio_mode(pytester: pytest.Pytester) -> None:
    run(pytester, MARKED.replace("MARK\n", "@pytest.mark.trio\n")).assert_outcomes(passed=7)


def test_everything_works_in_trio_mode(pytester: pytest.Pytester) -> None:
    run(pytester, MARKED.replace("    MARK\n", ""), ini="trio_mode = true").assert_outcomes(passed=7)


USES_HOST = """
    import pytest

    @pytest.mark.playbill_servers(search=["find"])
    async def test_it(playbill_host):
        pass
"""


def test_without_pytest_trio_one_line_says_what_to_install(pytester: pytest.Pytester) -> None:
    result = run(pytester, USES_HOST, *NO_TRIO)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["playbill_host needs pytest-trio: pip install pytest-trio, or open it yourself: *"])
    assert "Traceback" not in result.stdout.str()


def test_a_test_that_trio_does_not_run_is_told_how_to_be(pytester: pytest.Pytester) -> None:
    result = run(pytester, USES_HOST + "\n    def test_sync(playbill_host):\n        pass\n")
    result.assert_outcomes(errors=2)
    result.stdout.fnmatch_lines(["playbill_host needs an async test that pytest-trio runs: mark it @pytest.mark.trio*"])


def test_a_name_that_is_wrong_fails_the_test_with_the_nearest_one(pytester: pytest.Pytester) -> None:
    source = """
        import pytest

        @pytest.mark.trio
        @pytest.mark.playbill_servers(search=["find"])
        async def test_it(playbill_servers, playbill_host, autojump_clock):
            await playbill_host.ready(timeout=5)
            playbill_servers.fail("serch", "call", "crash")
    """
    result = run(pytester, source)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*ValueError: no server named 'serch' is scripted (did you mean 'search'?)"])


def test_the_example_runs_with_what_the_wheel_ships(pytester: pytest.Pytester) -> None:
    for name in ("agent_loop.py", "test_agent_loop.py"):
        shutil.copy(ROOT / "examples" / name, pytester.path / name)
    run_files(pytester).assert_outcomes(passed=3)


def test_what_the_document_shows_of_the_example_is_in_it() -> None:
    text = (ROOT / "docs" / "testing.md").read_text("utf-8")
    _, *shown = text.split("<!-- from: ")
    assert shown
    for part in shown:
        name, _, rest = part.partition(" -->\n```py\n")
        assert rest.partition("```\n")[0] in (ROOT / name).read_text("utf-8")
