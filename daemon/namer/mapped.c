/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * The event is a dummy that never samples. It records all mappings of this thread, including the allocator's, so
 * older records in the ring are dropped first. The record of our mapping may follow a record of lost ones; of its
 * path only the length is used.
 */
#include "daemon/namer/mapped.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "proto/base/memory.h"

/* A record has 64 bytes and a path of at most 4096, and the kernel's pages have 4096 at least. */
#define RING_PAGES 2

struct mapped {
	int fd;
	size_t page_bytes;
	struct perf_event_mmap_page *control; /* and RING_PAGES behind it */
};

/* Source: man perf_event_open, PERF_RECORD_MMAP2 */
struct mmap2 {
	struct perf_event_header head;
	uint32_t pid, tid;
	uint64_t addr, len, pgoff;
	uint32_t major, minor;
	uint64_t inode, generation;
};
_Static_assert(sizeof(struct mmap2) == 64, "without prot, flags and path");

DEFINE_CLEANUP(struct mapped *, mapped_free)

int mapped_new(struct mapped **ret_mapped)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_DUMMY,
		.mmap = 1,
		.mmap2 = 1,
		.mmap_data = 1,
		.exclude_kernel = 1,
		.exclude_hv = 1,
	};
	_cleanup_(mapped_freep) struct mapped *m = calloc(1, sizeof(*m));

	if (!m)
		return -ENOMEM;
	m->page_bytes = (size_t)sysconf(_SC_PAGESIZE);
	m->fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	if (m->fd < 0)
		return -errno;
	void *ring = mmap(NULL, (1 + RING_PAGES) * m->page_bytes, PROT_READ | PROT_WRITE,
		MAP_SHARED, m->fd, 0);
	if (ring == MAP_FAILED)
		return -errno;
	m->control = ring;
	*ret_mapped = TAKE_PTR(m);
	return 0;
}

struct mapped *mapped_free(struct mapped *m)
{
	if (!m)
		return NULL;
	if (m->control)
		munmap(m->control, (1 + RING_PAGES) * m->page_bytes);
	if (m->fd >= 0)
		close(m->fd);
	free(m);
	return NULL;
}

static void ring_copy(const struct mapped *m, uint64_t at, void *to, size_t n)
{
	const uint8_t *ring = (const uint8_t *)m->control + m->page_bytes;

	for (size_t i = 0; i < n; i++)
		((uint8_t *)to)[i] = ring[(at + i) % (RING_PAGES * m->page_bytes)];
}

int mapped_ask(struct mapped *m, int fd, struct mapped_file *ret_file)
{
	struct mmap2 r;
	/* the thread itself writes to the ring, in its mmap() */
	uint64_t at = __atomic_load_n(&m->control->data_head, __ATOMIC_ACQUIRE);

	__atomic_store_n(&m->control->data_tail, at, __ATOMIC_RELEASE);
	void *start = mmap(NULL, 1, PROT_READ, MAP_PRIVATE, fd, 0);
	if (start == MAP_FAILED)
		return -errno;
	const uint64_t end = __atomic_load_n(&m->control->data_head, __ATOMIC_ACQUIRE);
	munmap(start, 1);
	/* PERF_RECORD_MISC_MMAP_BUILD_ID may be set, and means nothing: we did not ask for it
	 * (daemon/decode/record.c). */
	for (; end - at >= sizeof(r); at += r.head.size) {
		ring_copy(m, at, &r, sizeof(r));
		if (r.head.type == PERF_RECORD_MMAP2 && r.addr == (uintptr_t)start) {
			*ret_file = (struct mapped_file){r.major, r.minor, r.inode, r.generation};
			return 0;
		}
		if (r.head.size < sizeof(r.head) || r.head.size > end - at)
			break;
	}
	return -ENODATA;
}
