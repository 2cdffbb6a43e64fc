/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * A destructor runs at dlclose and at exit(3), and is not told which. What atexit(3) registered in a
 * library runs in both, too, but at another time: at exit before any destructor; at dlclose as one
 * of them, from the compiler's own, which comes after those without a priority. So, if at the call the
 * destructors have begun, this is a dlclose. Source: atexit(3), Itanium C++ ABI 3.3.5.3; gcc,
 * crtstuff.c, __do_global_dtors_aux().
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "runtime/closing.h"
#include "runtime/grant.h"
#include "runtime/message.h"
#include "runtime/object.h"
#include "runtime/region.h"
#include "runtime/state.h"

static bool destructing, called, in_dlclose;

static void exit_or_dlclose(void)
{
	called = true;
	in_dlclose = destructing;
}

void mperf_closing_begin(void)
{
	(void)atexit(exit_or_dlclose); /* if it fails, all stays */
}

__attribute__((destructor)) static void destructors_begin(void)
{
	destructing = true;
}

bool mperf_closing(void)
{
	return called && in_dlclose;
}

static void threads_release(struct state *s)
{
	for (struct thread *t = s->threads; t; t = t->next) {
		mperf_grant_retire(s, t);
		t->busy = 0;
	}
	mperf_grant_sweep(s);
	while (s->threads) {
		struct thread *t = s->threads;
		s->threads = t->next;
		munmap(t, MPERF_THREAD_BYTES);
	}
}

/* A file is this process's own if one of its threads had the process's id (output.c): the next copy
 * appends to it. */
static void file_sign(struct state *s)
{
	struct mperf_feed_thread m = {.thread = s->n_threads, .tid = (uint32_t)s->pid};
	if (s->sink.fd < 0 || !s->sink.is_file || s->greeted != s->sink.serial)
		return;
	m.begin_ns = s->begin_ns;
	memcpy(s->packet, &m, sizeof(m));
	(void)mperf_message_put(s, MPERF_THREAD, sizeof(m));
}

void mperf_closing_release(struct state *s)
{
	file_sign(s);
	mperf_sink_close(&s->sink);
	s->sink.hopeless = true; /* objects that unregister later open no other */
	threads_release(s);
	while (s->objects) {
		struct object *o = s->objects;
		s->objects = o->next;
		if (o->uses)
			munmap(o->uses, o->n_counters);
		munmap(o, sizeof(*o));
	}
	while (s->regions) {
		struct region *r = s->regions;
		s->regions = r->next;
		munmap(r, sizeof(*r));
	}
	mperf_select_release(s);
	while (s->areas.first) {
		struct area *a = s->areas.first;
		s->areas.first = a->next;
		munmap(a, a->bytes);
	}
}
