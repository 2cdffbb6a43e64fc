/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Wakers: who ended the waits that looks found
 *
 * A wait is found by looks, and its end is a record in a ring (kernel/wakers_bpf.h), with the stack of who woke the
 * thread. Both have the wait's number. So a wait is kept until its end is known, or until no record of it can come any
 * more, and is then given with its waker or without.
 */

#include "daemon/attribute/attribute.h"
#include "daemon/attribute/sweep.h"
#include "daemon/decode/offcpu.h"
#include "daemon/kernel/wakers_bpf.h"

/* The longest wait for callers of threads that wait, and of those who woke them. */
#define WAIT_CALLERS_NS 3000000000u

/* A wait, as looks found it, and what of it was not given yet. */
struct found_wait {
	pid_t tid;
	uint32_t number;  /* of the wait (kernel/offcpu_layout.h) */
	uint64_t told_ns; /* when it had a full record */
	enum offcpu_kind kind;
	bool is_found; /* with its callers; else there is only the task */
	bool truncated, is_deep;
	int hart;
	struct task *task;
	uint64_t cgroup; /* id */
	uint64_t count, weight_ns, first_ns, last_ns;
	uint32_t n_frames, size;
	struct frame **frame;
};

/* Its callers, as an attribution has them. 0 or -ENOMEM, with the wait as before. */
int found_wait_set_callers(struct found_wait *wait, const struct attribution *a);
/* Mark its task and frames for a sweep. */
void found_wait_mark(const struct found_wait *wait, struct sweep *s);

struct wakers;

struct wakers_options {
	const struct offcpu_bpf *bpf; /* borrowed */
	struct attribute *attribute;  /* borrowed */
	const struct stream *stream;  /* borrowed: of records of threads without a hart */
	/* The wait of that thread that is still under way, as far as is known; NULL: there is none, or it has nothing to
	 * give. What is taken from it is no longer its. */
	struct found_wait *(*find)(void *userdata, pid_t tid);
	/* Receives waits; waker NULL: not known. Borrowed for the call. */
	void (*give)(void *userdata, const struct found_wait *wait, const struct waker *waker);
	void *userdata;
};

/* Begin to record wakes. 0; WAKERS_BPF_REFUSED: *ret_error, an errno, says why; -errno. */
int wakers_new(const struct wakers_options *o, struct wakers **ret_wakers, int *ret_error);

/* All functions take NULL, and do nothing then. */

/* A wait has ended, and its waker is not known yet: take what it has to give. */
void wakers_take_wait(struct wakers *w, struct found_wait *wait);
/* All threads of the look at time_ns have been taken: find who woke them until then. 0 or -errno. */
int wakers_end_look(struct wakers *w, uint64_t time_ns);
/* Attribute found the callers of a waiting thread, or of a waker. True: it is a wait in hand here. */
bool wakers_found(struct wakers *w, const struct attribution *a);
/* Give waits whose callers, or whose waker's, have not come in time; or all. */
void wakers_expire(struct wakers *w, uint64_t now_ns);
void wakers_give_all(struct wakers *w);
/* Are there waits in hand, whose callers may still come? */
bool wakers_await(const struct wakers *w);
/* Wakes that were lost. */
uint64_t wakers_lost(const struct wakers *w);
void wakers_mark(const struct wakers *w, struct sweep *s);

struct wakers *wakers_free(struct wakers *w);
