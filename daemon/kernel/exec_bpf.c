/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

#include "daemon/kernel/exec_bpf.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "daemon/kernel/exec.skel.h"
#include "daemon/kernel/quiet_bpf.h"
#include "proto/base/memory.h"

/* Inode of the kernel's first user namespace. Source: PROC_USER_INIT_INO in include/linux/proc_ns.h of Linux
 * 6.12. */
#define USER_NAMESPACE_INIT 0xEFFFFFFDu

struct exec_bpf {
	struct exec_bpf_program *program;
	struct bpf_link *link; /* while harts are watched; else NULL */
	int n_harts, n_watched;
	bool *watched; /* by hart */
};

DEFINE_CLEANUP(struct exec_bpf *, exec_bpf_free)

static bool in_first_namespace(void)
{
	struct stat s;
	return stat("/proc/self/ns/user", &s) == 0 && s.st_ino == USER_NAMESPACE_INIT;
}

static int load(struct exec_bpf *b)
{
	b->program = exec_bpf_program__open();
	if (!b->program)
		return -errno;
	b->program->rodata->sees_users = in_first_namespace();
	int r = bpf_map__set_max_entries(b->program->maps.outputs, (uint32_t)b->n_harts);
	return r ? r : exec_bpf_program__load(b->program);
}

int exec_bpf_new(int n_harts, struct exec_bpf **ret_bpf, int *ret_error)
{
	_cleanup_(exec_bpf_freep) struct exec_bpf *b = calloc(1, sizeof(*b));
	if (!b || n_harts <= 0)
		return b ? -EINVAL : -ENOMEM;
	b->n_harts = n_harts;
	b->watched = calloc((size_t)n_harts, sizeof(*b->watched));
	if (!b->watched)
		return -ENOMEM;
	bpf_be_quiet();
	int r = load(b);
	if (r == -ENOMEM || r == -EMFILE || r == -ENFILE)
		return r;
	if (r < 0) {
		*ret_error = -r;
		return EXEC_BPF_REFUSED;
	}
	*ret_bpf = TAKE_PTR(b);
	return 0;
}

static void detach(struct exec_bpf *b)
{
	bpf_link__destroy(b->link);
	b->link = NULL;
}

int exec_bpf_watch(struct exec_bpf *b, int hart, int output_fd)
{
	if (hart < 0 || hart >= b->n_harts)
		return -EINVAL;
	if (!b->link)
		b->link = bpf_program__attach(b->program->progs.on_exec);
	if (!b->link)
		return -errno;
	uint32_t key = (uint32_t)hart;
	int r = bpf_map_update_elem(
		bpf_map__fd(b->program->maps.outputs), &key, &output_fd, BPF_ANY);
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
	(void)bpf_map_delete_elem(bpf_map__fd(b->program->maps.outputs), &key);
	b->watched[hart] = false;
	if (--b->n_watched == 0)
		detach(b);
}

struct exec_bpf *exec_bpf_free(struct exec_bpf *b)
{
	if (!b)
		return NULL;
	bpf_link__destroy(b->link);
	exec_bpf_program__destroy(b->program);
	free(b->watched);
	free(b);
	return NULL;
}
