/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "daemon/code/reader.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/code/disassemble.h"
#include "daemon/code/elf.h"
#include "daemon/code/estimate.h"
#include "proto/base/memory.h"

/* A function longer than this is a table, or an attack: generated parsers have 1 MB. */
#define FUNCTION_BYTES_MAX (4u << 20)

static int compare_samples(const void *a, const void *b)
{
	const struct code_sample *x = a, *y = b;
	return (x->offset > y->offset) - (x->offset < y->offset);
}

/* Bytes that are no instruction are skipped by the ISA's smallest step, and marked as unknown
 * code. */
static uint32_t read_function(const struct table *t, const struct code_file *f,
	struct disassembler *d, const struct code_function *function, struct instruction *i)
{
	static const uint8_t steps[N_ISAS] = {1, 4, 2};
	struct vector_state v = {.sew_bits = 0};
	uint32_t n = 0;
	for (uint64_t at = 0; at < function->bytes;) {
		char text[DISASSEMBLE_TEXT_BYTES];
		const uint8_t *bytes = (const uint8_t *)f->file.bytes + function->offset + at;
		size_t length = disassemble(d, bytes, function->bytes - at, text);
		i[n] = (struct instruction){.address = function->offset + at,
			.length = (uint32_t)(length ? length : steps[f->isa])};
		if (length)
			instruction_read(t, f->isa, text, &v, &i[n]);
		else
			i[n].unknown = true;
		at += i[n++].length;
	}
	return n;
}

struct reading {
	const struct table *t;
	struct vectors vectors;
	uint64_t work; /* as in struct estimate_question */
	struct code_file file;
	struct disassembler *disassembler;
	struct code_reply *reply;
	struct code_loop *loop;
};

/* 0, GRAPH_TOO_LARGE, -errno */
static int take_function(struct reading *g, const struct code_function *function,
	const struct code_sample *sample, uint32_t n_samples)
{
	static const uint8_t steps[N_ISAS] = {1, 4, 2};
	struct graph graph;
	uint32_t n_loops = 0;
	if (function->bytes > FUNCTION_BYTES_MAX)
		return GRAPH_TOO_LARGE;
	_cleanup_(freep) struct instruction *i =
		calloc(function->bytes / steps[g->file.isa] + 1, sizeof(*i));
	if (!i)
		return -ENOMEM;
	uint32_t n = read_function(g->t, &g->file, g->disassembler, function, i);
	int r = graph_make(&graph, i, n);
	if (r != 0)
		return r;
	const struct estimate_question q = {i, n, &graph, sample, n_samples, g->vectors, &g->work};
	r = estimate_loops(&q, g->loop + g->reply->n_loops, &n_loops);
	g->reply->n_loops += n_loops;
	graph_clear(&graph);
	return r;
}

/* Samples of one function are adjacent. */
static int take_samples(struct reading *g, const struct code_sample *sample, uint32_t n)
{
	int r = 0;
	for (uint32_t i = 0, end; i < n && r >= 0; i = end) {
		const struct code_function *f = code_file_function(&g->file, sample[i].offset);
		uint64_t samples = sample[i].samples;
		for (end = i + 1; end < n; end++) {
			if (!f || code_file_function(&g->file, sample[end].offset) != f)
				break;
			samples += sample[end].samples;
		}
		r = f ? take_function(g, f, sample + i, end - i) : GRAPH_TOO_LARGE;
		g->reply->outside += r > 0 ? samples : 0;
	}
	return r < 0 ? r : 0;
}

/* In multiples of the shortest. */
static struct vectors vectors_of(enum isa isa, uint32_t bits)
{
	static const uint32_t most[N_ISAS] = {
		CODE_VECTOR_BITS_LEAST, CODE_VECTOR_BITS_MOST_SVE, CODE_VECTOR_BITS_MOST_RVV};
	double least = CODE_VECTOR_BITS_LEAST;
	if (isa != ISA_X86_64 && bits)
		return (struct vectors){bits / least, bits / least};
	return (struct vectors){1, most[isa] / least};
}

static bool is_other(const struct code_file *f, const struct code_request *request)
{
	const uint8_t *id;
	size_t n = elf_file_build_id(&f->file, &id);
	return request->n_build_id &&
	       (n != request->n_build_id || memcmp(id, request->build_id, n));
}

int code_answer(const struct table *t, int file_fd, const struct code_request *request,
	struct code_sample *samples, struct code_reply *ret_reply, struct code_loop **ret_loops)
{
	struct code_reply reply = {
		.magic = CODE_MAGIC, .version = CODE_VERSION, .state = CODE_READ};
	struct reading g = {.t = t, .reply = &reply};
	qsort(samples, request->n_samples, sizeof(*samples), compare_samples);
	for (uint32_t i = 0; i < request->n_samples; i++)
		reply.samples += samples[i].samples;
	g.loop = calloc((size_t)request->n_samples + 1, sizeof(*g.loop));
	if (!g.loop)
		return -ENOMEM;
	int r = code_file_open(&g.file, file_fd);
	if (r > 0)
		reply.state = r == CODE_NO_ISA ? CODE_UNKNOWN_ISA : CODE_MALFORMED;
	else if (r == 0 && is_other(&g.file, request))
		reply.state = CODE_OTHER_FILE;
	else if (r == 0 && disassembler_open(&g.disassembler, g.file.isa) != 0)
		reply.state = CODE_UNKNOWN_ISA;
	g.vectors = vectors_of(g.file.isa, request->vector_bits);
	if (r == 0 && reply.state == CODE_READ)
		r = take_samples(&g, samples, request->n_samples);
	disassembler_close(g.disassembler);
	code_file_close(&g.file);
	if (r < 0) {
		free(g.loop);
		return r;
	}
	*ret_reply = reply;
	*ret_loops = g.loop;
	return 0;
}
