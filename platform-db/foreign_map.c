/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * mapfile.csv: identity, version, folder, type; with tabs between them, as the paper prints its map, if
 * there is no comma in a row. Of several rows that match an identity the first
 * wins, as in perf. Each row is a separate draft, since each is found by its own pattern.
 */
#include "platform-db/foreign.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COLUMNS 4

struct map {
	const char *folder;
	struct foreign_rows standard; /* standard events in *.json next to the map */
	struct list *drafts;
};

static int take_standard(const struct reader *r, void *standard)
{
	const struct node *root;
	int error = reader_document(r, false, &root);
	if (!error)
		error = foreign_events(r, root, NULL, standard);
	/* A bad file does not affect the others of its folder. */
	return error < 0 ? error : 0;
}

struct taking {
	const struct map *map;
	struct draft *draft;
};

static int take_file(const struct reader *r, void *userdata)
{
	const struct taking *t = userdata;
	const struct foreign_rows to = {&t->draft->events, &t->draft->metrics, t->draft->arch};
	const struct node *root;
	int error = reader_document(r, false, &root);
	if (!error)
		error = foreign_events(r, root, &t->map->standard, &to);
	return error < 0 ? error : 0;
}

/* Split the line into the row's four cells in place. False: it has fewer. */
static bool cut(char *line, char *cell[COLUMNS])
{
	char *rest = line;
	const char *between = strchr(line, ',') ? "," : "\t";
	for (int i = 0; i < COLUMNS; i++) {
		cell[i] = strsep(&rest, between);
		if (!cell[i])
			return false;
		cell[i] += strspn(cell[i], " \t");
		for (size_t n = strlen(cell[i]); n > 0 && strchr(" \t\r", cell[i][n - 1]); n--)
			cell[i][n - 1] = '\0';
	}
	return true;
}

static bool leads_out(const char *folder)
{
	return !*folder || *folder == '/' || strstr(folder, "..");
}

static int take_events(
	const struct reader *r, const struct map *m, int line, const char *name, struct draft *d)
{
	struct taking t = {m, d};
	_cleanup_(freep) char *path = NULL;
	if (asprintf(&path, "%s/%s", m->folder, name) < 0)
		return -ENOMEM;
	int error = folder_each(r, path, take_file, &t);
	if (error < 0 && error != -ENOMEM)
		return reader_wrong(
			r, line, "the folder %s cannot be read: %s", path, strerror(-error));
	return error;
}

static int take_row(const struct reader *r, struct map *m, int line, char *cell[COLUMNS])
{
	_cleanup_(draft_freep) struct draft *d = draft_new();
	if (!d)
		return -ENOMEM;
	struct pattern *p = list_add(&d->cpus);
	if (!p)
		return -ENOMEM;
	int error = pattern_foreign(r, line, cell[0], p);
	if (error)
		return error;
	if (leads_out(cell[2]))
		return reader_wrong(r, line, "'%.64s' is not a folder next to the map", cell[2]);
	d->arch = p->arch;
	error = take_events(r, m, line, cell[2], d);
	if (error)
		return error;

	d->name = d->title = pool_text(r->pool, cell[2]);
	if (!d->name)
		return -ENOMEM;
	d->origin = p->origin;
	if (list_append(m->drafts, &d, 1) < 0)
		return -ENOMEM;
	TAKE_PTR(d);
	return 0;
}

static int take_lines(const struct reader *r, struct map *m, char *text)
{
	int line = 0, n_rows = 0;
	for (char *rest = text, *at; (at = strsep(&rest, "\n"));) {
		char *cell[COLUMNS];
		line++;
		if (!*at || *at == '#' || *at == '\r')
			continue;
		if (!cut(at, cell)) {
			reader_wrong(r, line,
				"a row has four columns: identity, version, "
				"folder, type");
			continue;
		}
		/* The head of the table, and units beside the core. */
		if (strcmp(cell[3], "core") != 0)
			continue;
		if (++n_rows > FOREIGN_ROWS_MAX) {
			reader_wrong(r, line, "more than %d cores", FOREIGN_ROWS_MAX);
			return 0;
		}
		int error = take_row(r, m, line, cell);
		if (error < 0)
			return error;
	}
	return 0;
}

int foreign_read(const struct reader *r, const char *folder, struct list *drafts)
{
	struct list events = LIST_OF(struct draft_event);
	struct list metrics = LIST_OF(struct platform_metric);
	struct map m = {folder, {.events = &events, .metrics = &metrics}, drafts};
	_cleanup_(freep) char *text = NULL;
	size_t n;
	int error = reader_load(r, &text, &n);
	if (error)
		return error < 0 ? error : 0;
	error = folder_each(r, folder, take_standard, &m.standard);
	if (error != -ENOMEM)
		error = take_lines(r, &m, text);
	list_clear(&events);
	list_clear(&metrics);
	return error < 0 ? error : 0;
}
