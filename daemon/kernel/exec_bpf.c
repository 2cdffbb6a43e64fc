/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* A child loads the program and passes its descriptors, which are all that stays here (load_child.h). */

#include "daemon/kernel/exec_bpf.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/kernel/exec.skel.h"
#include "daemon/kernel/load_child.h"
#include "daemon/kernel/quiet_bpf.h"
#include "proto/base/memory.h"

/* Inode of the kernel's first user namespace. Source: PROC_USER_INIT_INO in include/linux/proc_ns.h of Linux
 * 6.12. */
#define USER_NAMESPACE_INIT 0xEFFFFFFDu

struct exec_bpf {
	int outputs_fd, program_fd;
	int link_fd; /* while harts are watched; else -1 */
	int n_harts, n_watched;
	bool *watched; /* by hart */
};

DEFINE_CLEANUP(struct exec_bpf *, exec_bpf_free)

static bool in_first_namespace(void)
{
	struct stat s;
	return stat("/proc/self/ns/user", &s) == 0 && s.st_ino == USER_NAMESPACE_INIT;
}

enum { OUTPUTS, PROGRAM, N_LOADED };

static int load(const void *userdata, int ret_fd[])
{
	const struct exec_bpf *b = userdata;
	bpf_be_quiet();
	struct exec_bpf_program *p = exec_bpf_program__open();
	if (!p)
		return -errno;
	p->rodata->sees_users = in_first_namespace();
	int r = bpf_map__set_max_entries(p->maps.outputs, (uint32_t)b->n_harts);
	if (r == 0)
		r = exec_bpf_program__load(p);
	if (r < 0)
		return r;
	ret_fd[OUTPUTS] = bpf_map__fd(p->maps.outputs);
	ret_fd[PROGRAM] = bpf_program__fd(p->progs.on_exec);
	return 0;
}

int exec_bpf_new(int n_harts, struct exec_bpf **ret_bpf, int *ret_error)
{
	_cleanup_(exec_bpf_freep) struct exec_bpf *b = calloc(1, sizeof(*b));
	if (!b || n_harts <= 0) {
		free(TAKE_PTR(b));
		return n_harts > 0 ? -ENOMEM : -EINVAL;
	}
	*b = (struct exec_bpf){
		.outputs_fd = -1, .program_fd = -1, .link_fd = -1, .n_harts = n_harts};
	b->watched = calloc((size_t)n_harts, sizeof(*b->watched));
	if (!b->watched)
		return -ENOMEM;
	int loaded[N_LOADED];
	int r = load_in_child(load, b, N_LOADED, loaded);
	if (r == -ENOMEM || r == -EMFILE || r == -ENFILE)
		return r;
	if (r < 0) {
		*ret_error = -r;
		return EXEC_BPF_REFUSED;
	}
	b->outputs_fd = loaded[OUTPUTS];
	b->program_fd = loaded[PROGRAM];
	*ret_bpf = TAKE_PTR(b);
	return 0;
}

static void detach(struct exec_bpf *b)
{
	if (b->link_fd >= 0)
		close(b->link_fd);
	b->link_fd = -1;
}

int exec_bpf_watch(struct exec_bpf *b, int hart, int output_fd)
{
	if (hart < 0 || hart >= b->n_harts)
		return -EINVAL;
	if (b->link_fd < 0)
		b->link_fd = bpf_raw_tracepoint_open(NULL, b->program_fd);
	if (b->link_fd < 0)
		return -errno;
	uint32_t key = (uint32_t)hart;
	int r = bpf_map_update_elem(b->outputs_fd, &key, &output_fd, BPF_ANY);
	if (r == 0 && !b->watched[hart]) {
		b->watched[hart] = true;
		b->n_watched++;
	}
	if (b->n_watched == 0)
		detach(b);
	return r;
}

void exec_bpf_forget(struct exec_bpf *b, int hart)
{
	if (hart < 0 || hart >= b->n_harts || !b->watched[hart])
		return;
	uint32_t key = (uint32_t)hart;
	(void)bpf_map_delete_elem(b->outputs_fd, &key);
	b->watched[hart] = false;
	if (--b->n_watched == 0)
		detach(b);
}

struct exec_bpf *exec_bpf_free(struct exec_bpf *b)
{
	if (!b)
		return NULL;
	detach(b);
	if (b->outputs_fd >= 0)
		close(b->outputs_fd);
	if (b->program_fd >= 0)
		close(b->program_fd);
	free(b->watched);
	free(b);
	return NULL;
}
