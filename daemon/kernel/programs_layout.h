/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once

/* The entry that the BPF program which lists BPF programs writes for each of them. */

#include <linux/types.h>

#define PROGRAM_NAME_BYTES 192 /* as KERNEL_CODE_NAME_BYTES */

struct program_told {
	__u64 start, end;              /* of its code */
	__u64 loaded_ns;               /* CLOCK_BOOTTIME */
	char name[PROGRAM_NAME_BYTES]; /* as in /proc/kallsyms, NUL-terminated */
};
