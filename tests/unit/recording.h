/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Recordings of rings, and rings made of bytes: support code of the unit tests
 *
 * A recording is what the kernel wrote into the rings of one short run, with the streams that say
 * how to read it (tests/records/README.md tells where each came from). All numbers little-endian:
 *
 *      "mperfrec"  u32 version = 1  u32 n_streams  u32 n_rings  u32 0
 *      n_streams × { u64 id, leader; u32 role, rung; i32 hart, event;
 *                    u64 sample_type, read_format, regs_user, period, weight_ns }
 *      n_rings   × { i32 hart; u32 n; n bytes of whole records, oldest first }
 */

#include <stddef.h>
#include <stdint.h>

#include "daemon/kernel/ring.h"
#include "daemon/sampler/stream.h"

#define RECORDING_RINGS_MAX 64
#define RECORDING_STREAMS_MAX 1024
#define RECORDING_BYTES_MAX (16u << 20)

struct recording_ring {
	int hart;
	uint8_t *bytes;
	size_t n;
};

struct recording {
	struct stream_table streams;
	struct recording_ring ring[RECORDING_RINGS_MAX];
	size_t n_rings;
};

/* Load a file. 0, -EBADMSG if it is not one of the above, -errno. */
int recording_load(const char *path, struct recording *ret_recording);
void recording_clear(struct recording *r);

/* Make a ring of data_bytes (a power of two; 0: the smallest page-sized one that holds n) which
 * holds n bytes from position tail on, wrapping as they must. 0 or -errno. */
int recording_mount(
	const uint8_t *bytes, size_t n, size_t data_bytes, uint64_t tail, struct ring *ret_ring);
/* Append n bytes, as the kernel would. -ENOSPC if they do not fit before what is not yet read. */
int recording_append(struct ring *r, const uint8_t *bytes, size_t n);
void recording_unmount(struct ring *r);

/* One record under construction. The header's size is set by recording_end. */
struct recording_writer {
	uint8_t bytes[RECORD_BYTES_MAX + 1];
	size_t n;
};
void recording_begin(struct recording_writer *w, uint32_t type, uint16_t misc);
void recording_put(struct recording_writer *w, const void *p, size_t n);
void recording_put_u64(struct recording_writer *w, uint64_t v);
void recording_put_u32(struct recording_writer *w, uint32_t v);
void recording_put_u16(struct recording_writer *w, uint16_t v);
/* With its NUL, padded to 8 bytes as the kernel pads names. */
void recording_put_string(struct recording_writer *w, const char *s);
/* The sample_id of STREAM_SAMPLE_ID. */
void recording_put_sample_id(struct recording_writer *w, uint32_t pid, uint32_t tid,
	uint64_t time_ns, uint32_t cpu, uint64_t id);
void recording_end(struct recording_writer *w);
