/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Whatever a daemon sends and a reader presses: pieces of input are answers (a 0, two bytes of
 * length, a packed Answer) or keys (any other byte). What came is laid out and written after each.
 */
#include <stdlib.h>

#include "client/top/harts.h"
#include "client/top/keys.h"
#include "client/top/layout.h"
#include "client/top/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void lay_out(const struct top_model *m, uint8_t width)
{
	const struct reply *rows = top_model_rows(m), *harts = top_model_harts(m);
	size_t grown[REPLY_COLUMNS_MAX] = {0}, total = 0;
	struct top_layout layout;
	struct top_hart hart[3];

	if (harts && top_harts(harts, hart, 3) > 3)
		abort();
	if (!rows)
		return;
	for (size_t i = 0; i < m->n_order; i++)
		if (m->order[i] >= rows->n_rows)
			abort();
	if (m->selected > 0 && m->selected >= m->n_order)
		abort();
	top_layout(rows, width, grown, &layout);
	for (size_t i = 0; i < layout.n; i++)
		total += layout.column[i].name ? layout.column[i].width : 0;
	if (total > width && layout.n > 1)
		abort(); /* names give way to the width */
}

static void write_out(const struct top_model *m, bool json)
{
	char *text = NULL;
	size_t n;
	FILE *f = open_memstream(&text, &n);
	if (!f)
		return;
	top_text_write(m, &(struct options){.look.json = json}, f);
	fclose(f);
	free(text);
}

/* Returns the bytes that were taken. */
static size_t take_answer(struct top_model *m, const uint8_t *data, size_t size)
{
	size_t n = size >= 2 ? data[0] | (size_t)data[1] << 8 : 0;
	if (size < 2)
		return size;
	n = n < size - 2 ? n : size - 2;
	Mperf__Answer *a = mperf__answer__unpack(NULL, n, data + 2);
	if (a) {
		if (top_model_take(m, a, 42) == TOP_FRAME)
			write_out(m, n % 2);
		mperf__answer__free_unpacked(a, NULL);
	}
	return 2 + n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct top_model m;
	top_model_open(&m, "function", 0);
	while (size > 0) {
		uint8_t first = *data++;
		size--;
		size_t n = 0;
		if (first == 0)
			n = take_answer(&m, data, size);
		else
			top_keys_press(&m, first < 0x80 ? first : TOP_KEY_UP + first % 10);
		data += n;
		size -= n;
		lay_out(&m, first);
	}
	top_model_clear(&m);
	return 0;
}
