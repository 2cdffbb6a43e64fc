/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* The daemon contains the program that writes records as two skeletons: one for kernels with BTF, and
 * one that does not need it (see switch.bpf.c). The program that sums up is a third. All have the same
 * three maps, so the other code uses only their descriptors.
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

#include "daemon/kernel/quiet_bpf.h"
#include "daemon/kernel/switch.skel.h"
#include "daemon/kernel/switch_plain.skel.h"
#include "daemon/kernel/switch_sums.skel.h"
#include "proto/base/memory.h"

/* Inode of the kernel's first pid namespace. Source: PROC_PID_INIT_INO in include/linux/proc_ns.h
 * of Linux 6.12. */
#define PID_NAMESPACE_INIT 0xEFFFFFFCu

struct switch_bpf {
	struct switch_bpf_typed *typed; /* one of the three */
	struct switch_bpf_plain *plain;
	struct switch_bpf_sums *sums;
	const struct bpf_program *on_switch;
	struct bpf_link *link; /* of on_switch, while groups are watched; else NULL */
	int n_watched;         /* groups of all harts */
	int slots_fd, counters_fd, outputs_fd;
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

static int load_typed(struct switch_bpf *b)
{
	struct switch_bpf_typed *p = switch_bpf_typed__open();
	if (!p)
		return -errno;
	p->rodata->tells_who = in_first_namespace();
	int r = size_maps(b->n_harts, p->maps.slots, p->maps.counters, p->maps.outputs);
	if (r == 0)
		r = switch_bpf_typed__load(p);
	if (r == 0)
		r = try_attach(p->progs.on_switch);
	if (r < 0) {
		switch_bpf_typed__destroy(p);
		return r;
	}
	b->slots_fd = bpf_map__fd(p->maps.slots);
	b->counters_fd = bpf_map__fd(p->maps.counters);
	b->outputs_fd = bpf_map__fd(p->maps.outputs);
	b->on_switch = p->progs.on_switch;
	b->typed = p;
	return 0;
}

static int load_plain(struct switch_bpf *b)
{
	struct switch_bpf_plain *p = switch_bpf_plain__open();
	if (!p)
		return -errno;
	int r = size_maps(b->n_harts, p->maps.slots, p->maps.counters, p->maps.outputs);
	if (r == 0)
		r = switch_bpf_plain__load(p);
	if (r == 0)
		r = try_attach(p->progs.on_switch);
	if (r < 0) {
		switch_bpf_plain__destroy(p);
		return r;
	}
	b->slots_fd = bpf_map__fd(p->maps.slots);
	b->counters_fd = bpf_map__fd(p->maps.counters);
	b->outputs_fd = bpf_map__fd(p->maps.outputs);
	b->on_switch = p->progs.on_switch;
	b->plain = p;
	return 0;
}

static int load_sums(struct switch_bpf *b)
{
	struct switch_bpf_sums *p = switch_bpf_sums__open();
	if (!p)
		return -errno;
	p->rodata->tells_who = in_first_namespace();
	int r = size_maps(b->n_harts, p->maps.slots, p->maps.counters, p->maps.outputs);
	if (r == 0)
		r = switch_bpf_sums__load(p);
	if (r < 0) {
		switch_bpf_sums__destroy(p);
		return r;
	}
	b->slots_fd = bpf_map__fd(p->maps.slots);
	b->counters_fd = bpf_map__fd(p->maps.counters);
	b->outputs_fd = bpf_map__fd(p->maps.outputs);
	b->on_switch = p->progs.on_switch;
	b->sums = p;
	return 0;
}

static bool exhausted(int r)
{
	return r == -ENOMEM || r == -EMFILE || r == -ENFILE;
}

int switch_bpf_new(enum switch_way way, int n_harts, struct switch_bpf **ret_bpf, int *ret_error)
{
	_cleanup_(switch_bpf_freep) struct switch_bpf *b = calloc(1, sizeof(*b));
	if (!b || n_harts <= 0)
		return b ? -EINVAL : -ENOMEM;
	b->n_harts = n_harts;
	b->n_groups = calloc((size_t)n_harts, sizeof(*b->n_groups));
	if (!b->n_groups)
		return -ENOMEM;
	bpf_be_quiet();
	int r = way == SWITCH_SUMS ? load_sums(b) : load_typed(b);
	if (r < 0 && !exhausted(r) && way == SWITCH_RECORDS)
		r = load_plain(b);
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
		b->slots_fd, &slot, b->sums ? (const void *)&no_sums : &none, BPF_ANY);
	(void)bpf_map_delete_elem(b->outputs_fd, &slot);
	for (uint32_t i = 0; i < SWITCH_MEMBERS_MAX; i++) {
		uint32_t counter = slot * SWITCH_MEMBERS_MAX + i;
		(void)bpf_map_delete_elem(b->counters_fd, &counter);
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
		return bpf_map_update_elem(b->slots_fd, &slot, &s, BPF_ANY);
	}
	struct switch_slot s = {.n_members = (uint32_t)g->n_members};
	memcpy(s.id, g->id, (size_t)g->n_members * sizeof(s.id[0]));
	return bpf_map_update_elem(b->slots_fd, &slot, &s, BPF_ANY);
}

/* Announce the slot last: it makes the program read the group. */
static int slot_fill(struct switch_bpf *b, uint32_t slot, const struct switch_group *g)
{
	int r = 0;
	if (g->output_fd >= 0)
		r = bpf_map_update_elem(b->outputs_fd, &slot, &g->output_fd, BPF_ANY);
	for (int i = 0; r == 0 && i < g->n_members; i++) {
		uint32_t counter = slot * SWITCH_MEMBERS_MAX + (uint32_t)i;
		r = bpf_map_update_elem(b->counters_fd, &counter, &g->fd[i], BPF_ANY);
	}
	return r ? r : slot_announce(b, slot, g);
}

/* The program on switches is attached with the first group; that of sums needs one on samples of the
 * leader too. */
static int attach(struct switch_bpf *b, const struct switch_group *g)
{
	if (!b->link)
		b->link = bpf_program__attach(b->on_switch);
	if (!b->link)
		return -errno;
	if (!b->sums || g->output_fd < 0)
		return 0;
	int program = bpf_program__fd(b->sums->progs.on_sample);
	return ioctl(g->fd[0], PERF_EVENT_IOC_SET_BPF, program) < 0 ? -errno : 0;
}

/* Clear a map of sums: while the program is not attached, tasks end and their tids are used again. */
static void map_clear(const struct bpf_map *map)
{
	uint64_t key, next; /* at least as large as a key of these maps */
	const size_t n = bpf_map__key_size(map);
	const void *after = NULL;
	while (n <= sizeof(key) && bpf_map__get_next_key(map, after, &next, n) == 0) {
		if (after)
			(void)bpf_map__delete_elem(map, &key, n, 0);
		key = next;
		after = &key;
	}
	if (after)
		(void)bpf_map__delete_elem(map, &key, n, 0);
}

static void detach(struct switch_bpf *b)
{
	if (b->n_watched > 0 || !b->link)
		return;
	bpf_link__destroy(b->link);
	b->link = NULL;
	if (!b->sums)
		return;
	map_clear(b->sums->maps.sums);
	map_clear(b->sums->maps.users);
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
	bpf_link__destroy(b->link);
	switch_bpf_typed__destroy(b->typed);
	switch_bpf_plain__destroy(b->plain);
	switch_bpf_sums__destroy(b->sums);
	free(b->n_groups);
	free(b);
	return NULL;
}
