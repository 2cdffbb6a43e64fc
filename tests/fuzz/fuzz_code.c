/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Any bytes as a listing of machine code, the first of them choosing the ISA: blocks cover all
 * instructions once, loops nest, estimates are in order. And the same bytes as a table of mnemonics.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/code/estimate.h"
#include "proto/base/memory.h"

#define INSTRUCTIONS_MAX 256

static void must_cover(const struct graph *g, uint32_t n)
{
	uint32_t at = 0;
	for (uint32_t b = 0; b < g->n_code; b++) {
		if (g->block[b].first != at || g->block[b].n == 0)
			abort();
		at += g->block[b].n;
		if (g->block[b].loop != GRAPH_NONE && g->block[b].loop >= g->n_loops)
			abort();
	}
	for (uint32_t l = 0; l < g->n_loops; l++)
		if (g->loop[l].parent != GRAPH_NONE && g->loop[l].parent >= l)
			abort();
	if (at != n)
		abort();
}

static void must_estimate(const struct graph *g, const struct instruction *i, uint32_t n)
{
	struct code_sample sample[INSTRUCTIONS_MAX];
	struct {
		struct code_reply reply;
		struct code_loop loop[INSTRUCTIONS_MAX];
	} *m = calloc(1, sizeof(*m));
	if (!m)
		return;
	m->reply = (struct code_reply){
		.magic = CODE_MAGIC, .version = CODE_VERSION, .state = CODE_READ};
	for (uint32_t k = 0; k < n; k++) {
		sample[k] = (struct code_sample){
			.offset = i[k].address, .samples = k % 7, .ns = k, .instructions = -1};
		m->reply.samples += k % 7;
	}
	const struct estimate_question q = {i, n, g, sample, n, {1, 4}, NULL};
	if (estimate_loops(&q, m->loop, &m->reply.n_loops) == 0 &&
		!code_reply_check(m, sizeof(m->reply) + m->reply.n_loops * sizeof(*m->loop), n))
		abort();
	free(m);
}

static void read_listing(const struct table *t, enum isa isa, char *text)
{
	static struct instruction i[INSTRUCTIONS_MAX];
	struct vector_state v = {.sew_bits = 0};
	struct graph g;
	uint32_t n = 0;
	char *save = NULL;
	for (char *line = strtok_r(text, "\n", &save); line && n < INSTRUCTIONS_MAX;
		line = strtok_r(NULL, "\n", &save)) {
		i[n] = (struct instruction){.address = 4 * n, .length = 4};
		instruction_read(t, isa, line, &v, &i[n++]);
	}
	if (n == 0 || graph_make(&g, i, n) != 0)
		return;
	must_cover(&g, n);
	must_estimate(&g, i, n);
	graph_clear(&g);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct table ours;
	struct table any;
	unsigned line;
	_cleanup_(freep) char *text = calloc(1, size + 1);
	if (!text || size == 0 || (!ours.row && table_load(&ours) != 0))
		return 0;
	int r = table_parse(&any, (const char *)data, size, &line);
	if (r == 0) {
		if (any.first[N_ISAS] != any.n)
			abort();
		table_find(&any, ISA_AARCH64, "fmadd");
		table_clear(&any);
	}
	memcpy(text, data + 1, size - 1);
	read_listing(&ours, (enum isa)(*data % N_ISAS), text);
	return 0;
}
