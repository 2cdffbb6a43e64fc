/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * A function without a name is called by its file and address: libbz2.so.1.0.4+0x51a0.
 */
#include "client/show/unnamed.h"

#include <stdlib.h>
#include <string.h>

#include "client/show/escape.h"
#include "proto/base/memory.h"

#define WORTH_A_LINE 0.05

static const char *base_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static bool is_unnamed(const char *function, const char *module)
{
	const char *base = base_of(module);
	const size_t n = strlen(base);

	return *module == '/' && strncmp(function, base, n) == 0 &&
	       strncmp(function + n, "+0x", 3) == 0;
}

/* A file, and its share of the time in functions without a name. */
struct file {
	const char *path;
	double share;
};

/* Add to the file's share. Returns the file. There is room for one per row. */
static const struct file *add(struct file *file, size_t *n, const char *path, double share)
{
	size_t i = 0;

	while (i < *n && strcmp(file[i].path, path) != 0)
		i++;
	if (i == *n)
		file[(*n)++] = (struct file){path, 0};
	file[i].share += share;
	return &file[i];
}

static void write_line(const struct package_places *places, const struct file *most, FILE *f)
{
	char name[PACKAGE_NAME_BYTES], remedy[2 * PACKAGE_NAME_BYTES + 128];

	if (package_of_symbols(places, most->path, name) == PACKAGE_NONE)
		return;
	package_remedy(places, most->path, remedy, sizeof(remedy));
	fprintf(f, "%.0f %% of the time is in functions of ", 100 * most->share);
	escape_terminal(f, most->path);
	fprintf(f, " without a name: %s\n", remedy);
}

void unnamed_write(const struct package_places *places, const struct reply *r, FILE *f)
{
	const int function = reply_column(r, "function"), module = reply_column(r, "module"),
		  self = reply_column(r, "self");
	_cleanup_(freep) struct file *file = calloc(r->n_rows + 1, sizeof(*file));
	const struct file *most = NULL;
	size_t n = 0;

	for (size_t i = 0; file && i < r->n_rows; i++) {
		const char *name = reply_text(r, i, function), *path = reply_text(r, i, module);
		double share = 0;
		if (!name || !path || !reply_number(r, i, self, &share) || !is_unnamed(name, path))
			continue;
		const struct file *of = add(file, &n, path, share);
		most = !most || of->share > most->share ? of : most;
	}
	if (most && most->share >= WORTH_A_LINE)
		write_line(places, most, f);
}
