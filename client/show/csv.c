/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * For spreadsheets and data frames. Names come from programs, and people may view the file on a
 * terminal: characters that do not show as they are (line breaks, escape sequences, bidirectional
 * overrides) are written as on a terminal, \x0a.
 */
#include "client/show/csv.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "client/show/escape.h"

bool csv_is_formula(const char *text)
{
	static const char *const begins[] = {
		"=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20"};
	for (size_t i = 0; i < sizeof(begins) / sizeof(*begins); i++)
		if (strncmp(text, begins[i], strlen(begins[i])) == 0)
			return true;
	return false;
}

bool csv_is_quoted(const char *text)
{
	return text[strcspn(text, ",;\"")] || csv_is_formula(text);
}

static void write_text(const char *text, FILE *f)
{
	bool quoted = csv_is_quoted(text);

	if (quoted)
		fputc('"', f);
	if (csv_is_formula(text))
		fputc('\'', f);
	escape_quoted(f, text);
	if (quoted)
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
