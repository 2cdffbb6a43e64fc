/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "client/report/pack.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "client/export/format.h"
#include "client/export/gzip.h"
#include "proto/base/memory.h"

/* LEB128, without a sign. */
static void put(FILE *f, uint64_t n)
{
	for (; n > 0x7f; n >>= 7)
		putc((int)(n & 0x7f) | 0x80, f);
	putc((int)n, f);
}

static void write_head(const struct gathered *g, FILE *f)
{
	fprintf(f,
		"{\"unit\":\"%s\",\"begin_ms\":%.3f,\"bucket_ms\":%.6g,\"buckets\":%u,\"coarse_"
		"ms\":%.6g,"
		"\"functions\":%u,\"nodes\":%u,\"tasks\":%u,\"rows\":%u,\"texts\":[",
		g->unit == MPERF__UNIT__UNIT_COUNT ? "count" : "us", (double)g->begin_ns * 1e-6,
		(double)g->bucket_ns * 1e-6, g->n_buckets, (double)g->coarse_ns * 1e-6,
		g->n_functions, g->n_nodes, g->n_tasks, g->n_rows);
	for (uint32_t i = 0; i < g->n_texts; i++) {
		fputs(i > 0 ? "," : "", f);
		export_json_text(f, g->text[i]);
	}
	fputs("]}\n", f);
}

/* The same member, of 32 bits, of all structs of an array. */
static void put_column(FILE *f, const void *array, size_t n, size_t bytes, size_t member)
{
	const char *at = array;
	for (size_t i = 0; i < n; i++) {
		uint32_t value;
		memcpy(&value, at + i * bytes + member, sizeof(value));
		put(f, value);
	}
}

static void write_columns(const struct gathered *g, FILE *f)
{
	put_column(f, g->function, g->n_functions, sizeof(*g->function),
		offsetof(struct gather_function, name));
	put_column(f, g->function, g->n_functions, sizeof(*g->function),
		offsetof(struct gather_function, module));
	put_column(f, g->function, g->n_functions, sizeof(*g->function),
		offsetof(struct gather_function, kind));
	for (uint32_t i = 1; i < g->n_nodes; i++)
		put(f, i - g->node[i].caller);
	for (uint32_t i = 1; i < g->n_nodes; i++)
		put(f, g->node[i].function);
	put_column(f, g->task, g->n_tasks, sizeof(*g->task), offsetof(struct gather_task, pid));
	put_column(f, g->task, g->n_tasks, sizeof(*g->task), offsetof(struct gather_task, tid));
	put_column(f, g->task, g->n_tasks, sizeof(*g->task), offsetof(struct gather_task, process));
	put_column(f, g->task, g->n_tasks, sizeof(*g->task), offsetof(struct gather_task, thread));
	put_column(f, g->task, g->n_tasks, sizeof(*g->task), offsetof(struct gather_task, cgroup));
	for (uint32_t i = 0; i < g->n_rows; i++)
		put(f, (uint64_t)(g->row[i].at_ns - (i > 0 ? g->row[i - 1].at_ns : 0)));
	put_column(f, g->row, g->n_rows, sizeof(*g->row), offsetof(struct gather_row, event));
	put_column(f, g->row, g->n_rows, sizeof(*g->row), offsetof(struct gather_row, task));
	for (uint32_t i = 0; i < g->n_rows; i++)
		put(f, (uint64_t)(int64_t)g->row[i].hart + 1);
	put_column(f, g->row, g->n_rows, sizeof(*g->row), offsetof(struct gather_row, node));
	const uint64_t unit = g->unit == MPERF__UNIT__UNIT_COUNT ? 1 : 1000;
	for (uint32_t i = 0; i < g->n_rows; i++)
		put(f, (g->row[i].value + unit / 2) / unit);
}

static void write_base64(const unsigned char *p, size_t n, FILE *out)
{
	static const char digit[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	for (size_t i = 0; i < n; i += 3) {
		const size_t rest = n - i < 3 ? n - i : 3;
		const uint32_t bits = (uint32_t)p[i] << 16 |
				      (rest > 1 ? (uint32_t)p[i + 1] << 8 : 0) |
				      (rest > 2 ? p[i + 2] : 0);
		putc(digit[bits >> 18], out);
		putc(digit[bits >> 12 & 63], out);
		putc(rest > 1 ? digit[bits >> 6 & 63] : '=', out);
		putc(rest > 2 ? digit[bits & 63] : '=', out);
	}
}

/* Head and columns, before they are compressed. The caller frees. */
static int write_raw(const struct gathered *g, char **ret_raw, size_t *ret_size)
{
	FILE *f = open_memstream(ret_raw, ret_size);
	if (!f)
		return -ENOMEM;
	write_head(g, f);
	write_columns(g, f);
	return fclose(f) == 0 ? 0 : -ENOMEM;
}

static int compress_raw(const char *raw, size_t n, char **ret_packed, size_t *ret_size)
{
	struct gzip *z;
	FILE *f = open_memstream(ret_packed, ret_size);
	if (!f)
		return -ENOMEM;
	int r = gzip_new(f, GZIP_SMALL, &z);
	if (r == 0) {
		gzip_write(z, raw, n);
		gzip_end(z);
		gzip_free(z);
	}
	return fclose(f) == 0 ? r : -ENOMEM;
}

int pack_write(const struct gathered *g, FILE *out)
{
	_cleanup_(freep) char *raw = NULL, *packed = NULL;
	size_t raw_size = 0, packed_size = 0;
	int r = write_raw(g, &raw, &raw_size);
	if (r == 0)
		r = compress_raw(raw, raw_size, &packed, &packed_size);
	if (r == 0)
		write_base64((const unsigned char *)packed, packed_size, out);
	return r;
}
