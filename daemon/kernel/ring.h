/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* A perf ring: the mmap of one event, read in place
 *
 *      map                     map + page
 *      +---------------------+--------------------------------------+
 *      | perf_event_mmap_page| data, a power of two                 |
 *      |  data_head, _tail   |   [tail .. head) is ours, wrapping   |
 *      +---------------------+--------------------------------------+
 *
 * The kernel moves data_head, we move data_tail; a record that wraps is copied out.
 * Source: man perf_event_open, "MMAP layout"; include/uapi/linux/perf_event.h.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/kernel/kernel.h"

#define RECORD_BYTES_MAX 65535u /* perf_event_header.size is 16 bits wide */

struct ring {
	void *map; /* control page and data; NULL: closed */
	size_t data_bytes;
	uint64_t tail; /* next byte to read */
	uint64_t head; /* as of ring_snapshot */
	int hart;
	int fd;
	bool sideband; /* it carries only the side band */
	uint8_t raise; /* samples of that raise alone (sampler_raise_task); 0: the session's own */
	uint8_t *wrapped;   /* RECORD_BYTES_MAX + 1, for records that wrap; made on first need */
	bool wraps;         /* the record last peeked is the one in `wrapped` */
	size_t peeked;      /* size of the record last peeked, which ring_advance skips */
	uint64_t merged_ns; /* time of the record that merge returned last; 0: none */
	bool merged_sums;   /* that was a record of STREAM_SWITCH_SUMS */
};

enum {
	RING_EMPTY = 1, /* nothing below the snapshot */
	/* an impossible header (size 0, beyond head): the ring was reset to its head; count
	 * LOSS_RECORD */
	RING_BROKEN,
};

/* Read data_head with acquire semantics; later records are seen at the next snapshot. */
void ring_snapshot(struct ring *r);

/* The next record, borrowed until ring_advance: whole and contiguous, *ret_n ≤ RECORD_BYTES_MAX. 0,
 * RING_EMPTY, RING_BROKEN, -ENOMEM. Calling it again returns the same record. */
int ring_peek(struct ring *r, const uint8_t **ret_bytes, size_t *ret_n);

/* Skip the record last peeked. */
void ring_advance(struct ring *r);

/* Release consumed data to the kernel (release semantics). Once per drain. */
void ring_release(struct ring *r);

/* Free what the ring allocated, and zero it with fd -1. The code that opened it must unmap and
 * close it through struct kernel before. */
void ring_clear(struct ring *r);
