/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * If the program closed a descriptor and got its number again for a pipe or a socket, a read would
 * consume data from it; pread would not, but perf_event refuses it. So we first ask each descriptor
 * for its event's id. We use syscall(2), since the C library's read is a cancellation point.
 * Source: perf_event_open(2), PERF_EVENT_IOC_ID.
 */
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "runtime/grant.h"
#include "runtime/state.h"

static bool event_id(int fd, uint64_t *ret_id)
{
	return ioctl(fd, PERF_EVENT_IOC_ID, ret_id) == 0;
}

static void close_all(const int *fds, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		close(fds[i]);
}

void mperf_grant_retire(struct state *s, struct thread *t)
{
	struct grant *g = __atomic_exchange_n(&t->grant, NULL, __ATOMIC_SEQ_CST);
	if (!g)
		return;
	g->next = s->retired;
	s->retired = g;
}

void mperf_grant_give(struct state *s, struct thread *t, const int *fds, uint32_t n)
{
	mperf_grant_retire(s, t);
	if (n == 0)
		return;
	struct grant *g =
		mmap(NULL, sizeof(*g), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (g == MAP_FAILED) {
		close_all(fds, n);
		return;
	}
	g->thread = t;
	g->serial = ++s->n_grants;
	g->n = n;
	for (uint32_t i = 0; i < n; i++) {
		g->fds[i] = fds[i];
		event_id(fds[i], &g->ids[i]); /* we never read what is no event */
	}
	__atomic_store_n(&t->grant, g, __ATOMIC_RELEASE);
}

void mperf_grant_sweep(struct state *s)
{
	struct grant **at = &s->retired;
	while (*at) {
		struct grant *g = *at;
		if (__atomic_load_n(&g->thread->busy, __ATOMIC_SEQ_CST)) {
			at = &g->next;
			continue;
		}
		*at = g->next;
		close_all(g->fds, g->n);
		munmap(g, sizeof(*g));
	}
}

/* One word, or three with the times. Source: perf_event_open(2), "Reading results". */
static bool read_one(const struct grant *g, uint32_t i, struct grant_reading *ret_reading)
{
	uint64_t id;
	struct grant_reading r = {0};
	if (!event_id(g->fds[i], &id) || id != g->ids[i])
		return false;
	long n = syscall(SYS_read, g->fds[i], &r, sizeof(r));
	if (n != sizeof(r.value) && n != sizeof(r))
		return false;
	*ret_reading = r;
	return true;
}

uint32_t mperf_grant_read(struct thread *t, struct grant_reading readings[MPERF_GRANTS_MAX])
{
	if (!__atomic_load_n(&t->grant, __ATOMIC_RELAXED))
		return 0;

	uint32_t serial = 0;
	uint32_t before = mperf_thread_busy(t);
	const struct grant *g = __atomic_load_n(&t->grant, __ATOMIC_SEQ_CST);
	if (g) {
		serial = g->serial;
		for (uint32_t i = 0; i < g->n; i++)
			if (!read_one(g, i, &readings[i]))
				serial = 0;
		for (uint32_t i = g->n; i < MPERF_GRANTS_MAX; i++)
			readings[i] = (struct grant_reading){0};
	}
	mperf_thread_idle(t, before);
	return serial;
}

static bool count_between(
	const struct grant_reading *from, const struct grant_reading *to, uint64_t *ret_count)
{
	uint64_t count = to->value - from->value;
	uint64_t enabled_ns = to->enabled_ns - from->enabled_ns;
	uint64_t running_ns = to->running_ns - from->running_ns;
	if (running_ns == 0 && enabled_ns > 0)
		return false;
	if (running_ns < enabled_ns)
		count = (uint64_t)((double)count * (double)enabled_ns / (double)running_ns);
	*ret_count = count;
	return true;
}

bool mperf_grant_counts(const struct grant_reading from[MPERF_GRANTS_MAX],
	const struct grant_reading to[MPERF_GRANTS_MAX], uint64_t counts[MPERF_GRANTS_MAX])
{
	bool all = true;
	for (unsigned i = 0; i < MPERF_GRANTS_MAX; i++)
		all = count_between(&from[i], &to[i], &counts[i]) && all;
	return all;
}
