/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

#include "daemon/kernel/programs_bpf.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "daemon/kernel/programs.skel.h"
#include "daemon/kernel/programs_layout.h"
#include "daemon/kernel/quiet_bpf.h"
#include "proto/base/clock.h"
#include "proto/base/memory.h"

static void tell(FILE *from, uint64_t suspended_ns,
	void (*each)(void *userdata, const struct kernel_program *p), void *userdata)
{
	struct program_told t;

	while (fread(&t, sizeof(t), 1, from) == 1) {
		t.name[sizeof(t.name) - 1] = '\0';
		each(userdata,
			&(struct kernel_program){
				.start = t.start,
				.bytes = t.end - t.start,
				.loaded_ns =
					t.loaded_ns > suspended_ns ? t.loaded_ns - suspended_ns : 0,
				.name = t.name,
			});
	}
}

int programs_bpf_list(void (*each)(void *userdata, const struct kernel_program *p), void *userdata)
{
	bpf_be_quiet();
	struct programs_bpf *p = programs_bpf__open_and_load();
	if (!p)
		return -errno;
	int r = programs_bpf__attach(p);
	int fd = r < 0 ? r : bpf_iter_create(bpf_link__fd(p->links.list));
	FILE *from = fd < 0 ? NULL : fdopen(fd, "r");

	r = fd < 0 ? fd : from ? 0 : -errno;
	if (from) {
		tell(from, clock_ns(CLOCK_BOOTTIME) - clock_ns(CLOCK_MONOTONIC), each, userdata);
		fclose(from);
	} else if (fd >= 0) {
		close(fd);
	}
	programs_bpf__destroy(p);
	return r;
}
