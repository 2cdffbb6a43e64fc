/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * A file that claims to be what MPERF_OUTPUT named is asked, by its length, in one of the ways that
 * there are. Whatever it is, we answer or refuse, and a number in a row is one, or none.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/query/loops/blocks.h"
#include "daemon/query/loops/roofline.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int take_columns(void *u, const struct answer_column *c, size_t n)
{
	(void)u, (void)c, (void)n;
	return 0;
}

static int take_row(void *u, const struct answer_value *v, size_t n)
{
	(void)u;
	for (size_t i = 0; i < n; i++)
		if (v[i].kind == ANSWER_REAL && !isfinite(v[i].real))
			abort();
	return 0;
}

static int take_provenance(void *u, const struct answer_provenance *p)
{
	(void)u, (void)p;
	return 0;
}

static void ask(const struct loop_output *file)
{
	const struct answer answer = {take_columns, take_row, take_provenance, NULL};
	const struct query_filter all = {0};
	struct query_source from = {.output = file};
	struct query_error error;
	const struct roofline_question question = {
		.by = (enum roofline_by)(file->n % N_ROOFLINE_BY), .limit = 3, .filter = &all};
	query_roofline(&from, 1, &question, &answer, &error);
	const struct blocks_question blocks = {.filter = &all};
	query_blocks(&from, 1, &blocks, &answer, &error);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* to the byte, so that a sanitizer sees the first one too many */
	uint8_t *copy = malloc(size ? size : 1);
	if (!copy)
		return 0;
	if (size)
		memcpy(copy, data, size);
	ask(&(struct loop_output){copy, size, "file"});
	free(copy);
	return 0;
}
