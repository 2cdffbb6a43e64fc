/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * If the program closed a descriptor and got its number again for a pipe or a socket, a read would
 * consume data from it; pread would not, but perf_event refuses it. So we first ask each descriptor
 * for its event's id. We use syscall(2), since the C library's read is a cancellation point.
 * Source: perf_event_open(2), PERF_EVENT_IOC_ID.
 *
 * An event that programs may read is mapped, and read without a system call while it is in a
 * counter. Its page says for how long it has been enabled and running up to its last start. While it
 * runs, both grow alike, so what it missed (their difference) is exact: if that is the same at both
 * ends of a region, nothing is scaled. Once it differs, the event shares the PMU with others, and is
 * read by system calls from then on, which give exact times.
 *
 * A fork's child does not inherit these mappings. So their addresses are in memory that the kernel
 * wipes in a child, which then uses read(2) until fork_child has withdrawn what is its parent's,
 * also if it was made without the C library. Source: madvise(2), MADV_WIPEONFORK.
 */
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "runtime/grant.h"
#include "runtime/pmc.h"
#include "runtime/state.h"

/* In separate memory, wiped in a fork's child. */
struct grant_pages {
	const struct perf_event_mmap_page *page[MPERF_GRANTS_MAX]; /* NULL: use read(2) */
	uint64_t missed_ns[MPERF_GRANTS_MAX];
	bool was_read[MPERF_GRANTS_MAX]; /* and missed_ns is known */
};

static bool event_id(int fd, uint64_t *ret_id)
{
	return ioctl(fd, PERF_EVENT_IOC_ID, ret_id) == 0;
}

static void close_all(const int *fds, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		close(fds[i]);
}

static size_t page_bytes(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

static void pages_free(struct state *s, struct grant *g)
{
	for (uint32_t i = 0; g->pages && i < g->n; i++)
		if (g->pages->page[i]) {
			munmap((void *)g->pages->page[i], page_bytes());
			s->n_grant_pages--;
		}
	if (g->pages)
		munmap(g->pages, sizeof(*g->pages));
	g->pages = NULL;
}

/* The page of an event that its thread may read; NULL: none. */
static const struct perf_event_mmap_page *page_map(int fd)
{
	struct perf_event_mmap_page *page = mmap(NULL, page_bytes(), PROT_READ, MAP_SHARED, fd, 0);
	if (page == MAP_FAILED)
		return NULL;
	if (mperf_pmc_possible(page))
		return page;
	munmap(page, page_bytes());
	return NULL;
}

static void pages_map(struct state *s, struct grant *g)
{
	if (!mperf_pmc_counter || s->n_grant_pages + g->n > MPERF_GRANT_PAGES_MAX)
		return;
	struct grant_pages *pages = mmap(
		NULL, sizeof(*pages), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (pages == MAP_FAILED)
		return;
	g->pages = pages;
	uint32_t n = 0;
	bool wiped = madvise(pages, sizeof(*pages), MADV_WIPEONFORK) == 0;
	for (uint32_t i = 0; i < g->n && wiped; i++) {
		pages->page[i] = page_map(g->fds[i]);
		n += pages->page[i] != NULL;
	}
	s->n_grant_pages += n;
	if (n == 0)
		pages_free(s, g);
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
		event_id(fds[i], &g->ids[i]); /* never read a descriptor that is not an event */
	}
	pages_map(s, g);
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
		pages_free(s, g);
		close_all(g->fds, g->n);
		munmap(g, sizeof(*g));
	}
}

/* Read one word, or three with the times. Source: perf_event_open(2), "Reading results". */
static bool read_call(const struct grant *g, uint32_t i, struct grant_reading *ret_reading)
{
	uint64_t id, words[3] = {0};
	if (!event_id(g->fds[i], &id) || id != g->ids[i])
		return false;
	long n = syscall(SYS_read, g->fds[i], words, sizeof(words));
	if (n != sizeof(words[0]) && n != sizeof(words))
		return false;
	*ret_reading = (struct grant_reading){words[0], words[1], words[2], false};
	return true;
}

/* False: it is on no counter, or shares the PMU. */
static bool read_direct(struct grant_pages *pages, uint32_t i, struct grant_reading *ret_reading)
{
	struct grant_reading r = {0};
	if (!pages || !pages->page[i] || !mperf_pmc_read(pages->page[i], mperf_pmc_counter, &r))
		return false;
	const uint64_t missed_ns = r.enabled_ns - r.running_ns;
	if (pages->was_read[i] && pages->missed_ns[i] != missed_ns)
		return false;
	pages->missed_ns[i] = missed_ns;
	pages->was_read[i] = true;
	r.direct = true;
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
			if (!read_direct(g->pages, i, &readings[i]) &&
				!read_call(g, i, &readings[i]))
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
	bool shared = enabled_ns != running_ns;
	if (shared && (running_ns == 0 || from->direct || to->direct))
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
