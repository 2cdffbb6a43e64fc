/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * All areas are in one list that only grows, each with a word that says whether it is taken. Taking
 * one sets that word, so there is no race between two threads, or between a thread and its signal
 * handler, and no memory is handed out twice. The list is walked only if some area is free, that is
 * when threads or libraries come and go.
 */
#include <string.h>
#include <sys/mman.h>

#include "runtime/area.h"

#define PAGE_BYTES 4096u        /* cleared by memset up to this; any page is a multiple of it */
#define ABOVE_BYTES (16u << 20) /* beyond the program's variables, and what grows behind them */
#define COUNTERS_MAX (1u << 26) /* half a gigabyte of them; keeps sums of sizes from overflowing */

/* An area up to half as large again as requested is acceptable. */
static int fits(const struct area *a, size_t bytes)
{
	return a->bytes >= bytes && a->bytes <= bytes + bytes / 2;
}

static struct area *take_free(struct area_pool *pool, size_t bytes)
{
	if (__atomic_load_n(&pool->n_free, __ATOMIC_ACQUIRE) == 0)
		return NULL;

	struct area *a = __atomic_load_n(&pool->first, __ATOMIC_ACQUIRE);
	for (; a; a = a->next) {
		uint32_t nobody = 0;
		if (fits(a, bytes) && __atomic_compare_exchange_n(&a->taken, &nobody, 1, 0,
					      __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
			__atomic_sub_fetch(&pool->n_free, 1, __ATOMIC_RELAXED);
			return a;
		}
	}
	return NULL;
}

static struct area *take_new(struct area_pool *pool, size_t bytes)
{
	if (__atomic_add_fetch(&pool->bytes, bytes, __ATOMIC_RELAXED) > pool->bytes_max)
		goto too_much;
	/* a hint that is taken is ignored */
	const uintptr_t at = __atomic_load_n(&pool->next, __ATOMIC_RELAXED)
				     ? __atomic_fetch_add(&pool->next, bytes, __ATOMIC_RELAXED)
				     : 0;
	struct area *a = mmap((void *)at, bytes, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (a == MAP_FAILED)
		goto too_much;

	a->bytes = bytes;
	a->taken = 1;
	a->next = __atomic_load_n(&pool->first, __ATOMIC_RELAXED);
	while (!__atomic_compare_exchange_n(
		&pool->first, &a->next, a, 1, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
		;
	return a;

too_much:
	__atomic_sub_fetch(&pool->bytes, bytes, __ATOMIC_RELAXED);
	return NULL;
}

void mperf_area_above(struct area_pool *pool, const void *address)
{
	const uintptr_t at = ((uintptr_t)address + ABOVE_BYTES) & ~(uintptr_t)(PAGE_BYTES - 1);

	__atomic_store_n(&pool->next, at, __ATOMIC_RELAXED);
}

struct area *mperf_area_take(struct area_pool *pool, size_t n_counters)
{
	if (n_counters > COUNTERS_MAX)
		return NULL;
	size_t n = (n_counters + 7) & ~(size_t)7;
	size_t bytes = sizeof(struct area) + 2 * n * sizeof(uint64_t);
	bytes = (bytes + PAGE_BYTES - 1) & ~(size_t)(PAGE_BYTES - 1);

	struct area *a = take_free(pool, bytes);
	return a ? a : take_new(pool, bytes);
}

void mperf_area_clear(struct area *a)
{
	size_t head = sizeof(*a);
	size_t first = a->bytes < 4 * PAGE_BYTES ? a->bytes : PAGE_BYTES;
	memset((char *)a + head, 0, first - head);
	/* Released pages read as zeros. If pages are larger than PAGE_BYTES, the kernel refuses an
	 * unaligned start, and we clear everything with memset. */
	if (first < a->bytes && madvise((char *)a + first, a->bytes - first, MADV_DONTNEED) != 0)
		memset((char *)a + first, 0, a->bytes - first);
}

void mperf_area_give(struct area_pool *pool, struct area *a)
{
	mperf_area_clear(a);
	__atomic_store_n(&a->taken, 0, __ATOMIC_RELEASE);
	__atomic_add_fetch(&pool->n_free, 1, __ATOMIC_RELEASE);
}
