"""The whole run, in order, on a machine that has nothing else to do: what `benchmarks/results/` holds and `report.py` shows.

    python benchmarks/all.py [--only NAME,…] [--where .venv-peers] [--quick --into FOLDER]

About an hour and a quarter. Each runner writes its JSON as it goes; started again, those that are whole are left out, and those
that were stopped go on where they were. ``--anew`` begins all anew.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path
from time import perf_counter

from record import RESULTS, Record

HERE = Path(__file__).parent

RUNS: dict[str, tuple[str, list[str], list[str]]] = {
    "startup": ("startup.py", [], ["--rounds", "1", "--servers", "1,4"]),
    "call": ("call.py", [], ["--blocks", "2", "--calls", "40"]),
    "scaling": ("scaling.py", [], ["--quick"]),
    "imports": ("imports.py", [], []),
    "peers": ("peers/run.py", ["--where"], ["--quick"]),
    "peers_isolation": ("peers/isolation.py", ["--where"], ["--quick"]),
    "isolation": ("isolation.py", [], ["--quick"]),
    "isolation_exact": ("isolation_exact.py", [], ["--servers", "2"]),
}
"""The name of the results → the runner, what else it is told, and what makes it quick. Short ones first."""


PRINTED = {"imports"}
"""Those that write no JSON: what they print is kept."""


def printed(command: list[str], file: Path) -> int:
    """Run one of these; its exit code."""
    ran = subprocess.run(command, check=False, stdout=subprocess.PIPE, text=True)
    print(ran.stdout, flush=True)
    if ran.returncode == 0:
        record = Record(None, {})
        record.file, record.data["text"] = file, ran.stdout
        record.save()
    return ran.returncode


def main() -> None:
    """Run all, say how long each took, and which failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(RUNS), help=f"of {', '.join(RUNS)}")
    parser.add_argument("--where", type=Path, default=HERE.parent / ".venv-peers", help="the peers' environments")
    parser.add_argument("--into", type=Path, default=RESULTS, help="the folder of the results")
    parser.add_argument("--anew", action="store_true", help="measure again what is there")
    parser.add_argument("--quick", action="store_true", help="little of each: does it run")
    given = parser.parse_args()
    names = given.only.split(",")
    if unknown := [name for name in names if name not in RUNS]:
        parser.error(f"no such runner: {', '.join(unknown)}")
    given.into.mkdir(parents=True, exist_ok=True)
    begun, took = perf_counter(), {}
    for name in names:
        script, more, quick = RUNS[name]
        file, done = given.into / f"{name}.json", given.into / f".{name}{'.quick' * given.quick}.done"
        if not (HERE / script).exists():
            print(f"\n== {name}: there is no {script}", flush=True)
            continue
        if given.anew:
            file.unlink(missing_ok=True)
            done.unlink(missing_ok=True)
        if done.exists() and file.exists():
            print(f"\n== {name}: is there", flush=True)
            continue
        command = [sys.executable, str(HERE / script), "--json", str(file)]
        command += [each for option in more for each in (option, str(given.where))] + quick * given.quick
        print(f"\n== {name}: {' '.join(command[1:])}", flush=True)
        start = perf_counter()
        code = printed(command[:2], file) if name in PRINTED else subprocess.run(command, check=False).returncode
        took[name] = f"{(perf_counter() - start) / 60:.1f} minutes" + (f", exit code {code}" if code else "")
        if code == 0:
            done.touch()
        print(f"== {name}: {took[name]}", flush=True)
    print("\n" + "\n".join(f"{name:<18}{words}" for name, words in took.items()))
    print(f"{'all':<18}{(perf_counter() - begun) / 60:.1f} minutes; now: python benchmarks/report.py")
    sys.exit(any("exit code" in words for words in took.values()))


if __name__ == "__main__":
    main()
