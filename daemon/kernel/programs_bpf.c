/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

#include "daemon/kernel/programs_bpf.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "daemon/kernel/load_child.h"
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

/* The list, which the kernel makes when it is read. */
static int load(const void *userdata, int ret_fd[])
{
	(void)userdata;
	bpf_be_quiet();
	struct programs_bpf *p = programs_bpf__open_and_load();
	if (!p)
		return -errno;
	int r = programs_bpf__attach(p);
	if (r == 0)
		r = bpf_iter_create(bpf_link__fd(p->links.list));
	ret_fd[0] = r;
	return r < 0 ? r : 0;
}

int programs_bpf_list(void (*each)(void *userdata, const struct kernel_program *p), void *userdata)
{
	int fd;
	int r = load_in_child(load, NULL, 1, &fd);
	if (r < 0)
		return r;
	FILE *from = fdopen(fd, "r");
	if (!from) {
		r = -errno;
		close(fd);
		return r;
	}
	tell(from, clock_ns(CLOCK_BOOTTIME) - clock_ns(CLOCK_MONOTONIC), each, userdata);
	fclose(from);
	return 0;
}
