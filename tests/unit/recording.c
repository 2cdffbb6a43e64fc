/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* A ring is mounted in anonymous memory with a control page like the kernel's, so that ring.c reads
 * recorded bytes exactly as it reads live ones, from any position and around any edge.
 */

#include "tests/unit/recording.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "proto/base/memory.h"

static const char magic[8] = {'m', 'p', 'e', 'r', 'f', 'r', 'e', 'c'};

struct disc_stream {
	uint64_t id, leader;
	uint32_t role, rung;
	int32_t hart, event;
	uint64_t sample_type, read_format, regs_user, period, weight_ns;
};
_Static_assert(sizeof(struct disc_stream) == 72, "as documented in recording.h");

static int get(FILE *f, void *ret, size_t n)
{
	return fread(ret, 1, n, f) == n ? 0 : -EBADMSG;
}

static int load_stream(FILE *f, struct stream_table *t)
{
	struct disc_stream d;

	if (get(f, &d, sizeof(d)))
		return -EBADMSG;
	return stream_table_add(t, &(struct stream){
					   .id = d.id,
					   .leader = d.leader,
					   .role = d.role,
					   .rung = d.rung,
					   .hart = d.hart,
					   .event = d.event,
					   .sample_type = d.sample_type,
					   .read_format = d.read_format,
					   .regs_user = d.regs_user,
					   .period = d.period,
					   .weight_ns = d.weight_ns,
					   .build_ids = true,
					   .fd = -1,
				   });
}

static int load_ring(FILE *f, struct recording_ring *ret_ring)
{
	int32_t hart;
	uint32_t n;

	if (get(f, &hart, sizeof(hart)) || get(f, &n, sizeof(n)) || n > RECORDING_BYTES_MAX)
		return -EBADMSG;
	_cleanup_(freep) uint8_t *bytes = malloc(n ?: 1);
	if (!bytes)
		return -ENOMEM;
	if (get(f, bytes, n))
		return -EBADMSG;
	*ret_ring = (struct recording_ring){.hart = hart, .bytes = TAKE_PTR(bytes), .n = n};
	return 0;
}

static int load(FILE *f, struct recording *r)
{
	char start[sizeof(magic)];
	uint32_t head[4]; /* version, streams, rings, zero */

	if (get(f, start, sizeof(start)) || memcmp(start, magic, sizeof(magic)))
		return -EBADMSG;
	if (get(f, head, sizeof(head)) || head[0] != 1)
		return -EBADMSG;
	if (head[1] > RECORDING_STREAMS_MAX || head[2] > RECORDING_RINGS_MAX)
		return -EBADMSG;
	for (uint32_t i = 0; i < head[1]; i++) {
		int e = load_stream(f, &r->streams);
		if (e)
			return e;
	}
	for (uint32_t i = 0; i < head[2]; i++) {
		int e = load_ring(f, &r->ring[i]);
		if (e)
			return e;
		r->n_rings++;
	}
	return fgetc(f) == EOF ? 0 : -EBADMSG;
}

int recording_load(const char *path, struct recording *ret_recording)
{
	_cleanup_(fclosep) FILE *f = fopen(path, "re");
	struct recording r = {};

	if (!f)
		return -errno;
	int e = load(f, &r);
	if (e) {
		recording_clear(&r);
		return e;
	}
	*ret_recording = r;
	return 0;
}

void recording_clear(struct recording *r)
{
	for (size_t i = 0; i < r->n_rings; i++)
		free(r->ring[i].bytes);
	stream_table_clear(&r->streams);
	*r = (struct recording){};
}

static size_t page_bytes(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

int recording_append(struct ring *r, const uint8_t *bytes, size_t n)
{
	struct perf_event_mmap_page *control = r->map;
	uint8_t *data = (uint8_t *)r->map + page_bytes();

	if (n > r->data_bytes - (control->data_head - r->tail))
		return -ENOSPC;
	for (size_t i = 0; i < n; i++)
		data[(control->data_head + i) & (r->data_bytes - 1)] = bytes[i];
	control->data_head += n;
	return 0;
}

int recording_mount(
	const uint8_t *bytes, size_t n, size_t data_bytes, uint64_t tail, struct ring *ret_ring)
{
	for (size_t size = page_bytes(); !data_bytes; size *= 2)
		if (size >= n)
			data_bytes = size;

	void *map = mmap(NULL, page_bytes() + data_bytes, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (map == MAP_FAILED)
		return -errno;

	struct perf_event_mmap_page *control = map;
	control->data_head = control->data_tail = tail;
	control->data_offset = page_bytes();
	control->data_size = data_bytes;
	struct ring ring = {.map = map, .data_bytes = data_bytes, .tail = tail, .fd = -1};
	int r = recording_append(&ring, bytes, n);
	if (r) {
		munmap(map, page_bytes() + data_bytes);
		return r;
	}
	*ret_ring = ring;
	return 0;
}

void recording_unmount(struct ring *r)
{
	void *map = r->map;
	size_t n = page_bytes() + r->data_bytes;

	ring_clear(r);
	if (map)
		munmap(map, n);
}

void recording_put(struct recording_writer *w, const void *p, size_t n)
{
	if (n > sizeof(w->bytes) - w->n)
		abort(); /* the test's own bug */
	memcpy(w->bytes + w->n, p, n);
	w->n += n;
}

void recording_put_u64(struct recording_writer *w, uint64_t v)
{
	recording_put(w, &v, sizeof(v));
}

void recording_put_u32(struct recording_writer *w, uint32_t v)
{
	recording_put(w, &v, sizeof(v));
}

void recording_put_u16(struct recording_writer *w, uint16_t v)
{
	recording_put(w, &v, sizeof(v));
}

void recording_put_string(struct recording_writer *w, const char *s)
{
	recording_put(w, s, strlen(s) + 1);
	while (w->n % 8)
		recording_put(w, "", 1);
}

void recording_put_sample_id(struct recording_writer *w, uint32_t pid, uint32_t tid,
	uint64_t time_ns, uint32_t cpu, uint64_t id)
{
	recording_put_u32(w, pid);
	recording_put_u32(w, tid);
	recording_put_u64(w, time_ns);
	recording_put_u32(w, cpu);
	recording_put_u32(w, 0);
	recording_put_u64(w, id);
}

void recording_begin(struct recording_writer *w, uint32_t type, uint16_t misc)
{
	w->n = 0;
	recording_put_u32(w, type);
	recording_put_u16(w, misc);
	recording_put_u16(w, 0);
}

void recording_end(struct recording_writer *w)
{
	uint16_t size = (uint16_t)w->n;
	memcpy(w->bytes + 6, &size, sizeof(size));
}
