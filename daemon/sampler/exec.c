/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Reports of execs, in a ring of their own: a flood of side-band records does not hide them. They come from a BPF
 * program, and can wait for the drain; else from an event that wakes us at once. The program is loaded once, when the first hart opens; a
 * refusal is remembered, so that not every hart tries again.
 */

#include <errno.h>
#include <unistd.h>

#include "daemon/kernel/exec_bpf.h"
#include "daemon/kernel/load_child.h"
#include "daemon/sampler/attr.h"
#include "daemon/sampler/sampler_private.h"

/* The tracepoint fires only when the new arguments are in place. Without access to tracefs, or
 * without tracefs, a dummy is used. */
static struct event exec_event(const struct kernel *k)
{
	struct event_list found = {0};
	struct event_error error;
	if (event_parse(k, "sched:sched_process_exec", &found, &error) == 0 && found.n_events == 1)
		return found.event[0];
	return event_dummy();
}

void exec_begin(struct sampler *s)
{
	s->execs.event = exec_event(s->kernel);
}

bool sampler_samples_execs(const struct sampler *s)
{
	return s->execs.event.type == PERF_TYPE_TRACEPOINT;
}

int sampler_exec_error(const struct sampler *s)
{
	return s->execs.error;
}

/* The smallest ring: some hundred execs of usual arguments. */
#define EXEC_RING_BYTES_MIN (32u << 10)

/* --- by BPF ----------------------------------------------------------------------------------- */

static int load(struct sampler *s)
{
	const struct kernel *k = s->kernel;
	int error = 0;

	if (s->execs.program)
		return 0;
	if (s->execs.error == 0 && !k->exec_new)
		s->execs.error = ENOTSUP;
	if (s->execs.error == 0 && s->machine.memory_kb && s->machine.memory_kb < BPF_MEMORY_KB_MIN)
		s->execs.error = ENOMEM;
	if (s->execs.error)
		return HART_REFUSED;
	int r = k->exec_new(k->userdata, s->machine.n_harts, &s->execs.program, &error);
	if (r > 0)
		s->execs.error = error ? error : EIO;
	return r > 0 ? HART_REFUSED : r;
}

void exec_close(struct sampler *s, int hart)
{
	if (!hart_set_has(&s->exec_records, hart))
		return;
	s->kernel->exec_forget(s->kernel->userdata, s->execs.program, hart);
	hart_set_remove(&s->exec_records, hart);
}

static int open_output(struct sampler *s, int hart, size_t ring_bytes)
{
	const struct kernel *k = s->kernel;
	struct perf_event_attr attr;
	struct stream output = {
		.role = STREAM_EXEC_BPF,
		.rung = s->plan[hart].rung,
		.hart = hart,
		.event = -1,
		.period = 1,
	};

	attr_exec_bpf(s, ring_bytes, &attr);
	int r = stream_open(s, &attr, -1, -1, &output);
	if (r < 0)
		return r;
	r = k->exec_watch(k->userdata, s->execs.program, hart, output.fd);
	if (r == 0)
		hart_set_add(&s->exec_records, hart);
	if (r == 0)
		r = exec_ring_map(s, &(struct ring){.hart = hart, .fd = output.fd}, ring_bytes);
	if (r < 0) {
		exec_close(s, hart);
		stream_close(s, &output);
	}
	return r;
}

/* Locked memory may be short: without these records, each full ring puts the owners of all processes in doubt, so a
 * smaller ring is better than none. The event is opened again for each size, since its watermark
 * depends on it. */
static int open_outputs(struct sampler *s, int hart)
{
	size_t n = exec_bpf_ring_bytes(s);
	int r = load(s);
	if (r != 0)
		return r;
	const size_t page = (size_t)getpagesize();
	const size_t least = page > EXEC_RING_BYTES_MIN ? page : EXEC_RING_BYTES_MIN;
	while ((r = open_output(s, hart, n)) == -EPERM && n / 2 >= least)
		n /= 2;
	return r;
}

void exec_end(struct sampler *s)
{
	if (s->execs.program)
		s->kernel->exec_free(s->kernel->userdata, s->execs.program);
}

/* --- by an event ------------------------------------------------------------------------------ */

static int open_ring(struct sampler *s, int hart, const struct event *e)
{
	struct perf_event_attr attr;
	attr_exec(s, e, &attr);
	struct stream stream = {
		.role = STREAM_EXEC,
		.rung = s->plan[hart].rung,
		.hart = hart,
		.event = -1,
	};
	int r = stream_open(s, &attr, -1, -1, &stream);
	if (r < 0)
		return r;
	/* a page holds 60 COMM records, and the ring is read at each record */
	size_t n = exec_ring_bytes(s, e);
	r = exec_ring_map(s, &(struct ring){.hart = hart, .fd = stream.fd}, n);
	if (r < 0)
		stream_close(s, &stream);
	return r;
}

/* Without any of them, only arguments of short-lived processes are missing, which is counted. */
void exec_open(struct sampler *s, int hart)
{
	if (s->options.per_task)
		return;
	int r = open_outputs(s, hart);
	if (r == -EMFILE && raise_descriptor_limit())
		r = open_outputs(s, hart);
	if (r == 0)
		return;
	struct event dummy = event_dummy();
	r = open_ring(s, hart, &s->execs.event);
	if (r == -EMFILE && raise_descriptor_limit())
		r = open_ring(s, hart, &s->execs.event);
	if (r < 0 && sampler_samples_execs(s))
		(void)open_ring(s, hart, &dummy);
}
