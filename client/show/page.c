/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "client/show/page.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "client/show/outfile.h"
#include "client/show/print.h"
#include "client/show/say.h"

static const char frame[] =
#include "client/show/page.html.inc"
	;
static const char style[] =
#include "client/show/page.css.inc"
	;

const char *page_style(void)
{
	return style;
}

struct filling {
	const char *body;
	page_fill *fill;
	const void *userdata;
};

static void expand(const struct filling *f, const char *template, FILE *out);

static void fill_hole(const struct filling *f, const char *name, size_t n, FILE *out)
{
	if (strncmp(name, "body", n) == 0)
		expand(f, f->body, out);
	else
		f->fill(f->userdata, name, n, out);
}

static void expand(const struct filling *f, const char *template, FILE *out)
{
	const char *at = template, *hole;
	while ((hole = strstr(at, "{{"))) {
		const char *end = strstr(hole, "}}");
		if (!end)
			break;
		fwrite(at, 1, (size_t)(hole - at), out);
		fill_hole(f, hole + 2, (size_t)(end - hole - 2), out);
		at = end + 2;
	}
	fputs(at, out);
}

void page_write(const char *body, page_fill *fill, const void *userdata, FILE *out)
{
	expand(&(struct filling){body, fill, userdata}, frame, out);
}

bool page_is_plain(const char *path)
{
	static const char end[] = ".svg";
	size_t n = strlen(path), m = strlen(end);
	return n >= m && strcmp(path + n - m, end) == 0;
}

static int write_to(int fd, int (*write)(void *userdata, FILE *out), void *userdata)
{
	struct print p;
	int r = print_open(&p, fd, PRINT_DATA);
	return r == 0 ? print_close(&p, write(userdata, p.file)) : r;
}

static int write_file(
	const char *path, bool force, int (*write)(void *userdata, FILE *out), void *userdata)
{
	struct outfile out;
	int r = outfile_open(&out, path, outfile_over_answer(force));
	if (r != 0)
		return r;
	r = write_to(out.fd, write, userdata);
	if (r == 0)
		r = outfile_commit(&out);
	outfile_clear(&out);
	return r;
}

int page_save(const char *path, bool force, int (*write)(void *userdata, FILE *out), void *userdata)
{
	bool to_stdout = strcmp(path, "-") == 0;
	int r = to_stdout ? write_to(STDOUT_FILENO, write, userdata)
			  : write_file(path, force, write, userdata);
	if (r == 0)
		return EXIT_DONE;
	outfile_say_failed(to_stdout ? NULL : path, r, "name another file with -o");
	return EXIT_FAILED;
}
