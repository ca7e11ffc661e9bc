"""The calls to Windows' kernel, with a played library behind real ctypes prototypes: what is passed, and in which order.

The sizes and offsets are those of 64-bit Windows, from the declarations in Microsoft's documentation (winnt.h, tlhelp32.h) and
the alignment rules of its compiler; they are written out here by hand, not computed from our declarations.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playbill.actors.edge.wire import windows_jobs
from playbill.actors.edge.wire.windows_jobs import (
    PROTOTYPES,
    Accounting,
    BasicLimits,
    ExtendedLimits,
    IoCounters,
    Kernel32,
    ThreadEntry,
    kernel32,
)

LAYOUTS: list[tuple[Any, int, dict[str, int]]] = [
    (
        BasicLimits,
        64,
        {
            "PerProcessUserTimeLimit": 0,
            "PerJobUserTimeLimit": 8,
            "LimitFlags": 16,
            "MinimumWorkingSetSize": 24,
            "MaximumWorkingSetSize": 32,
            "ActiveProcessLimit": 40,
            "Affinity": 48,
            "PriorityClass": 56,
            "SchedulingClass": 60,
        },
    ),
    (
        IoCounters,
        48,
        {
            "ReadOperationCount": 0,
            "WriteOperationCount": 8,
            "OtherOperationCount": 16,
            "ReadTransferCount": 24,
            "WriteTransferCount": 32,
            "OtherTransferCount": 40,
        },
    ),
    (
        ExtendedLimits,
        144,
        {
            "BasicLimitInformation": 0,
            "IoInfo": 64,
            "ProcessMemoryLimit": 112,
            "JobMemoryLimit": 120,
            "PeakProcessMemoryUsed": 128,
            "PeakJobMemoryUsed": 136,
        },
    ),
    (
        Accounting,
        48,
        {
            "TotalUserTime": 0,
            "TotalKernelTime": 8,
            "ThisPeriodTotalUserTime": 16,
            "ThisPeriodTotalKernelTime": 24,
            "TotalPageFaultCount": 32,
            "TotalProcesses": 36,
            "ActiveProcesses": 40,
            "TotalTerminatedProcesses": 44,
        },
    ),
    (
        ThreadEntry,
        28,
        {
            "dwSize": 0,
            "cntUsage": 4,
            "th32ThreadID": 8,
            "th32OwnerProcessID": 12,
            "tpBasePri": 16,
            "tpDeltaPri": 20,
            "dwFlags": 24,
        },
    ),
]

DOUBLEWORDS = {
    *("LimitFlags", "ActiveProcessLimit", "PriorityClass", "SchedulingClass"),
    *("TotalPageFaultCount", "TotalProcesses", "ActiveProcesses", "TotalTerminatedProcesses"),
    *LAYOUTS[-1][2],
}
"""The fields of 4 bytes; all others are of 8, or structures."""

JOB = 0x7FFF_0000_0010  # more than 32 bits: a handle that is cut is seen
PROCESS, SNAPSHOT, THREAD = JOB + 0x10, JOB + 0x20, JOB + 0x30
INVALID = 2 ** (8 * ctypes.sizeof(ctypes.c_void_p)) - 1
NAMES = {None: "NULL", JOB: "job", PROCESS: "process", SNAPSHOT: "snapshot", THREAD: "thread", INVALID: "invalid"}


class Library:
    """kernel32.dll, played. Its functions are C functions: what is passed goes through the declared types, both ways.

    Args:
        threads: (owner, thread) for each thread of the system.
        fails: names of functions that fail.
    """

    def __init__(self, threads: tuple[tuple[int, int], ...] = (), fails: tuple[str, ...] = ()) -> None:
        self.calls: list[str] = []
        self.open: list[str] = []
        self.threads = list(threads)
        self.fails = fails
        self.limits: dict[str, int] = {}
        self.active = 0
        for name, (result, *takes) in PROTOTYPES.items():
            setattr(self, name, ctypes.CFUNCTYPE(result, *takes)(self._play(name)))

    def _play(self, name: str) -> Callable[..., int]:
        def play(*args: Any) -> int:
            shown = [NAMES.get(each, each) for each in args]
            if name in ("SetInformationJobObject", "QueryInformationJobObject", "Thread32First", "Thread32Next"):
                shown[2 if name.endswith("Object") else 1] = "&"
            self.calls.append(f"{name}({', '.join(map(str, shown))})")
            if name in self.fails:
                return {"CreateToolhelp32Snapshot": INVALID, "ResumeThread": 0xFFFFFFFF}.get(name, 0)
            return int(getattr(self, f"_{name}")(*args))

        return play

    def _opened(self, handle: int) -> int:
        self.open.append(NAMES[handle])
        return handle

    def _CreateJobObjectW(self, attributes: int | None, name: str | None) -> int:
        return self._opened(JOB)

    def _SetInformationJobObject(self, job: int, kind: int, at: int, size: int) -> int:
        given = ExtendedLimits.from_address(at)
        self.limits["LimitFlags"] = given.BasicLimitInformation.LimitFlags
        self.limits["all other bytes"] = sum(bytes(given)) - sum(
            given.BasicLimitInformation.LimitFlags.to_bytes(4, "little")
        )
        return 1

    def _QueryInformationJobObject(self, job: int, kind: int, at: int, size: int, returned: int | None) -> int:
        counts = Accounting.from_address(at)
        counts.TotalProcesses, counts.ActiveProcesses, counts.TotalTerminatedProcesses = 9, self.active, 5
        return 1

    def _OpenProcess(self, access: int, inherit: int, pid: int) -> int:
        return self._opened(PROCESS)

    def _AssignProcessToJobObject(self, job: int, process: int) -> int:
        return 1

    def _TerminateJobObject(self, job: int, code: int) -> int:
        return 1

    def _CreateToolhelp32Snapshot(self, flags: int, pid: int) -> int:
        self.rest = list(self.threads)
        return self._opened(SNAPSHOT)

    def _Thread32First(self, snapshot: int, at: int) -> int:
        entry = ThreadEntry.from_address(at)
        assert entry.dwSize == 28
        if not self.rest:
            return 0
        entry.th32OwnerProcessID, entry.th32ThreadID = self.rest.pop(0)
        entry.dwSize = 0  # "Thread32Next" is told it again
        return 1

    _Thread32Next = _Thread32First

    def _OpenThread(self, access: int, inherit: int, number: int) -> int:
        return self._opened(THREAD)

    def _ResumeThread(self, thread: int) -> int:
        return 1  # the suspend count it had

    def _CloseHandle(self, handle: int) -> int:
        self.open.remove(NAMES[handle])
        return 1


def over(library: Library) -> Kernel32:
    return Kernel32(library, lambda: PermissionError(13, "Access is denied"))


@pytest.mark.parametrize(("structure", "size", "offsets"), LAYOUTS, ids=lambda each: getattr(each, "__name__", ""))
def test_a_structure_is_laid_out_as_on_64_bit_windows(structure: Any, size: int, offsets: dict[str, int]) -> None:
    assert ctypes.sizeof(ctypes.c_void_p) == 8
    assert ctypes.sizeof(structure) == size
    assert {name: getattr(structure, name).offset for name, _ in structure._fields_} == offsets
    doublewords = {name for name, _ in structure._fields_ if getattr(structure, name).size == 4}
    assert doublewords == DOUBLEWORDS & set(offsets)


def test_the_types_are_as_wide_as_on_windows() -> None:
    widths = {
        name: ctypes.sizeof(getattr(windows_jobs, name)) for name in ("BOOL", "DWORD", "LONG", "HANDLE", "SIZE_T")
    }
    assert widths == {"BOOL": 4, "DWORD": 4, "LONG": 4, "HANDLE": 8, "SIZE_T": 8}


def test_a_job_is_limited_before_anybody_has_it() -> None:
    library = Library()
    assert over(library).create_job() == JOB
    assert library.calls == ["CreateJobObjectW(NULL, NULL)", "SetInformationJobObject(job, 9, &, 144)"]
    # KILL_ON_JOB_CLOSE and nothing else: no breakaway, no limit of time, memory or number.
    assert library.limits == {"LimitFlags": 0x2000, "all other bytes": 0}
    assert library.open == ["job"]


def test_a_process_is_put_into_it_by_a_handle_of_the_moment() -> None:
    library = Library()
    over(library).assign(JOB, 7)
    assert library.calls == [
        "OpenProcess(257, 0, 7)",
        "AssignProcessToJobObject(job, process)",
        "CloseHandle(process)",
    ]
    assert library.open == []


def test_exactly_the_threads_of_the_process_are_resumed() -> None:
    library = Library(threads=((4, 40), (7, 70), (9, 90), (7, 71)))
    over(library).resume(7)
    assert [call for call in library.calls if not call.startswith("Thread32")] == [
        "CreateToolhelp32Snapshot(4, 0)",
        "CloseHandle(snapshot)",
        "OpenThread(2, 0, 70)",
        "ResumeThread(thread)",
        "CloseHandle(thread)",
        "OpenThread(2, 0, 71)",
        "ResumeThread(thread)",
        "CloseHandle(thread)",
    ]
    assert library.open == []


def test_a_process_without_a_thread_is_an_error() -> None:
    library = Library(threads=((4, 40),))
    with pytest.raises(ProcessLookupError, match="process 7 has no thread"):
        over(library).resume(7)
    assert library.open == []


def test_a_job_is_counted_ended_and_closed() -> None:
    library = Library()
    kernel = over(library)
    library.active = 3
    job = kernel.create_job()
    assert kernel.active(job) == 3
    kernel.terminate(job)
    kernel.close(job)
    assert library.calls[2:] == [
        "QueryInformationJobObject(job, 1, &, 48, NULL)",
        "TerminateJobObject(job, 1)",
        "CloseHandle(job)",
    ]
    assert library.open == []


@pytest.mark.parametrize(
    "name", [name for name in PROTOTYPES if name not in ("CloseHandle", "Thread32First", "Thread32Next")]
)
def test_what_fails_is_named_and_leaves_no_handle(name: str) -> None:
    library = Library(threads=((7, 70),), fails=(name,))
    kernel = over(library)

    def everything() -> None:
        job = kernel.create_job()
        try:
            kernel.assign(job, 7)
            kernel.resume(7)
            kernel.active(job)
            kernel.terminate(job)
        finally:
            kernel.close(job)

    with pytest.raises(PermissionError) as caught:
        everything()
    assert caught.value.strerror == f"{name}: Access is denied"
    assert library.open == []


def test_elsewhere_there_is_no_such_kernel() -> None:
    with pytest.raises(OSError, match="a part of Windows"):
        kernel32()


def test_every_function_that_is_called_is_declared() -> None:
    """An undeclared one would take and return 32 bits."""
    source = Path(windows_jobs.__file__).read_text("utf-8")
    body = source[source.index("class Kernel32") :]
    assert [name for name in PROTOTYPES if f'"{name}"' not in body] == []
    assert "self._library" not in body
