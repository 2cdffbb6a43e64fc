/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

#include "tests/unit/daemon/namer/made_go.h"

#include <stdio.h>

#include "tests/unit/test.h"

#define PARTS 5 /* names, units, files, steps, functions */

static void put(struct made_go *m, const void *bytes, size_t n)
{
	ck_assert_uint_le(m->n + n, sizeof(m->bytes));
	memcpy(m->bytes + m->n, bytes, n);
	m->n += n;
}

static void put_number(struct made_go *m, uint64_t value, size_t n)
{
	uint32_t half = (uint32_t)value;
	uint8_t byte = (uint8_t)value;

	put(m, n == 8 ? (void *)&value : n == 4 ? (void *)&half : (void *)&byte, n);
}

/* `first` for 128 bytes of code, then `second` for as many. */
static void put_steps(struct made_go *m, unsigned first, unsigned second)
{
	const uint8_t steps[] = {(uint8_t)((first + 1) * 2), 0x80, 0x01,
		(uint8_t)(second ? (second - first) * 2 : 0), 0x80, 0x01, 0};
	const uint8_t one[] = {(uint8_t)((first + 1) * 2), 0x80, 0x02, 0};

	if (second)
		put(m, steps, sizeof(steps));
	else
		put(m, one, sizeof(one));
}

static void align(struct made_go *m)
{
	while (m->n % 8)
		put_number(m, 0, 1);
}

struct offsets {
	uint64_t part[PARTS];
	uint64_t name[MADE_GO_FUNCTIONS], file[MADE_GO_FUNCTIONS], line[MADE_GO_FUNCTIONS];
};

/* All but the functions; offsets are within the parts. */
static void put_parts(struct made_go *m, struct offsets *o, const char *first, uint64_t whole)
{
	char name[64];

	o->part[0] = m->n;
	for (unsigned i = 0; i < MADE_GO_FUNCTIONS; i++) {
		o->name[i] = m->n - (whole ? 0 : o->part[0]);
		snprintf(name, sizeof(name), "main.f%u", i);
		put(m, i ? name : first, strlen(i ? name : first) + 1);
	}
	align(m);
	o->part[2] = m->n;
	put(m, "/src/a.go\0/src/b.go", 20);
	align(m);
	o->part[1] = m->n;
	put_number(m, whole ? o->part[2] : 0, 4);
	put_number(m, (whole ? o->part[2] : 0) + 10, 4);
	o->part[3] = m->n;
	put_number(m, 0, 1);
	for (unsigned i = 0; i < MADE_GO_FUNCTIONS; i++) {
		o->file[i] = m->n - (whole ? 0 : o->part[3]);
		put_steps(m, i & 1, 0);
		o->line[i] = m->n - (whole ? 0 : o->part[3]);
		put_steps(m, 10 + i, 20 + i);
	}
	align(m);
}

static void put_functions(
	struct made_go *m, const struct offsets *o, size_t n_number, uint64_t text, uint64_t base)
{
	for (unsigned i = 0; i < MADE_GO_FUNCTIONS; i++) {
		uint64_t at = m->n - base;
		memcpy(m->bytes + o->part[4] + (2 * i + 1) * n_number, &at, n_number);
		put_number(m, text + i * MADE_GO_FUNCTION_BYTES, n_number);
		put_number(m, o->name[i], 4);
		put_number(m, 0, 4);
		put_number(m, 0, 4);
		put_number(m, 0, 4);
		put_number(m, o->file[i], 4);
		put_number(m, o->line[i], 4);
		put_number(m, 0, 4);
		put_number(m, 0, 4);
		align(m);
	}
}

static void put_index(struct made_go *m, struct offsets *o, size_t n_number, uint64_t text)
{
	o->part[4] = m->n;
	for (unsigned i = 0; i <= MADE_GO_FUNCTIONS; i++) {
		put_number(m, text + i * MADE_GO_FUNCTION_BYTES, n_number);
		if (i < MADE_GO_FUNCTIONS)
			put_number(m, 0, n_number);
	}
}

void made_go_fill(struct made_go *m, uint32_t magic, uint8_t pointer_bytes, uint64_t text,
	uint64_t stated, const char *first)
{
	const bool old = magic == 0xfffffffb, relative = magic == 0xfffffff0 || magic == 0xfffffff1;
	const size_t n_number = relative ? 4 : pointer_bytes;
	struct offsets o = {{0}};

	*m = (struct made_go){.n = 0};
	put_number(m, magic, 4);
	put_number(m, 0, 1);
	put_number(m, 0, 1);
	put_number(m, 1, 1);
	put_number(m, pointer_bytes, 1);
	put_number(m, MADE_GO_FUNCTIONS, pointer_bytes);
	if (old) {
		put_index(m, &o, n_number, text);
		size_t files_at = m->n;
		put_number(m, 0, 4);
		put_parts(m, &o, first, 1);
		memcpy(m->bytes + files_at, &(uint32_t){(uint32_t)o.part[1]}, 4);
		put_functions(m, &o, n_number, text, 0);
		return;
	}
	put_number(m, 2, pointer_bytes);
	if (relative)
		put_number(m, stated, pointer_bytes);
	size_t parts_at = m->n;
	for (unsigned i = 0; i < PARTS; i++)
		put_number(m, 0, pointer_bytes);
	put_parts(m, &o, first, 0);
	put_index(m, &o, n_number, relative ? 0 : text);
	for (unsigned i = 0; i < PARTS; i++)
		memcpy(m->bytes + parts_at + i * pointer_bytes, &o.part[i], pointer_bytes);
	align(m);
	put_functions(m, &o, n_number, relative ? 0 : text, o.part[4]);
}
