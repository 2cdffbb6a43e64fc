/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* A child loads the program (load_child.h). What stays here is the link, by which the kernel makes iterators, and three
 * maps. */

#include "daemon/kernel/offcpu_bpf.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <unistd.h>

#include "daemon/kernel/load_child.h"
#include "daemon/kernel/offcpu.skel.h"
#include "daemon/kernel/offcpu_layout.h"
#include "daemon/kernel/quiet_bpf.h"

enum { LINK, STATE, BARRED, TOLD, N_LOADED };

static int load(const void *userdata, int ret_fd[])
{
	(void)userdata;
	bpf_be_quiet();
	struct offcpu_bpf_program *p = offcpu_bpf_program__open_and_load();
	if (!p)
		return -errno;
	struct bpf_link *link = bpf_program__attach_iter(p->progs.on_thread, NULL);
	if (!link)
		return -errno;
	ret_fd[LINK] = bpf_link__fd(link);
	ret_fd[STATE] = bpf_map__fd(p->maps.states);
	ret_fd[BARRED] = bpf_map__fd(p->maps.barred);
	ret_fd[TOLD] = bpf_map__fd(p->maps.told);
	return 0;
}

int offcpu_bpf_load(struct offcpu_bpf *ret_bpf, int *ret_error)
{
	int loaded[N_LOADED];
	int r = load_in_child(load, NULL, N_LOADED, loaded);
	if (r == -ENOMEM || r == -EMFILE || r == -ENFILE)
		return r;
	if (r < 0) {
		*ret_error = -r;
		return OFFCPU_BPF_REFUSED;
	}
	*ret_bpf = (struct offcpu_bpf){.link_fd = loaded[LINK],
		.state_fd = loaded[STATE],
		.barred_fd = loaded[BARRED],
		.told_fd = loaded[TOLD]};
	return 0;
}

void offcpu_bpf_close(struct offcpu_bpf *b)
{
	close(b->link_fd);
	close(b->state_fd);
	close(b->barred_fd);
	close(b->told_fd);
}

int offcpu_bpf_look(int link_fd, int *ret_fd)
{
	int look = bpf_iter_create(link_fd);
	if (look < 0)
		return -errno;
	*ret_fd = look;
	return 0;
}

bool offcpu_bpf_bar(const struct offcpu_bpf *b, uint64_t longer_ns, uint64_t now_ns)
{
	const uint32_t zero = 0;
	const uint8_t yes = 1;
	struct offcpu_state state = {.copying = 0};
	if (bpf_map_lookup_elem(b->state_fd, &zero, &state) < 0 || !state.copying ||
		now_ns < state.began_ns + longer_ns)
		return false;
	return bpf_map_update_elem(b->barred_fd, &state.copying, &yes, BPF_ANY) == 0;
}

void offcpu_bpf_tell_again(const struct offcpu_bpf *b)
{
	const uint32_t zero = 0;
	struct offcpu_state state;
	if (bpf_map_lookup_elem(b->state_fd, &zero, &state) < 0)
		return;
	state.n_lost++;
	(void)bpf_map_update_elem(b->state_fd, &zero, &state, BPF_ANY);
}
