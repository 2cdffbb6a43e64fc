/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* The folder of schedules, and a schedule in words. */

#include <dirent.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/memory.h"
#include "proto/syntax/schedule.h"

DEFINE_CLEANUP(DIR *, closedir)

#define PPM_ALL 1000000u
#define PPM_PER_PERCENT 1e4
/* Files of a folder that are wrong; each is reported. */
#define ERRORS_MAX SCHEDULES_MAX

void schedules_clear(struct schedule_list *l)
{
	free(l->schedule);
	free(l->error);
	*l = (struct schedule_list){.n = 0};
}

static void add_error(struct schedule_list *l, const char *folder, const char *says)
{
	if (l->n_errors == ERRORS_MAX)
		return;
	struct schedule_error *e = &l->error[l->n_errors++];
	snprintf(e->text, sizeof(e->text), "%.200s: %.250s", folder, says);
}

static int take(struct schedule_list *l, const char *path)
{
	struct schedule_error error;
	struct schedule s;
	int r = schedule_read(path, &s, &error);
	if (r == 0)
		l->schedule[l->n++] = s;
	else if (r == SCHEDULE_WRONG && l->n_errors < ERRORS_MAX)
		l->error[l->n_errors++] = error;
	return r < 0 ? r : 0;
}

static bool is_schedule(const struct dirent *e)
{
	size_t n = strlen(e->d_name), n_suffix = sizeof(SCHEDULE_SUFFIX) - 1;
	return e->d_name[0] != '.' && n > n_suffix &&
	       strcmp(e->d_name + n - n_suffix, SCHEDULE_SUFFIX) == 0;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct schedule *)a)->name, ((const struct schedule *)b)->name);
}

static int read_folder(DIR *d, const char *folder, struct schedule_list *l)
{
	const struct dirent *e;
	int r = 0;
	while (r == 0 && (e = readdir(d))) {
		_cleanup_(freep) char *path = NULL;
		if (!is_schedule(e))
			continue;
		if (l->n == SCHEDULES_MAX) {
			add_error(l, folder,
				"there are more than 64 schedules; the others are left out");
			break;
		}
		r = asprintf(&path, "%s/%s", folder, e->d_name) < 0 ? -ENOMEM : take(l, path);
	}
	return r;
}

int schedules_read(const char *folder, struct schedule_list *ret_list)
{
	struct schedule_list l = {
		.schedule = calloc(SCHEDULES_MAX, sizeof(*l.schedule)),
		.error = calloc(ERRORS_MAX, sizeof(*l.error)),
	};
	_cleanup_(closedirp) DIR *d = opendir(folder);
	int error = d ? 0 : errno;
	int r = l.schedule && l.error ? 0 : -ENOMEM;
	if (r == 0 && error != 0 && error != ENOENT)
		add_error(&l, folder, strerror(error));
	if (r == 0 && d)
		r = read_folder(d, folder, &l);
	if (r < 0) {
		schedules_clear(&l);
		return r;
	}
	qsort(l.schedule, l.n, sizeof(*l.schedule), by_name);
	*ret_list = l;
	return 0;
}

/* --- for people ------------------------------------------------------------------------------- */

static void __attribute__((format(printf, 3, 4))) add(
	char *text, size_t size, const char *format, ...)
{
	size_t n = strlen(text);
	va_list args;
	va_start(args, format);
	vsnprintf(text + n, size - n, format, args);
	va_end(args);
}

static void say_jobs(const struct schedule *s, char *text, size_t size)
{
	if (s->share_ppm == PPM_ALL)
		add(text, size, "each job");
	else
		add(text, size, "%g %% of jobs", s->share_ppm / PPM_PER_PERCENT);
	if (*s->unit)
		add(text, size, " of unit %s", s->unit);
	for (size_t i = 0; i < s->n_labels; i++)
		add(text, size, "%s%s=%s", i == 0 ? " with " : ", ", s->label[i].key,
			s->label[i].value);
}

const char *schedule_says(const struct schedule *s, char *text, size_t size)
{
	uint64_t seconds = s->duration_ns / 1000000000u;
	bool minutes = seconds % 60 == 0;
	*text = '\0';
	if (s->kind == SCHEDULE_JOBS)
		say_jobs(s, text, size);
	for (size_t i = 0; i < s->n_calendars; i++)
		add(text, size, "%s%s", i == 0 ? "" : "; ", s->calendar[i]);
	add(text, size, ", at most %llu %s", (unsigned long long)(minutes ? seconds / 60 : seconds),
		minutes ? "min" : "s");
	if (s->hz)
		add(text, size, " at %u Hz", s->hz);
	add(text, size, s->callers ? " with stacks" : " without stacks");
	return text;
}
