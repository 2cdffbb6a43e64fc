# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""No hart goes blind in silence: not by records that the kernel tells to several listeners, and not when
its events die."""
import ctypes
import os
import platform
import struct
import threading

from machine import Folder, Skip, need_root
from running import spinners
from service import Service, wait_until

SECONDS = 40

# Source: arch/x86/entry/syscalls/syscall_64.tbl and include/uapi/asm-generic/unistd.h of Linux 6.12.
X86 = platform.machine() == "x86_64"
BPF, PERF_EVENT_OPEN = (321, 298) if X86 else (280, 241)
PIDFD_OPEN, PIDFD_GETFD = 434, 438

libc = ctypes.CDLL(None, use_errno=True)


def syscall(number, *arguments):
    result = libc.syscall(ctypes.c_long(number), *arguments)
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
    return result


# --- others who listen to what the kernel loads ---------------------------------------------------------

def listen(cpu):
    """A dummy event with attr.ksymbol, as every profiler of the whole system has one."""
    attr = bytearray(136)
    # type PERF_TYPE_SOFTWARE, size, config PERF_COUNT_SW_DUMMY; sample_type IP, TID, TIME, CPU, IDENTIFIER
    struct.pack_into("<IIQQQQ", attr, 0, 1, len(attr), 9, 1, 1 | 2 | 4 | 1 << 7 | 1 << 16, 0)
    # Source: struct perf_event_attr: bit 18 sample_id_all, 29 ksymbol
    struct.pack_into("<Q", attr, 40, 1 << 18 | 1 << 29)
    buffer = (ctypes.c_char * len(attr)).from_buffer(attr)
    return syscall(PERF_EVENT_OPEN, ctypes.byref(buffer), -1, cpu, -1, ctypes.c_ulong(8))


def load_program():
    """The shortest BPF program there is, and gone again: two KSYMBOL records."""
    # Source: struct bpf_insn: mov r0, 0; exit. union bpf_attr of BPF_PROG_LOAD, PROG_TYPE_SOCKET_FILTER.
    code = ctypes.create_string_buffer(bytes([0xb7, 0, 0, 0, 0, 0, 0, 0, 0x95, 0, 0, 0, 0, 0, 0, 0]), 16)
    licence = ctypes.create_string_buffer(b"GPL")
    attr = bytearray(128)
    struct.pack_into("<IIQQIIQII16s", attr, 0, 1, 2, ctypes.addressof(code), ctypes.addressof(licence),
                     0, 0, 0, 0, 0, b"blind")
    buffer = (ctypes.c_char * len(attr)).from_buffer(attr)
    os.close(syscall(BPF, 5, ctypes.byref(buffer), len(attr)))


def load_on(cpu, times):
    os.sched_setaffinity(0, {cpu})  # of this thread
    for _ in range(times):
        load_program()


def load_everywhere(times):
    threads = [threading.Thread(target=load_on, args=(cpu, times))
               for cpu in sorted(os.sched_getaffinity(0))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def losses(status):
    return {row["cause"]: row["count"] for row in status["loss"]}


def trouble(service):
    return service.ask("status")["rate"][0]["trouble"]


def samples_by_hart(service):
    return {row["hart"]: row["samples"] for row in service.ask("hotspots", "--by", "hart")["rows"]}


def test_what_others_hear_of_the_kernels_code_blinds_no_hart(build):
    need_root()
    try:
        load_program()
    except OSError as e:
        raise Skip(f"no BPF program loads here: {e}")
    harts = sorted(os.sched_getaffinity(0))
    with Folder() as folder, Service(build, folder, flush="1s") as service, \
            spinners(build, len(harts)):
        # later listeners are served first, so the service's records count their bytes, too
        others = [listen(cpu) for cpu in harts for _ in range(3)]
        try:
            for _ in range(4):
                load_everywhere(500)
        finally:
            for fd in others:
                os.close(fd)
        lost = losses(service.ask("status"))
        assert "record of a closed event" not in lost and "malformed record" not in lost, lost
        assert trouble(service) is None

        # and all of them go on bringing samples
        def taken():
            return next(row["taken"] for row in service.ask("status")["account"])
        before = taken()
        wait_until("samples", lambda: taken() > before + 100)
        assert "busy second without samples" not in losses(service.ask("status"))


# --- events that die ------------------------------------------------------------------------------------

def events_that_count(pid):
    """Descriptors of ours for a daemon's perf events that have counted something: not its side band."""
    pidfd = syscall(PIDFD_OPEN, pid, 0)
    found = []
    for name in os.listdir(f"/proc/{pid}/fd"):
        try:
            if os.readlink(f"/proc/{pid}/fd/{name}") != "anon_inode:[perf_event]":
                continue
            fd = syscall(PIDFD_GETFD, pidfd, int(name), 0)
        except FileNotFoundError:
            continue
        except OSError as e:
            raise Skip(f"no descriptor of another process is to be had: {e}")
        value = os.read(fd, 4096)
        if struct.unpack_from("<Q", value)[0]:
            found.append(fd)
        else:
            os.close(fd)
    os.close(pidfd)
    return found


def test_harts_whose_events_died_are_named_and_mended(build):
    need_root()
    harts = sorted(os.sched_getaffinity(0))
    with Folder() as folder, Service(build, folder, flush="1s") as service, \
            spinners(build, len(harts)):
        wait_until("samples of all harts", lambda: len(samples_by_hart(service)) >= len(harts))
        for fd in events_that_count(service.process.pid):
            libc.ioctl(fd, 0x2401, 0)  # PERF_EVENT_IOC_DISABLE
            os.close(fd)
        said = wait_until("the trouble is named", lambda: trouble(service))
        assert "busy for" in said and "delivered no samples" in said, said
        wait_until("all is well again", lambda: trouble(service) is None)
        lost = losses(service.ask("status"))
        assert lost["busy second without samples"] >= 1, lost
        assert "delivered no samples" in service.said() and \
            "all busy harts deliver samples again" in service.said(), service.said()
        # answers of that time say so too
        found = wait_until("it is stored", lambda: service.ask("hotspots")["provenance"]["lost"]
                           .get("busy second without samples"))
        assert found >= 1
        text = service.ctl("hotspots").stdout
        assert "besides: " in text and "busy second without samples (" in text, text
