/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Choose where a plot goes and how large it is: on a screen it leaves room for the table.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client/measure/capture.h"
#include "client/plot/page.h"
#include "client/plot/terminal.h"
#include "client/roofline/roofline_plot.h"
#include "client/roofline/roofline_print.h"
#include "client/show/page.h"
#include "client/show/print.h"
#include "client/show/say.h"
#include "proto/base/memory.h"

#define COLUMNS_DEFAULT 80 /* where there is no terminal */
#define ROWS_DEFAULT 24
#define TABLE_PART 3 /* the table gets a third of the screen */

/* --- a file ----------------------------------------------------------------------------------- */

struct file {
	const struct roofline_plot *plot;
	const char *path;
};

static int write_into(void *userdata, FILE *f)
{
	const struct file *file = userdata;
	return plot_page_write(&file->plot->plot, &file->plot->sets, page_is_plain(file->path), f);
}

static void say_written(const struct roofline_plot *p, const char *path)
{
	size_t n = 0;
	for (size_t i = 0; i < p->plot.n_dots; i++)
		n += plot_dot_is_drawn(&p->plot.dot[i]);
	const char *more = p->plot.no_roofs    ? p->plot.no_roofs
			   : p->plot.stale     ? p->plot.stale
			   : p->plot.disturbed ? p->plot.disturbed
					       : "";
	say_note("wrote %s: %zu dot%s of %zu row%s%s%s", path, n, n == 1 ? "" : "s", p->plot.n_dots,
		p->plot.n_dots == 1 ? "" : "s", *more ? "; " : "", more);
}

/* The caller frees; NULL if memory ran out. */
static char *make_title(const struct showing *s)
{
	char *title;
	if (!s->before || s->o->title)
		return source_title(s->o, s->kept, "Roofline");
	return asprintf(&title, "Roofline of %s and %s", s->o->earlier, s->o->input) < 0 ? NULL
											 : title;
}

int roofline_save(const struct showing *s, struct roofline_plot *p)
{
	_cleanup_(freep) char *title = make_title(s);
	if (!title) {
		say_failure("out of memory", "Free some memory, and try again");
		return EXIT_FAILED;
	}
	p->plot.title = title;
	int exit_status =
		page_save(s->o->output, s->o->force, write_into, &(struct file){p, s->o->output});
	p->plot.title = "";
	if (exit_status == 0 && strcmp(s->o->output, "-") != 0)
		say_written(p, s->o->output);
	return exit_status;
}

/* --- a terminal ------------------------------------------------------------------------------- */

/* A screen's lines: of the plot, and of rows of the table. */
struct split {
	size_t plot, table;
};

static struct split split(const struct reply *r, size_t height, size_t below)
{
	size_t other = below + 3; /* the table's head, the line above it, the cursor's */
	size_t left = height > other ? height - other : 0;
	size_t table = r->n_rows < left / TABLE_PART ? r->n_rows : left / TABLE_PART;
	return (struct split){left - table, table};
}

int roofline_draw(const struct showing *s, const struct roofline_plot *p,
	const struct table_options *look, size_t below, FILE *f)
{
	struct plot_axes once = {.x.low = 0}, *axes = s->axes ? s->axes : &once;
	bool fits = s->axes && look->height; /* one screen after another */
	struct split lines = split(s->reply, look->height, below);
	const struct plot_terminal_look plot_look = {
		.columns = look->width ? look->width : COLUMNS_DEFAULT,
		.rows = fits           ? lines.plot
			: look->height ? look->height
				       : ROWS_DEFAULT,
		.utf8 = !print_is_ascii(),
		.colour = look->colour,
		.brief = fits,
	};
	_cleanup_(freep) char *mark = calloc(p->plot.n_dots + 1, 1);
	if (!mark)
		return -ENOMEM;
	int r = plot_terminal_draw(&p->plot, &p->sets, &plot_look, axes, mark, f);
	if (r == 0)
		r = roofline_plot_mark(p, mark, s->reply);
	if (fits)
		reply_cut(s->reply, lines.table);
	fputc('\n', f);
	return r == REPLY_TOO_LARGE ? 0 : r; /* with too many events of regions, no column
					      * is left for letters */
}
