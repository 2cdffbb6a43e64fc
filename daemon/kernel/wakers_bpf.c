/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* A child loads the program (load_child.h); what stays here is its link, and its ring as the kernel lays it out: a page
 * with the position of the reader, one with that of the writers, and the data, mapped twice in a row so that each record
 * is in one piece. libbpf's reader takes each record that it hands out, but one from after the latest look must stay.
 * Source: kernel/bpf/ringbuf.c of Linux 6.12. */

#include "daemon/kernel/wakers_bpf.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/bpf.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "daemon/kernel/load_child.h"
#include "daemon/kernel/offcpu_layout.h"
#include "daemon/kernel/quiet_bpf.h"
#include "daemon/kernel/wakers.skel.h"
#include "proto/base/memory.h"

enum { LINK, RING, N_LOADED };

struct wakers_bpf {
	int link_fd, ring_fd;
	int state_fd; /* borrowed */
	size_t page_bytes;
	/* the reader's page, and behind it the writers' and the data; MAP_FAILED: not mapped */
	uint8_t *reader, *writers;
};

static int load(const void *userdata, int ret_fd[])
{
	const struct offcpu_bpf *offcpu = userdata;
	bpf_be_quiet();
	struct wakers_bpf_program *p = wakers_bpf_program__open();
	if (!p)
		return -errno;
	int r = bpf_map__reuse_fd(p->maps.told, offcpu->told_fd);
	if (r == 0)
		r = bpf_map__reuse_fd(p->maps.states, offcpu->state_fd);
	if (r == 0)
		r = wakers_bpf_program__load(p);
	if (r < 0)
		return r;
	struct bpf_link *link = bpf_program__attach(p->progs.on_waking);
	if (!link)
		return -errno;
	ret_fd[LINK] = bpf_link__fd(link);
	ret_fd[RING] = bpf_map__fd(p->maps.wakings);
	return 0;
}

static int map_ring(struct wakers_bpf *w)
{
	const size_t bytes = w->page_bytes + 2ull * OFFCPU_WAKINGS_BYTES;
	w->reader = mmap(NULL, w->page_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, w->ring_fd, 0);
	w->writers = mmap(NULL, bytes, PROT_READ, MAP_SHARED, w->ring_fd, (off_t)w->page_bytes);
	return w->reader == MAP_FAILED || w->writers == MAP_FAILED ? -errno : 0;
}

int wakers_bpf_new(const struct offcpu_bpf *offcpu, struct wakers_bpf **ret_wakers, int *ret_error)
{
	int loaded[N_LOADED];
	struct wakers_bpf *w = malloc(sizeof(*w));
	if (!w)
		return -ENOMEM;
	int r = load_in_child(load, offcpu, N_LOADED, loaded);
	if (r < 0) {
		free(w);
		*ret_error = -r;
		return r == -ENOMEM || r == -EMFILE || r == -ENFILE ? r : WAKERS_BPF_REFUSED;
	}
	*w = (struct wakers_bpf){.link_fd = loaded[LINK],
		.ring_fd = loaded[RING],
		.state_fd = offcpu->state_fd,
		.page_bytes = (size_t)sysconf(_SC_PAGESIZE),
		.reader = MAP_FAILED,
		.writers = MAP_FAILED};
	r = map_ring(w);
	if (r < 0) {
		wakers_bpf_free(w);
		*ret_error = -r;
		return r == -ENOMEM ? r : WAKERS_BPF_REFUSED;
	}
	*ret_wakers = w;
	return 0;
}

void wakers_bpf_read(struct wakers_bpf *w, wakers_bpf_take *take, void *userdata)
{
	unsigned long *reader = (unsigned long *)(void *)w->reader;
	const unsigned long *writers = (const unsigned long *)(const void *)w->writers;
	const uint8_t *data = w->writers + w->page_bytes;
	const unsigned long end = __atomic_load_n(writers, __ATOMIC_ACQUIRE);
	unsigned long at = __atomic_load_n(reader, __ATOMIC_RELAXED);

	while (at < end) {
		const uint32_t *head =
			(const uint32_t *)(const void *)(data + (at & (OFFCPU_WAKINGS_BYTES - 1)));
		const uint32_t says = __atomic_load_n(head, __ATOMIC_ACQUIRE);
		const uint32_t n = says & ~(BPF_RINGBUF_BUSY_BIT | BPF_RINGBUF_DISCARD_BIT);
		if (says & BPF_RINGBUF_BUSY_BIT)
			return; /* it is being written */
		if (!(says & BPF_RINGBUF_DISCARD_BIT) &&
			!take(userdata, (const uint8_t *)head + BPF_RINGBUF_HDR_SZ, n))
			return;
		at += (n + BPF_RINGBUF_HDR_SZ + 7) & ~7ul;
		__atomic_store_n(reader, at, __ATOMIC_RELEASE);
	}
}

uint64_t wakers_bpf_lost(const struct wakers_bpf *w)
{
	const uint32_t zero = 0;
	struct offcpu_state state = {.n_wakings_lost = 0};
	return bpf_map_lookup_elem(w->state_fd, &zero, &state) < 0 ? 0 : state.n_wakings_lost;
}

struct wakers_bpf *wakers_bpf_free(struct wakers_bpf *w)
{
	if (!w)
		return NULL;
	close(w->link_fd);
	if (w->reader != MAP_FAILED)
		munmap(w->reader, w->page_bytes);
	if (w->writers != MAP_FAILED)
		munmap(w->writers, w->page_bytes + 2ull * OFFCPU_WAKINGS_BYTES);
	close(w->ring_fd);
	free(w);
	return NULL;
}
