/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* One byte that chooses a stream, then a record. Its size and its identifier are set right, or
 * nothing but the first checks would ever run; the two upper bits of the byte leave them alone. */

#include <stdlib.h>
#include <string.h>

#include "daemon/decode/record.h"

#define FULL ((uint64_t)(PERF_SAMPLE_MAX - 1) & ~(uint64_t)PERF_SAMPLE_REGS_INTR)
#define GROUP (PERF_FORMAT_GROUP | PERF_FORMAT_ID | PERF_FORMAT_TOTAL_TIME_ENABLED)

static struct stream streams[] = {
	{.id = 0, .sample_type = STREAM_SAMPLE_ID},
	{.id = 1,
		.sample_type = STREAM_SAMPLE_ID | PERF_SAMPLE_IP | PERF_SAMPLE_PERIOD |
			       PERF_SAMPLE_CGROUP | PERF_SAMPLE_CALLCHAIN,
		.software = true}, /* so that samples of hart 0 with no one's id are its */
	{.id = 2,
		.sample_type = STREAM_SAMPLE_ID | PERF_SAMPLE_IP | PERF_SAMPLE_PERIOD |
			       PERF_SAMPLE_CGROUP | PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER,
		.regs_user = 0xff0fff},
	{.id = 3,
		.sample_type = STREAM_SAMPLE_ID | PERF_SAMPLE_IP | PERF_SAMPLE_PERIOD |
			       PERF_SAMPLE_CGROUP | PERF_SAMPLE_READ,
		.read_format = GROUP | PERF_FORMAT_TOTAL_TIME_RUNNING},
	{.id = 4, .sample_type = FULL, .read_format = GROUP | PERF_FORMAT_LOST, .regs_user = 7},
	{.id = 5, .sample_type = FULL, .read_format = PERF_FORMAT_ID, .regs_user = UINT64_MAX},
	{.id = 6, .role = STREAM_SWITCH_BPF, .sample_type = STREAM_SAMPLE_ID | PERF_SAMPLE_RAW},
	{.id = 7, .role = STREAM_EXEC_BPF, .sample_type = STREAM_SAMPLE_ID | PERF_SAMPLE_RAW},
};
#define N_STREAMS (sizeof(streams) / sizeof(streams[0]))

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Look at every byte that a record lends. */
static uint64_t sum(const struct record *r)
{
	uint64_t s = 0;

	if (r->kind == RECORD_MMAP)
		return strlen(r->mmap.path);
	if (r->kind == RECORD_COMM)
		return strlen(r->comm.name);
	if (r->kind == RECORD_CGROUP)
		return strlen(r->cgroup.path);
	if (r->kind == RECORD_KSYMBOL)
		return strlen(r->ksymbol.name);
	for (uint64_t i = 0; r->kind == RECORD_DEFERRED && i < r->deferred.n_callchain; i++)
		s += ((const uint8_t *)r->deferred.callchain)[8 * i + 7];
	for (uint32_t i = 0; r->kind == RECORD_EXEC && i < r->exec.n_args; i++)
		s += (uint8_t)r->exec.args[i];
	if (r->kind != RECORD_SAMPLE)
		return s;
	for (uint64_t i = 0; i < r->sample.n_callchain; i++)
		s += record_chain_at(&r->sample, i);
	for (uint64_t i = 0; i < r->sample.n_stack; i++)
		s += r->sample.stack[i];
	for (int i = 0; r->sample.regs && i < __builtin_popcountll(r->stream->regs_user); i++)
		s += record_reg(&r->sample, (unsigned int)i);
	for (uint32_t i = 0; i < r->sample.n_read; i++)
		s += r->sample.read[i].value;
	return s;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct stream_table table = {.stream = streams, .n_streams = N_STREAMS};
	struct record r;
	uint64_t time_ns;

	if (size < 9 || size > 65536)
		return 0;
	size_t n = size - 1;
	uint8_t *bytes = malloc(n);
	memcpy(bytes, data + 1, n);
	if (!(data[0] & 0x80))
		memcpy(bytes + 6, &(uint16_t){(uint16_t)n}, 2);
	if (!(data[0] & 0x40) && n >= 16) {
		uint64_t id = data[0] % N_STREAMS;
		uint32_t type;
		memcpy(&type, bytes, sizeof(type));
		memcpy(type == PERF_RECORD_SAMPLE ? bytes + 8 : bytes + n - 8, &id, sizeof(id));
	}
	int timed = record_time(bytes, n, &table, &time_ns);
	if (record_decode(bytes, n, &table, &r) == 0) {
		/* not compared with anything: a fuzzer finds what a sum is compared with */
		volatile uint64_t seen = sum(&r);
		(void)seen;
		if (timed != RECORD_UNTIMED && (timed != 0 || time_ns != r.time_ns))
			abort(); /* what has a record has a time to be believed, and the same */
	}
	free(bytes);
	return 0;
}
