/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* The kernel's interface for daemon/pmu
 *
 * A table of the system calls of daemon/pmu. `kernel_real` makes them; the tests use a kernel that
 * answers from data (tests/platforms), so that the code is also tested with boards that are not at
 * hand. daemon/pmu calls the kernel only through this table.
 */

#include <linux/perf_event.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/kernel/exec_bpf.h"
#include "daemon/kernel/programs_bpf.h"
#include "daemon/kernel/switch_bpf.h"
#include "daemon/kernel/task_work.h"

/* Source: struct riscv_hwprobe in arch/riscv/include/uapi/asm/hwprobe.h of Linux 6.12. */
struct kernel_hwprobe {
	int64_t key;
	uint64_t value;
};
_Static_assert(sizeof(struct kernel_hwprobe) == 16, "as the kernel has it");

/* Times between two readings of the clock that were longer than usual: something took the hart. CLOCK_MONOTONIC, in
 * order. The reading ends early if there are too many. */
#define KERNEL_GAPS_MAX 128
struct kernel_gaps {
	uint64_t begin_ns, end_ns;
	uint64_t usual_ns; /* between two readings: the median */
	unsigned n;
	struct {
		uint64_t from_ns, to_ns;
	} gap[KERNEL_GAPS_MAX];
};

struct kernel {
	/* perf_event_open(2); returns a descriptor or -errno. Source: man perf_event_open. */
	int (*event_open)(void *u, struct perf_event_attr *attr, pid_t pid, int hart, int group_fd,
		unsigned long flags);
	/* ioctl(2) on an event; arg is a value or a pointer, depending on the request. 0 or
	 * -errno. */
	int (*event_ioctl)(void *u, int fd, unsigned long request, uintptr_t arg);
	/* read(2) on an event; bytes read or -errno. */
	ssize_t (*event_read)(void *u, int fd, void *buffer, size_t n);
	/* Map a ring of one control page and data_bytes (a power of two). NULL with
	 * *ret_error set. */
	void *(*ring_map)(void *u, int fd, size_t data_bytes, int *ret_error);
	void (*ring_unmap)(void *u, void *map, size_t data_bytes);
	void (*event_close)(void *u, int fd);
	/* CLOCK_MONOTONIC in ns. */
	uint64_t (*now_ns)(void *u);
	/* Timer ticks per second and hart (CONFIG_HZ); 0, or the function NULL: unknown. */
	uint32_t (*tick_hz)(void *u);
	/* Locked memory that this process may have, for rings beyond kernel.perf_event_mlock_kb, in bytes; UINT64_MAX,
	 * or the function NULL: no limit. */
	uint64_t (*locked_bytes)(void *u);
	/* Keep the calling thread busy on that hart for about ns, so that a probe can fire. -errno
	 * if the thread cannot be put there. The old affinity is restored. */
	int (*spin)(void *u, int hart, uint64_t ns);
	/* Read the clock again and again on that hart, for about ns. NULL in tests that need none. -errno if the thread
	 * cannot be put there. */
	int (*clock_gaps)(void *u, int hart, uint64_t ns, struct kernel_gaps *ret_gaps);
	/* About n context switches on that hart, between two threads of ours. *ret_ns: the CPU time
	 * of these two. NULL in tests that need none. 0 or -errno. */
	int (*switch_work)(void *u, int hart, unsigned n, uint64_t *ret_ns);
	/* Do work that the side band reports (forks, execs, mappings) n times on that hart, as
	 * task_work_do does. NULL in tests that need none. 0 or -errno. */
	int (*task_work)(void *u, int hart, enum task_work what, unsigned n, uint64_t *ret_ns);
	/* Read a whole text file in /proc or /sys, NUL-terminated; bytes or -errno, -E2BIG if it
	 * exceeds size - 1. */
	ssize_t (*read_text)(void *u, const char *path, char *buffer, size_t size);
	/* List a folder in /sys, one call of `each` per name. 0 or -errno. */
	int (*list)(void *u, const char *path, void (*each)(void *userdata, const char *name),
		void *userdata);
	/* riscv_hwprobe(2) for that hart alone: pairs of a key, and its value as ret; unknown keys
	 * become -1. NULL in tests that need none. 0, or -errno: -ENOSYS on other architectures and
	 * before Linux 6.4. */
	int (*hwprobe)(void *u, int hart, struct kernel_hwprobe *pairs, size_t n);
	/* The BPF programs that read groups at each switch, as in switch_bpf.h. All NULL: none. */
	int (*switch_new)(void *u, enum switch_way way, int n_harts, struct switch_bpf **ret_bpf,
		int *ret_error);
	int (*switch_watch)(void *u, struct switch_bpf *b, const struct switch_group *g);
	int (*switch_watched)(void *u, const struct switch_bpf *b, int hart);
	void (*switch_forget)(void *u, struct switch_bpf *b, int hart, int n_kept);
	void (*switch_free)(void *u, struct switch_bpf *b);
	/* The BPF program on execs, as in exec_bpf.h. All NULL: none. */
	int (*exec_new)(void *u, int n_harts, struct exec_bpf **ret_bpf, int *ret_error);
	int (*exec_watch)(void *u, struct exec_bpf *b, int hart, int output_fd);
	void (*exec_forget)(void *u, struct exec_bpf *b, int hart);
	void (*exec_free)(void *u, struct exec_bpf *b);
	/* The BPF programs that are there now, as programs_bpf_list. NULL: not known. */
	int (*list_programs)(void *u, void (*each)(void *userdata, const struct kernel_program *p),
		void *userdata);
	void *userdata;
};

/* The running kernel. */
extern const struct kernel kernel_real;

/* The id of this boot, a UUID as text; "" if it cannot be read. */
#define KERNEL_BOOT_ID_BYTES 40
void kernel_boot_id(const struct kernel *k, char ret_id[static KERNEL_BOOT_ID_BYTES]);
