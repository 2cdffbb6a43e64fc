/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* A record is read by a cursor that only moves forward inside the record and remembers the first
 * error: a field that is cut off, or a count that the record cannot hold. After an error every take
 * returns zeros, so a layout reads as the list of its fields in the kernel's order and is checked
 * once at its end.
 *
 *      sample      | header | identifier | fields by sample_type …            |
 *      the others  | header | fields by type …  | sample_id …    | identifier |
 *
 * The identifier of a sample is at a fixed offset, that of the others after their body (trailer.h),
 * so the stream, which determines the layout of the rest, can be found first. Source of every
 * layout: man perf_event_open, "MMAP layout"; include/uapi/linux/perf_event.h of Linux 6.12, enum
 * perf_event_type; the order of the last fields of a sample: perf_output_sample() in
 * kernel/events/core.c of Linux 6.12.
 */

#include <linux/types.h>

#include "daemon/decode/cursor.h"
#include "daemon/decode/record.h"
#include "daemon/decode/sample_stream.h"
#include "daemon/decode/trailer.h"
#include "daemon/kernel/exec_layout.h"
#include "daemon/kernel/switch_layout.h"

#include <string.h>
#include <sys/mman.h>

/* Fields whose length the stream does not give (it depends on attr.sample_regs_intr), and bits that
 * are newer than this file. The sampler sets none of them; samples with them are skipped. */
#define SAMPLE_TYPE_UNREADABLE (~(uint64_t)(PERF_SAMPLE_MAX - 1) | PERF_SAMPLE_REGS_INTR)

#define N_TYPES (RECORD_TYPE_CALLCHAIN_DEFERRED + 1)

#define BRANCH_ENTRY_BYTES 24 /* Source: struct perf_branch_entry: from, to, flags */

/* --- header, identifier, sample_id ------------------------------------------------------------ */

static int check_header(const uint8_t *bytes, size_t n, struct perf_event_header *ret_header)
{
	struct perf_event_header h;

	if (n < sizeof(h))
		return RECORD_TRUNCATED;
	memcpy(&h, bytes, sizeof(h));
	if (h.size < sizeof(h) || h.size < n)
		return RECORD_HOSTILE;
	if (h.size > n)
		return RECORD_TRUNCATED;
	if (h.type == 0 || h.type >= N_TYPES)
		return RECORD_SKIPPED;
	if (n < sizeof(h) + sizeof(uint64_t)) /* the identifier */
		return RECORD_TRUNCATED;

	*ret_header = h;
	return 0;
}

static int find_sample(const uint8_t *bytes, size_t n, const struct stream_table *streams,
	const struct stream **ret_stream)
{
	uint64_t id;

	memcpy(&id, bytes + sizeof(struct perf_event_header), sizeof(id));
	const struct stream *s = stream_table_find(streams, id);
	if (!s)
		s = sample_stream_find(bytes, n, streams);
	if (!s)
		return RECORD_STRANGER;
	*ret_stream = s;
	return 0;
}

/* Check the header, find the stream of a record, and, but for samples, its sample_id. */
static int find_stream(const uint8_t *bytes, size_t n, const struct stream_table *streams,
	struct perf_event_header *ret_header, struct trailer *ret_trailer)
{
	struct perf_event_header h;
	struct trailer t = {0};
	int r = check_header(bytes, n, &h);
	if (r)
		return r;

	bool sample = h.type == PERF_RECORD_SAMPLE;
	r = sample ? find_sample(bytes, n, streams, &t.stream)
		   : trailer_find(bytes, n, streams, &t);
	if (r)
		return r;
	if ((t.stream->sample_type & STREAM_SAMPLE_ID) != STREAM_SAMPLE_ID)
		return RECORD_HOSTILE;
	if (sample && t.stream->sample_type & SAMPLE_TYPE_UNREADABLE)
		return RECORD_SKIPPED;

	*ret_header = h;
	*ret_trailer = t;
	return 0;
}

/* The fields common to a sample and a sample_id. */
static void take_task(struct cursor *c, struct record *r)
{
	r->pid = take_u32(c);
	r->tid = take_u32(c);
}

static void take_cpu(struct cursor *c, struct record *r)
{
	r->cpu = take_u32(c);
	take_u32(c); /* reserved */
}

static void take_sample_id(struct cursor *c, struct record *r)
{
	uint64_t type = r->stream->sample_type;

	take_task(c, r);
	r->time_ns = take_u64(c);
	if (type & PERF_SAMPLE_ID)
		take_u64(c);
	if (type & PERF_SAMPLE_STREAM_ID)
		take_u64(c);
	take_cpu(c, r);
	r->id = take_u64(c);
}

/* --- samples ---------------------------------------------------------------------------------- */

static void take_times(struct cursor *c, uint64_t format, struct record_sample *s)
{
	if (format & PERF_FORMAT_TOTAL_TIME_ENABLED)
		s->enabled_ns = take_u64(c);
	if (format & PERF_FORMAT_TOTAL_TIME_RUNNING)
		s->running_ns = take_u64(c);
}

static void take_value_tail(struct cursor *c, uint64_t format, struct record_read_value *v)
{
	if (format & PERF_FORMAT_ID)
		v->id = take_u64(c);
	if (format & PERF_FORMAT_LOST)
		take_u64(c);
}

/* Source: man perf_event_open, "struct read_format". */
static void take_read(struct cursor *c, const struct stream *stream, struct record_sample *s)
{
	uint64_t format = stream->read_format;

	if (!(format & PERF_FORMAT_GROUP)) {
		s->n_read = 1;
		s->read[0].id = stream->id;
		s->read[0].value = take_u64(c);
		take_times(c, format, s);
		take_value_tail(c, format, &s->read[0]);
		return;
	}

	uint64_t n = take_u64(c);
	if (n > RECORD_READ_VALUES_MAX)
		return fail(c, RECORD_HOSTILE);
	take_times(c, format, s);
	s->n_read = (uint32_t)n;
	for (uint32_t i = 0; i < s->n_read; i++) {
		s->read[i].value = take_u64(c);
		take_value_tail(c, format, &s->read[i]);
	}
}

static void take_stack(struct cursor *c, struct record_sample *s)
{
	uint64_t size = take_u64(c);
	if (size == 0)
		return; /* no user stack: then dyn_size is not written either */

	s->stack = take_array(c, size, 1);
	s->n_stack = take_u64(c);
	s->stack_fills = s->n_stack == size;
	if (s->n_stack > size)
		fail(c, RECORD_HOSTILE);
}

static void take_registers(struct cursor *c, const struct stream *stream, struct record_sample *s)
{
	s->regs_abi = take_u64(c);
	if (s->regs_abi == PERF_SAMPLE_REGS_ABI_NONE)
		return; /* a kernel thread: no registers follow */

	uint64_t n = (uint64_t)__builtin_popcountll(stream->regs_user);
	s->regs = (const uint64_t *)(const void *)take_array(c, n, sizeof(uint64_t));
}

/* A raw part is padded to whole words, its own length included. */
#define RAW_PADDING_BYTES_MAX 7

/* The values that a BPF program read at a switch, struct switch_values, or summed up, struct
 * switch_sums, cut after its last member. */
static void take_switch_values(const uint8_t *bytes, size_t n, struct cursor *c, struct record *r)
{
	struct cursor raw = {.at = bytes, .end = bytes + n};
	struct record_sample *s = &r->sample;
	uint32_t pid = take_u32(&raw), tid = take_u32(&raw);

	s->n_missed = take_u64(&raw);
	if (r->stream->role == STREAM_SWITCH_SUMS)
		s->ran_ns = take_u64(&raw);
	uint64_t n_members = take_u64(&raw);
	take_times(&raw, PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING, s);
	if (n_members > SWITCH_MEMBERS_MAX)
		return fail(c, RECORD_HOSTILE);
	s->n_read = (uint32_t)n_members;
	for (uint32_t i = 0; i < s->n_read; i++) {
		s->read[i].value = take_u64(&raw);
		s->read[i].id = take_u64(&raw);
	}
	if (raw.outcome || left(&raw) > RAW_PADDING_BYTES_MAX)
		return fail(c, raw.outcome ? raw.outcome : RECORD_HOSTILE);
	/* perf has no tid for a thread that was already reaped. */
	if (r->tid == RECORD_TID_GONE && tid) {
		r->pid = pid;
		r->tid = tid;
	}
}
_Static_assert(SWITCH_VALUES_BYTES(0) == 4 + 4 + 4 * 8 && SWITCH_SUMS_BYTES(0) == 4 + 4 + 5 * 8,
	"what is taken before the members");

static void take_raw(struct cursor *c, struct record *r)
{
	c->n_raw = take_u32(c);
	c->raw = take_array(c, c->n_raw, 1);
	if (c->raw &&
		(r->stream->role == STREAM_SWITCH_BPF || r->stream->role == STREAM_SWITCH_SUMS))
		take_switch_values(c->raw, c->n_raw, c, r);
}

/* The record of an exec, in place of the sample that carried it. */
static void take_exec(struct cursor *c, struct record *r)
{
	struct cursor raw = {.at = c->raw, .end = c->raw ? c->raw + c->n_raw : NULL};
	struct exec_head h;

	take(&raw, &h, sizeof(h));
	const uint8_t *args = take_array(&raw, h.n_copied, 1);
	if (raw.outcome || left(&raw) > RAW_PADDING_BYTES_MAX || h.n_copied > h.n_args)
		return fail(c, raw.outcome ? raw.outcome : RECORD_HOSTILE);
	r->kind = RECORD_EXEC;
	r->exec = (struct record_exec){
		.uid = h.uid,
		.gid = h.gid,
		.whole = h.flags & EXEC_WHOLE,
		.unjudged = h.flags & EXEC_UNJUDGED,
		.may_hide = h.flags & EXEC_MAY_HIDE,
		.cut = h.n_copied < h.n_args,
		.args = (const char *)args,
		.n_args = h.n_copied,
	};
}

/* The fields of variable length, between the period and the end. */
static void take_sample_data(struct cursor *c, struct record *r)
{
	const struct stream *stream = r->stream;
	struct record_sample *s = &r->sample;
	uint64_t type = stream->sample_type;

	if (type & PERF_SAMPLE_READ)
		take_read(c, stream, s);
	if (type & PERF_SAMPLE_CALLCHAIN) {
		s->n_callchain = take_u64(c);
		s->callchain = (const uint64_t *)(const void *)take_array(
			c, s->n_callchain, sizeof(uint64_t));
	}
	if (type & PERF_SAMPLE_RAW)
		take_raw(c, r);
	if (type & PERF_SAMPLE_BRANCH_STACK)
		take_array(c, take_u64(c), BRANCH_ENTRY_BYTES);
	if (type & PERF_SAMPLE_REGS_USER)
		take_registers(c, stream, s);
	if (type & PERF_SAMPLE_STACK_USER)
		take_stack(c, s);

	if (type & PERF_SAMPLE_WEIGHT_TYPE) /* either form of it is one word */
		take_u64(c);
	const uint64_t words =
		PERF_SAMPLE_DATA_SRC | PERF_SAMPLE_TRANSACTION | PERF_SAMPLE_PHYS_ADDR;
	for (uint64_t bits = type & words; bits; bits &= bits - 1)
		take_u64(c);
	if (type & PERF_SAMPLE_CGROUP)
		s->cgroup = take_u64(c);
	if (type & PERF_SAMPLE_DATA_PAGE_SIZE)
		take_u64(c);
	if (type & PERF_SAMPLE_CODE_PAGE_SIZE)
		take_u64(c);
	if (type & PERF_SAMPLE_AUX)
		take_array(c, take_u64(c), 1);
}

static void take_sample(struct cursor *c, struct record *r)
{
	uint64_t type = r->stream->sample_type;
	unsigned int mode = r->misc & PERF_RECORD_MISC_CPUMODE_MASK;
	struct record_sample *s = &r->sample;

	s->kernel = mode == PERF_RECORD_MISC_KERNEL || mode == PERF_RECORD_MISC_HYPERVISOR;
	take_u64(c); /* the id that the stream was found by, unless it was another session's */
	r->id = r->stream->id;
	if (type & PERF_SAMPLE_IP)
		s->ip = take_u64(c);
	take_task(c, r);
	r->time_ns = take_u64(c);
	if (type & PERF_SAMPLE_ADDR)
		take_u64(c);
	if (type & PERF_SAMPLE_ID)
		take_u64(c);
	if (type & PERF_SAMPLE_STREAM_ID)
		take_u64(c);
	take_cpu(c, r);
	s->period = type & PERF_SAMPLE_PERIOD ? take_u64(c) : r->stream->period;
	take_sample_data(c, r);
	if (left(c)) /* not our layout: nothing read from it can be trusted */
		fail(c, RECORD_HOSTILE);
	if (!c->outcome && r->stream->role == STREAM_EXEC_BPF)
		take_exec(c, r);
}

/* --- the others ------------------------------------------------------------------------------- */

static void take_mmap(struct cursor *c, struct record *r)
{
	struct record_mmap *m = &r->mmap;

	take_task(c, r);
	m->start = take_u64(c);
	m->bytes = take_u64(c);
	m->file_offset = take_u64(c);
	m->executable = !(r->misc & PERF_RECORD_MISC_MMAP_DATA);
	m->path = take_string(c);
	if (m->bytes > UINT64_MAX - m->start)
		fail(c, RECORD_HOSTILE);
}

static void take_mmap_file(struct cursor *c, struct record *r)
{
	struct record_mmap *m = &r->mmap;

	/* The bit alone proves nothing: up to Linux 6.18 at least, the kernel leaves it set for
	 * every listener once one of them has requested build ids (perf_event_mmap_output ors it
	 * into a shared header). */
	if (!(r->misc & PERF_RECORD_MISC_MMAP_BUILD_ID) || !(r->stream && r->stream->build_ids)) {
		m->major = take_u32(c);
		m->minor = take_u32(c);
		m->inode = take_u64(c);
		m->generation = take_u64(c);
		return;
	}

	uint8_t size[4]; /* the size and three reserved bytes */
	take(c, size, sizeof(size));
	take(c, m->build_id, sizeof(m->build_id));
	if (size[0] > sizeof(m->build_id))
		return fail(c, RECORD_HOSTILE);
	m->n_build_id = size[0];
}

static void take_mmap2(struct cursor *c, struct record *r)
{
	struct record_mmap *m = &r->mmap;

	take_task(c, r);
	m->start = take_u64(c);
	m->bytes = take_u64(c);
	m->file_offset = take_u64(c);
	take_mmap_file(c, r);
	m->executable = take_u32(c) & PROT_EXEC;
	m->shared = take_u32(c) & MAP_SHARED;
	m->path = take_string(c);
	if (m->bytes > UINT64_MAX - m->start)
		fail(c, RECORD_HOSTILE);
}

static void take_comm(struct cursor *c, struct record *r)
{
	take_task(c, r);
	r->comm.exec = r->misc & PERF_RECORD_MISC_COMM_EXEC;
	r->comm.name = take_string(c);
}

/* FORK and EXIT. Their own time field equals that of sample_id. */
static void take_fork(struct cursor *c, struct record *r)
{
	r->pid = take_u32(c);
	r->fork.parent_pid = take_u32(c);
	r->tid = take_u32(c);
	r->fork.parent_tid = take_u32(c);
	take_u64(c);
}

static void take_cgroup(struct cursor *c, struct record *r)
{
	r->cgroup.id = take_u64(c);
	r->cgroup.path = take_string(c);
}

static void take_ksymbol(struct cursor *c, struct record *r)
{
	r->ksymbol.addr = take_u64(c);
	r->ksymbol.bytes = take_u32(c);
	take_u16(c); /* BPF program or other generated code: both are named alike */
	r->ksymbol.unregister = take_u16(c) & PERF_RECORD_KSYMBOL_FLAGS_UNREGISTER;
	r->ksymbol.name = take_string(c);
}

static void take_lost(struct cursor *c, struct record *r)
{
	take_u64(c); /* the event's id, which sample_id repeats */
	r->lost.n = take_u64(c);
}

static void take_lost_samples(struct cursor *c, struct record *r)
{
	r->lost.n = take_u64(c);
}

static void take_switched(struct cursor *c, struct record *r)
{
	(void)c;
	r->switched.out = r->misc & PERF_RECORD_MISC_SWITCH_OUT;
	r->switched.preempted = r->switched.out && r->misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT;
}

static void take_throttle(struct cursor *c, struct record *r)
{
	(void)r;
	take_u64(c); /* time, id and stream id: sample_id has them */
	take_u64(c);
	take_u64(c);
}

static void take_deferred(struct cursor *c, struct record *r)
{
	r->deferred.cookie = take_u64(c);
	r->deferred.n_callchain = take_u64(c);
	r->deferred.callchain = (const uint64_t *)(const void *)take_array(
		c, r->deferred.n_callchain, sizeof(uint64_t));
}

struct layout {
	enum record_kind kind;
	void (*take)(struct cursor *c, struct record *r); /* NULL: nothing in it is used */
};

static const struct layout layouts[N_TYPES] = {
	[PERF_RECORD_MMAP] = {RECORD_MMAP, take_mmap},
	[PERF_RECORD_LOST] = {RECORD_LOST, take_lost},
	[PERF_RECORD_COMM] = {RECORD_COMM, take_comm},
	[PERF_RECORD_EXIT] = {RECORD_EXIT, take_fork},
	[PERF_RECORD_THROTTLE] = {RECORD_THROTTLE, take_throttle},
	[PERF_RECORD_UNTHROTTLE] = {RECORD_UNTHROTTLE, take_throttle},
	[PERF_RECORD_FORK] = {RECORD_FORK, take_fork},
	[PERF_RECORD_READ] = {RECORD_OTHER, NULL},
	[PERF_RECORD_SAMPLE] = {RECORD_SAMPLE, take_sample},
	[PERF_RECORD_MMAP2] = {RECORD_MMAP, take_mmap2},
	[PERF_RECORD_AUX] = {RECORD_OTHER, NULL},
	[PERF_RECORD_ITRACE_START] = {RECORD_OTHER, NULL},
	[PERF_RECORD_LOST_SAMPLES] = {RECORD_LOST_SAMPLES, take_lost_samples},
	[PERF_RECORD_SWITCH] = {RECORD_SWITCH, take_switched},
	[PERF_RECORD_SWITCH_CPU_WIDE] = {RECORD_OTHER, NULL},
	[PERF_RECORD_NAMESPACES] = {RECORD_OTHER, NULL},
	[PERF_RECORD_KSYMBOL] = {RECORD_KSYMBOL, take_ksymbol},
	[PERF_RECORD_BPF_EVENT] = {RECORD_OTHER, NULL},
	[PERF_RECORD_CGROUP] = {RECORD_CGROUP, take_cgroup},
	[PERF_RECORD_TEXT_POKE] = {RECORD_OTHER, NULL},
	[PERF_RECORD_AUX_OUTPUT_HW_ID] = {RECORD_OTHER, NULL},
	[RECORD_TYPE_CALLCHAIN_DEFERRED] = {RECORD_DEFERRED, take_deferred},
};

/* A group's values are most of struct record, and mostly absent: clearing and copying them would
 * cost more than decoding. */
#define RECORD_HEAD_BYTES offsetof(struct record, sample.read)

static void record_copy(struct record *to, const struct record *from)
{
	memcpy(to, from, RECORD_HEAD_BYTES);
	if (from->kind == RECORD_SAMPLE)
		memcpy(to->sample.read, from->sample.read,
			from->sample.n_read * sizeof(*from->sample.read));
}

int record_decode(const uint8_t *bytes, size_t n, const struct stream_table *streams,
	struct record *ret_record)
{
	struct perf_event_header h;
	struct trailer t;
	int r = find_stream(bytes, n, streams, &h, &t);
	if (r)
		return r;

	const struct layout *layout = &layouts[h.type];
	struct record record;
	memset(&record, 0, RECORD_HEAD_BYTES);
	record.kind = layout->kind;
	record.misc = h.misc;
	record.stream = t.stream;
	struct cursor c = {.at = bytes + sizeof(h), .end = bytes + n};

	if (h.type != PERF_RECORD_SAMPLE) {
		/* sample_id first: it names the current task; the body may name another and then
		 * overrides it. */
		struct cursor tail = {.at = bytes + t.at, .end = bytes + t.at + t.bytes};
		c.end = tail.at;
		take_sample_id(&tail, &record);
	}
	if (layout->take)
		layout->take(&c, &record);
	if (c.outcome)
		return c.outcome;

	record_copy(ret_record, &record);
	return 0;
}

/* Offset of the hart in sample_id: after TID and TIME, and the ids if present. */
static size_t trailer_cpu_at(const struct trailer *t)
{
	uint64_t ids = t->stream->sample_type & (PERF_SAMPLE_ID | PERF_SAMPLE_STREAM_ID);
	return t->at + 16 + 8 * (size_t)__builtin_popcountll(ids);
}

/* An event bound to a hart only records what happens there. */
static bool trailer_is_plausible(const uint8_t *bytes, const struct trailer *t)
{
	uint32_t cpu;

	memcpy(&cpu, bytes + trailer_cpu_at(t), sizeof(cpu));
	return t->stream->hart < 0 || cpu == (uint32_t)t->stream->hart;
}

int record_time(
	const uint8_t *bytes, size_t n, const struct stream_table *streams, uint64_t *ret_time_ns)
{
	struct perf_event_header h;
	struct trailer t;
	int r = find_stream(bytes, n, streams, &h, &t);
	if (r)
		return r;

	size_t at; /* after TID, which is first in sample_id and third in a sample */
	if (h.type == PERF_RECORD_SAMPLE)
		at = sizeof(h) + (t.stream->sample_type & PERF_SAMPLE_IP ? 24 : 16);
	else if (!trailer_is_plausible(bytes, &t))
		return RECORD_UNTIMED;
	else
		at = t.at + 8;
	if (n < at + sizeof(*ret_time_ns))
		return RECORD_TRUNCATED;

	memcpy(ret_time_ns, bytes + at, sizeof(*ret_time_ns));
	return 0;
}
