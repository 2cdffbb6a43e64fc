/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* State: the runtime's state, one per process
 *
 * Compiled code calls the runtime without a context argument, so there is one global. Senders,
 * registrations and forks hold its lock, always with all signals blocked; counting threads take no
 * lock.
 */

#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>
#include <sys/un.h>

#include "runtime/area.h"
#include "runtime/select.h"
#include "runtime/sink.h"
#include "runtime/thread.h"

struct object;
struct region;

/* Calls that the round makes into the OpenMP tool for each thread, besides sending counters. */
struct tally_calls {
	/* Send what the thread did since the last round. 0, an outcome of the sink. */
	int (*send)(struct state *s, struct thread *t, uint64_t now_ns);
	/* In a fork's child, for its thread: drop all counts, since the parent reports them. */
	void (*forked)(struct thread *t);
};

struct state {
	pthread_mutex_t lock;
	bool started;
	bool silent;      /* no sink is configured: nothing is ever sent, or read from a clock */
	uint32_t exiting; /* atomic; the program's end has begun */
	const struct tally_calls *tallies; /* NULL: this is no OpenMP tool */
	pid_t pid;
	uint64_t begin_ns;
	uint32_t period_ms;
	uint32_t regions_one_in; /* 1 in N of a region's entries is measured; 0: none */
	uint32_t clock_ns;       /* between two reads of the clock */
	uint32_t timing_ns; /* to time an entry into a loop; 0 where nothing is timed: silent */
	uint32_t vscale;
	bool may_write_gs_base; /* without asking the kernel */

	/* counting */
	struct thread *threads; /* atomic head */
	struct object *objects; /* atomic head */
	struct region *regions; /* atomic head */
	struct area_pool areas;
	struct selection selection; /* under the lock, as the next */
	struct choices *choices;
	uint32_t n_threads; /* ids given; atomic */
	uint32_t n_records; /* of threads, in use; atomic, as the next two */
	uint32_t n_records_free;
	uint32_t look_at;      /* n_records at which a new thread looks for those that are gone */
	uint32_t n_regions;    /* atomic */
	uint32_t n_objects;    /* ids given */
	uint32_t threads_lost; /* atomic */

	/* sending, under the lock */
	struct sink sink;
	uint32_t greeted;       /* connection that got its HELLO */
	uint32_t hurried;       /* connection on whose answers a last round has waited */
	bool hurry;             /* counts are lost unless they are sent now */
	bool late;              /* the last round left out counts whose tables wait for an answer */
	struct grant *retired;  /* grants to be closed when no thread reads them */
	uint32_t n_grants;      /* serials given */
	uint32_t n_grant_pages; /* of events, mapped */
	uint32_t round;         /* the one due or in progress, from 1 */
	bool unfinished;        /* it is in progress */
	uint32_t n_forgotten;   /* threads, in the last round */
	_Alignas(8) unsigned char packet[MPERF_PACKET_BYTES_MAX];

	pthread_t sender;
	bool has_sender;
	/* atomic; a fork's child without a sender, which may need one */
	uint32_t sender_due;
	uint32_t stop;     /* atomic; the sender's futex when there is no socket */
	uint32_t confined; /* atomic, as the next; the main thread is under a filter, the sender is
			   * not */
	uint32_t rounds_wanted, rounds_made; /* while confined; the sender makes them */
	uint32_t sender_ended;
	sigset_t fork_mask;
};

extern struct state mperf_state;

/* Block all signals but those of the C library, and take the lock; and the reverse. */
void mperf_lock(struct state *s, sigset_t *ret_mask);
void mperf_unlock(struct state *s, const sigset_t *mask);

/* CLOCK_MONOTONIC. */
uint64_t mperf_now_ns(void);
