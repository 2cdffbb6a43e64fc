/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* The BPF program that records who ends the waits of sampled threads (wakers.bpf.c), and its ring
 *
 * It needs what the iterator needs (offcpu_bpf.h), with which it shares what it remembers of threads.
 */

#include <stddef.h>

#include "daemon/kernel/offcpu_bpf.h"

struct wakers_bpf;

enum { WAKERS_BPF_REFUSED = 1 };

/* Called with the bytes of a record (kernel/offcpu_layout.h), borrowed for the call. False: it is left in the ring, and
 * no more are read. */
typedef bool wakers_bpf_take(void *userdata, const uint8_t *bytes, size_t n);

#ifdef MPERF_BPF

/* Load the program for that iterator, and begin. 0; WAKERS_BPF_REFUSED: *ret_error, an errno, says why; -errno: no memory
 * or descriptors. */
int wakers_bpf_new(const struct offcpu_bpf *offcpu, struct wakers_bpf **ret_wakers, int *ret_error);
/* Hand out the records in the ring, in the order in which they were made on each hart. */
void wakers_bpf_read(struct wakers_bpf *w, wakers_bpf_take *take, void *userdata);
/* Records for which the ring had no room. */
uint64_t wakers_bpf_lost(const struct wakers_bpf *w);
struct wakers_bpf *wakers_bpf_free(struct wakers_bpf *w);

#else

static inline int wakers_bpf_new(
	const struct offcpu_bpf *offcpu, struct wakers_bpf **ret_wakers, int *ret_error)
{
	(void)offcpu, (void)ret_wakers;
	*ret_error = ENOTSUP;
	return WAKERS_BPF_REFUSED;
}

static inline void wakers_bpf_read(struct wakers_bpf *w, wakers_bpf_take *take, void *userdata)
{
	(void)w, (void)take, (void)userdata;
}

static inline uint64_t wakers_bpf_lost(const struct wakers_bpf *w)
{
	(void)w;
	return 0;
}

static inline struct wakers_bpf *wakers_bpf_free(struct wakers_bpf *w)
{
	(void)w;
	return NULL;
}

#endif
