/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* The daemon contains the program that writes records as two skeletons: one for kernels with BTF, and
 * one that does not need it (see switch.bpf.c). The program that sums up is a third. A child loads them (load_child.h);
 * all have the same three maps, so the other code uses only their descriptors.
 *
 * An event in a map stays alive after its descriptor is closed. So a hart's events are removed from
 * the maps before they are closed, or they would count until the session ends.
 */

#include "daemon/kernel/switch_bpf.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/kernel/load_child.h"
#include "daemon/kernel/quiet_bpf.h"
#include "daemon/kernel/switch.skel.h"
#include "daemon/kernel/switch_plain.skel.h"
#include "daemon/kernel/switch_sums.skel.h"
#include "proto/base/memory.h"

/* Inode of the kernel's first pid namespace. Source: PROC_PID_INIT_INO in include/linux/proc_ns.h
 * of Linux 6.12. */
#define PID_NAMESPACE_INIT 0xEFFFFFFCu

/* Descriptors of what was loaded; the last three are the program's that sums up. */
enum {
	SLOTS,
	COUNTERS,
	OUTPUTS,
	ON_SWITCH,
	N_LOADED,
	ON_SAMPLE = N_LOADED,
	SUMS,
	USERS,
	N_LOADED_SUMS
};

struct switch_bpf {
	int fd[N_LOADED_SUMS]; /* -1: not loaded */
	bool sums, typed;      /* which of the three */
	int link_fd;           /* of ON_SWITCH, while groups are watched; else -1 */
	int n_watched;         /* groups of all harts */
	int n_harts;
	uint8_t *n_groups; /* by hart */
};

DEFINE_CLEANUP(struct switch_bpf *, switch_bpf_free)

/* Do we see the kernel's own task numbers (the initial pid namespace)? */
static bool in_first_namespace(void)
{
	struct stat s;
	return stat("/proc/self/ns/pid", &s) == 0 && s.st_ino == PID_NAMESPACE_INIT;
}

static int size_maps(
	int n_harts, struct bpf_map *slots, struct bpf_map *counters, struct bpf_map *outputs)
{
	uint32_t n_slots = (uint32_t)n_harts * SWITCH_GROUPS_MAX;
	int r = bpf_map__set_max_entries(slots, n_slots);
	if (r == 0)
		r = bpf_map__set_max_entries(counters, n_slots * SWITCH_MEMBERS_MAX);
	return r ? r : bpf_map__set_max_entries(outputs, n_slots);
}

/* Attach the program for a moment, since a program that loads may still not attach. It stays
 * attached only while it has something to read. */
static int try_attach(const struct bpf_program *program)
{
	struct bpf_link *link = bpf_program__attach(program);
	return link ? bpf_link__destroy(link) : -errno;
}

static int load_typed(const void *userdata, int ret_fd[])
{
	const struct switch_bpf *b = userdata;
	struct switch_bpf_typed *p = switch_bpf_typed__open();
	if (!p)
		return -errno;
	p->rodata->tells_who = in_first_namespace();
	int r = size_maps(b->n_harts, p->maps.slots, p->maps.counters, p->maps.outputs);
	if (r == 0)
		r = switch_bpf_typed__load(p);
	if (r == 0)
		r = try_attach(p->progs.on_switch);
	if (r < 0)
		return r;
	ret_fd[SLOTS] = bpf_map__fd(p->maps.slots);
	ret_fd[COUNTERS] = bpf_map__fd(p->maps.counters);
	ret_fd[OUTPUTS] = bpf_map__fd(p->maps.outputs);
	ret_fd[ON_SWITCH] = bpf_program__fd(p->progs.on_switch);
	return 0;
}

static int load_plain(const void *userdata, int ret_fd[])
{
	const struct switch_bpf *b = userdata;
	struct switch_bpf_plain *p = switch_bpf_plain__open();
	if (!p)
		return -errno;
	int r = size_maps(b->n_harts, p->maps.slots, p->maps.counters, p->maps.outputs);
	if (r == 0)
		r = switch_bpf_plain__load(p);
	if (r == 0)
		r = try_attach(p->progs.on_switch);
	if (r < 0)
		return r;
	ret_fd[SLOTS] = bpf_map__fd(p->maps.slots);
	ret_fd[COUNTERS] = bpf_map__fd(p->maps.counters);
	ret_fd[OUTPUTS] = bpf_map__fd(p->maps.outputs);
	ret_fd[ON_SWITCH] = bpf_program__fd(p->progs.on_switch);
	return 0;
}

static int load_sums(const void *userdata, int ret_fd[])
{
	const struct switch_bpf *b = userdata;
	struct switch_bpf_sums *p = switch_bpf_sums__open();
	if (!p)
		return -errno;
	p->rodata->tells_who = in_first_namespace();
	int r = size_maps(b->n_harts, p->maps.slots, p->maps.counters, p->maps.outputs);
	if (r == 0)
		r = switch_bpf_sums__load(p);
	if (r < 0)
		return r;
	ret_fd[SLOTS] = bpf_map__fd(p->maps.slots);
	ret_fd[COUNTERS] = bpf_map__fd(p->maps.counters);
	ret_fd[OUTPUTS] = bpf_map__fd(p->maps.outputs);
	ret_fd[ON_SWITCH] = bpf_program__fd(p->progs.on_switch);
	ret_fd[ON_SAMPLE] = bpf_program__fd(p->progs.on_sample);
	ret_fd[SUMS] = bpf_map__fd(p->maps.sums);
	ret_fd[USERS] = bpf_map__fd(p->maps.users);
	return 0;
}

static bool exhausted(int r)
{
	return r == -ENOMEM || r == -EMFILE || r == -ENFILE;
}

int switch_bpf_new(enum switch_way way, int n_harts, struct switch_bpf **ret_bpf, int *ret_error)
{
	_cleanup_(switch_bpf_freep) struct switch_bpf *b = calloc(1, sizeof(*b));
	if (!b)
		return -ENOMEM;
	*b = (struct switch_bpf){.link_fd = -1, .n_harts = n_harts, .sums = way == SWITCH_SUMS};
	for (int i = 0; i < N_LOADED_SUMS; i++)
		b->fd[i] = -1;
	if (n_harts <= 0)
		return -EINVAL;
	b->n_groups = calloc((size_t)n_harts, sizeof(*b->n_groups));
	if (!b->n_groups)
		return -ENOMEM;
	bpf_be_quiet(); /* in the children too */
	b->typed = true;
	int r = b->sums ? load_in_child(load_sums, b, N_LOADED_SUMS, b->fd)
			: load_in_child(load_typed, b, N_LOADED, b->fd);
	if (r < 0 && !exhausted(r) && !b->sums) {
		b->typed = false;
		r = load_in_child(load_plain, b, N_LOADED, b->fd);
	}
	if (exhausted(r))
		return r;
	if (r < 0) {
		*ret_error = -r;
		return SWITCH_BPF_REFUSED;
	}
	*ret_bpf = TAKE_PTR(b);
	return 0;
}

/* Remove a slot's events from the maps; missing ones are not an error. */
static void slot_clear(struct switch_bpf *b, uint32_t slot)
{
	const struct switch_slot none = {0};
	const struct switch_sums_slot no_sums = {0};
	(void)bpf_map_update_elem(
		b->fd[SLOTS], &slot, b->sums ? (const void *)&no_sums : &none, BPF_ANY);
	(void)bpf_map_delete_elem(b->fd[OUTPUTS], &slot);
	for (uint32_t i = 0; i < SWITCH_MEMBERS_MAX; i++) {
		uint32_t counter = slot * SWITCH_MEMBERS_MAX + i;
		(void)bpf_map_delete_elem(b->fd[COUNTERS], &counter);
	}
}

/* The kind of a group: equal for groups that count the same events in the same order, never 0. FNV-1a. Source:
 * RFC 9923. */
static uint64_t kind_of(const struct switch_group *g)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325);
	for (int i = 0; i < g->n_members; i++)
		hash = (hash ^ (uint32_t)g->event[i]) * UINT64_C(0x100000001b3);
	return hash ? hash : 1;
}

static int slot_announce(struct switch_bpf *b, uint32_t slot, const struct switch_group *g)
{
	if (b->sums) {
		struct switch_sums_slot s = {
			.n_members = (uint32_t)g->n_members, .kind = kind_of(g)};
		memcpy(s.id, g->id, (size_t)g->n_members * sizeof(s.id[0]));
		return bpf_map_update_elem(b->fd[SLOTS], &slot, &s, BPF_ANY);
	}
	struct switch_slot s = {.n_members = (uint32_t)g->n_members};
	memcpy(s.id, g->id, (size_t)g->n_members * sizeof(s.id[0]));
	return bpf_map_update_elem(b->fd[SLOTS], &slot, &s, BPF_ANY);
}

/* Announce the slot last: it makes the program read the group. */
static int slot_fill(struct switch_bpf *b, uint32_t slot, const struct switch_group *g)
{
	int r = 0;
	if (g->output_fd >= 0)
		r = bpf_map_update_elem(b->fd[OUTPUTS], &slot, &g->output_fd, BPF_ANY);
	for (int i = 0; r == 0 && i < g->n_members; i++) {
		uint32_t counter = slot * SWITCH_MEMBERS_MAX + (uint32_t)i;
		r = bpf_map_update_elem(b->fd[COUNTERS], &counter, &g->fd[i], BPF_ANY);
	}
	return r ? r : slot_announce(b, slot, g);
}

/* The program on switches is attached with the first group; that of sums needs one on samples of the
 * leader too. */
static int attach(struct switch_bpf *b, const struct switch_group *g)
{
	if (b->link_fd < 0) /* a typed program knows where it belongs */
		b->link_fd =
			bpf_raw_tracepoint_open(b->typed ? NULL : "sched_switch", b->fd[ON_SWITCH]);
	if (b->link_fd < 0)
		return -errno;
	if (!b->sums || g->output_fd < 0)
		return 0;
	return ioctl(g->fd[0], PERF_EVENT_IOC_SET_BPF, b->fd[ON_SAMPLE]) < 0 ? -errno : 0;
}

/* Clear a map of sums: while the program is not attached, tasks end and their tids are used again. */
static void map_clear(int fd)
{
	uint64_t key, next; /* at least as large as a key of these maps */
	const void *after = NULL;
	while (bpf_map_get_next_key(fd, after, &next) == 0) {
		if (after)
			(void)bpf_map_delete_elem(fd, &key);
		key = next;
		after = &key;
	}
	if (after)
		(void)bpf_map_delete_elem(fd, &key);
}

static void detach(struct switch_bpf *b)
{
	if (b->n_watched > 0 || b->link_fd < 0)
		return;
	close(b->link_fd);
	b->link_fd = -1;
	if (!b->sums)
		return;
	map_clear(b->fd[SUMS]);
	map_clear(b->fd[USERS]);
}

int switch_bpf_watch(struct switch_bpf *b, const struct switch_group *g)
{
	if (g->hart < 0 || g->hart >= b->n_harts || g->n_members < 1)
		return -EINVAL;
	uint8_t n = b->n_groups[g->hart];
	if (n == SWITCH_GROUPS_MAX || g->n_members > SWITCH_MEMBERS_MAX)
		return SWITCH_BPF_FULL;
	uint32_t slot = (uint32_t)g->hart * SWITCH_GROUPS_MAX + n;
	int r = attach(b, g);
	if (r == 0)
		r = slot_fill(b, slot, g);
	if (r < 0) {
		slot_clear(b, slot);
		detach(b);
		return r;
	}
	b->n_groups[g->hart]++;
	b->n_watched++;
	return 0;
}

int switch_bpf_watched(const struct switch_bpf *b, int hart)
{
	return hart < 0 || hart >= b->n_harts ? 0 : b->n_groups[hart];
}

void switch_bpf_forget(struct switch_bpf *b, int hart, int n_kept)
{
	if (hart < 0 || hart >= b->n_harts)
		return;
	/* The last one first: the program stops at the first empty slot. */
	while (b->n_groups[hart] > n_kept) {
		slot_clear(b, (uint32_t)hart * SWITCH_GROUPS_MAX + --b->n_groups[hart]);
		b->n_watched--;
	}
	detach(b);
}

struct switch_bpf *switch_bpf_free(struct switch_bpf *b)
{
	if (!b)
		return NULL;
	if (b->link_fd >= 0)
		close(b->link_fd);
	for (int i = 0; i < N_LOADED_SUMS; i++)
		if (b->fd[i] >= 0)
			close(b->fd[i]);
	free(b->n_groups);
	free(b);
	return NULL;
}
