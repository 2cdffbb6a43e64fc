/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * For spreadsheets and data frames. Names come from programs: a line break in one is written within
 * quotes, as the format has it, and other bytes stay what they are.
 */
#include "client/csv.h"

#include <errno.h>
#include <string.h>

static void write_text(const char *text, FILE *f)
{
	if (!text[strcspn(text, ",\"\r\n")]) {
		fputs(text, f);
		return;
	}
	fputc('"', f);
	for (; *text; text++) {
		if (*text == '"')
			fputc('"', f);
		fputc(*text, f);
	}
	fputc('"', f);
}

static void write_value(const Mperf__Value *v, FILE *f)
{
	switch (v->is_case) {
	case MPERF__VALUE__IS_TEXT:
		write_text(v->text, f);
		break;
	case MPERF__VALUE__IS_INTEGER:
		fprintf(f, "%lld", (long long)v->integer);
		break;
	case MPERF__VALUE__IS_REAL:
		fprintf(f, "%.17g", v->real);
		break;
	default:
		break;
	}
}

int csv_write(const struct reply *r, FILE *f)
{
	size_t n = r->columns ? r->columns->n_column : 0;
	for (size_t i = 0; i < n; i++) {
		if (i > 0)
			fputc(',', f);
		write_text(r->columns->column[i]->name, f);
	}
	if (n > 0)
		fputs("\r\n", f);
	for (size_t row = 0; row < r->n_rows; row++) {
		for (size_t i = 0; i < n; i++) {
			if (i > 0)
				fputc(',', f);
			write_value(r->row[row]->value[i], f);
		}
		fputs("\r\n", f);
	}
	return ferror(f) ? -EIO : 0;
}
