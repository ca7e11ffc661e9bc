"""The part of the Windows kernel that owns processes: job objects, and the start of a suspended process (kernel32 by ctypes).

Written to Microsoft's documentation (learn.microsoft.com/windows/win32: "Job Objects", "Nested Jobs", "Traversing the Thread
List"); not run by us. The types have the sizes they have on Windows wherever this file is imported, so that a test on any
system compares them with the documented ones, and plays a kernel behind the real calls.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from ctypes import Structure, byref, c_int32, c_int64, c_size_t, c_uint32, c_uint64, c_void_p, c_wchar_p, sizeof
from typing import Any

__all__ = ["Kernel32", "kernel32"]

BOOL, DWORD, LONG, LARGE_INTEGER, ULONGLONG, SIZE_T, HANDLE = (
    c_int32,
    c_uint32,
    c_int32,
    c_int64,
    c_uint64,
    c_size_t,
    c_void_p,
)

JOB_OBJECT_BASIC_ACCOUNTING_INFORMATION = 1
JOB_OBJECT_EXTENDED_LIMIT_INFORMATION = 9
JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE = 0x2000
PROCESS_TERMINATE = 0x0001
PROCESS_SET_QUOTA = 0x0100
THREAD_SUSPEND_RESUME = 0x0002
TH32CS_SNAPTHREAD = 0x0004
INVALID_HANDLE_VALUE = c_void_p(-1).value
RESUME_FAILED = 0xFFFFFFFF
KILLED = 1
"""The exit code of what is killed with its job; it is TerminateProcess's in Python."""


class BasicLimits(Structure):
    """``JOBOBJECT_BASIC_LIMIT_INFORMATION``."""

    _fields_ = (
        ("PerProcessUserTimeLimit", LARGE_INTEGER),
        ("PerJobUserTimeLimit", LARGE_INTEGER),
        ("LimitFlags", DWORD),
        ("MinimumWorkingSetSize", SIZE_T),
        ("MaximumWorkingSetSize", SIZE_T),
        ("ActiveProcessLimit", DWORD),
        ("Affinity", SIZE_T),  # ULONG_PTR
        ("PriorityClass", DWORD),
        ("SchedulingClass", DWORD),
    )


class IoCounters(Structure):
    """``IO_COUNTERS``."""

    _fields_ = tuple(
        (f"{what}{unit}Count", ULONGLONG) for unit in ("Operation", "Transfer") for what in ("Read", "Write", "Other")
    )


class ExtendedLimits(Structure):
    """``JOBOBJECT_EXTENDED_LIMIT_INFORMATION``."""

    _fields_ = (
        ("BasicLimitInformation", BasicLimits),
        ("IoInfo", IoCounters),
        ("ProcessMemoryLimit", SIZE_T),
        ("JobMemoryLimit", SIZE_T),
        ("PeakProcessMemoryUsed", SIZE_T),
        ("PeakJobMemoryUsed", SIZE_T),
    )


class Accounting(Structure):
    """``JOBOBJECT_BASIC_ACCOUNTING_INFORMATION``."""

    _fields_ = (
        ("TotalUserTime", LARGE_INTEGER),
        ("TotalKernelTime", LARGE_INTEGER),
        ("ThisPeriodTotalUserTime", LARGE_INTEGER),
        ("ThisPeriodTotalKernelTime", LARGE_INTEGER),
        ("TotalPageFaultCount", DWORD),
        ("TotalProcesses", DWORD),
        ("ActiveProcesses", DWORD),
        ("TotalTerminatedProcesses", DWORD),
    )


class ThreadEntry(Structure):
    """``THREADENTRY32``."""

    _fields_ = (
        ("dwSize", DWORD),
        ("cntUsage", DWORD),
        ("th32ThreadID", DWORD),
        ("th32OwnerProcessID", DWORD),
        ("tpBasePri", LONG),
        ("tpDeltaPri", LONG),
        ("dwFlags", DWORD),
    )


PROTOTYPES: dict[str, tuple[Any, ...]] = {
    "CreateJobObjectW": (HANDLE, c_void_p, c_wchar_p),
    "SetInformationJobObject": (BOOL, HANDLE, c_int32, c_void_p, DWORD),
    "QueryInformationJobObject": (BOOL, HANDLE, c_int32, c_void_p, DWORD, c_void_p),
    "OpenProcess": (HANDLE, DWORD, BOOL, DWORD),
    "AssignProcessToJobObject": (BOOL, HANDLE, HANDLE),
    "TerminateJobObject": (BOOL, HANDLE, c_uint32),
    "CreateToolhelp32Snapshot": (HANDLE, DWORD, DWORD),
    "Thread32First": (BOOL, HANDLE, c_void_p),
    "Thread32Next": (BOOL, HANDLE, c_void_p),
    "OpenThread": (HANDLE, DWORD, BOOL, DWORD),
    "ResumeThread": (DWORD, HANDLE),
    "CloseHandle": (BOOL, HANDLE),
}
"""What a function returns, and what it takes. Undeclared, ctypes would cut handles to 32 bits."""


class Kernel32:
    """Job objects and suspended processes. Every method raises `OSError` when the system refuses.

    Args:
        library: has the functions of `PROTOTYPES`.
        failure: the error of the last call that failed.
    """

    def __init__(self, library: Any, failure: Callable[[], OSError]) -> None:
        self._failure = failure
        self._functions: dict[str, Any] = {}
        for name, (result, *takes) in PROTOTYPES.items():
            function = getattr(library, name)
            function.restype, function.argtypes = result, takes
            self._functions[name] = function

    def create_job(self) -> int:
        """A job whose processes all end when its handle is closed, by us or by the end of this process."""
        job: int = self._call("CreateJobObjectW", None, None)  # no attributes: the handle cannot be inherited
        limits = ExtendedLimits()
        # Neither of the breakaway limits: CREATE_BREAKAWAY_FROM_JOB is refused to whatever runs in it.
        limits.BasicLimitInformation.LimitFlags = JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE
        try:
            self._call(
                "SetInformationJobObject", job, JOB_OBJECT_EXTENDED_LIMIT_INFORMATION, byref(limits), sizeof(limits)
            )
        except OSError:
            self.close(job)
            raise
        return job

    def assign(self, job: int, pid: int) -> None:
        """Put a process into a job. Its id must be held: by a handle of whoever started it."""
        process = self._call("OpenProcess", PROCESS_SET_QUOTA | PROCESS_TERMINATE, False, pid)
        try:
            self._call("AssignProcessToJobObject", job, process)
        finally:
            self.close(process)

    def resume(self, pid: int) -> None:
        """Let a process run that was started suspended. Takes some milliseconds: all threads there are must be looked at."""
        threads = self._threads(pid)
        if not threads:
            raise ProcessLookupError(f"process {pid} has no thread")
        for number in threads:  # one, unless something (a virus scanner) put another one into it; that one runs already
            thread = self._call("OpenThread", THREAD_SUSPEND_RESUME, False, number)
            try:
                if self._functions["ResumeThread"](thread) == RESUME_FAILED:
                    raise self._error("ResumeThread")
            finally:
                self.close(thread)

    def terminate(self, job: int) -> None:
        """Kill everything in a job."""
        self._call("TerminateJobObject", job, KILLED)

    def active(self, job: int) -> int:
        """How many processes live in a job."""
        counts = Accounting()
        self._call(
            "QueryInformationJobObject",
            job,
            JOB_OBJECT_BASIC_ACCOUNTING_INFORMATION,
            byref(counts),
            sizeof(counts),
            None,
        )
        return int(counts.ActiveProcesses)

    def close(self, handle: int) -> None:
        """Close a handle; with a job's last one, all that is in it ends."""
        self._call("CloseHandle", handle)

    def _threads(self, pid: int) -> list[int]:
        snapshot = self._call("CreateToolhelp32Snapshot", TH32CS_SNAPTHREAD, 0)
        if snapshot == INVALID_HANDLE_VALUE:
            raise self._error("CreateToolhelp32Snapshot")
        found = []
        try:
            entry = ThreadEntry(dwSize=sizeof(ThreadEntry))
            more = self._functions["Thread32First"](snapshot, byref(entry))
            while more:
                if entry.th32OwnerProcessID == pid:
                    found.append(int(entry.th32ThreadID))
                entry.dwSize = sizeof(ThreadEntry)
                more = self._functions["Thread32Next"](snapshot, byref(entry))
        finally:
            self.close(snapshot)
        return found

    def _call(self, name: str, *args: Any) -> Any:
        """Call a function that returns 0 or NULL when it fails."""
        result = self._functions[name](*args)
        if not result:
            raise self._error(name)
        return result

    def _error(self, name: str) -> OSError:
        error = self._failure()
        return type(error)(error.errno, f"{name}: {error.strerror or error}")


def kernel32() -> Kernel32:
    """The real one.

    Raises:
        OSError: this is not Windows.
    """
    if sys.platform != "win32":
        raise OSError("kernel32 is a part of Windows")
    return Kernel32(ctypes.WinDLL("kernel32", use_last_error=True), lambda: ctypes.WinError(ctypes.get_last_error()))
