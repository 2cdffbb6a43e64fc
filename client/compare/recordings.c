/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * The daemon may have another working directory, so it gets absolute paths. A name that is a file is
 * that file, whatever signs are in it.
 */
#include "client/compare/recordings.h"

#include <errno.h>
#include <glob.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/options/options.h"
#include "client/show/say.h"
#include "proto/base/memory.h"

static bool has(const struct recordings *r, dev_t device, ino_t inode)
{
	for (size_t i = 0; i < r->n; i++)
		if (inode != 0 && r->file[i].inode == inode && r->file[i].device == device)
			return true;
	return false;
}

const char *recordings_both(const struct recordings *a, const struct recordings *b)
{
	for (size_t i = 0; i < a->n; i++)
		if (has(b, a->file[i].device, a->file[i].inode))
			return a->path[i];
	return NULL;
}

static int add(struct recordings *r, const char *path)
{
	_cleanup_(freep) char *folder = *path == '/' ? strdup("") : getcwd(NULL, 0);
	char *absolute;
	struct stat s = {.st_ino = 0};

	/* the daemon reports a missing file */
	if (stat(path, &s) == 0 && has(r, s.st_dev, s.st_ino)) {
		r->n_twice++;
		return 0;
	}
	if (r->n == RECORDINGS_MAX)
		return RECORDINGS_MANY;
	if (!folder)
		return -errno;
	if (asprintf(&absolute, "%s%s%s", folder, *folder ? "/" : "", path) < 0)
		return -ENOMEM;
	r->file[r->n].device = s.st_dev;
	r->file[r->n].inode = s.st_ino;
	r->path[r->n++] = absolute;
	return 0;
}

static int add_matches(struct recordings *r, const char *pattern)
{
	glob_t found;
	int result = glob(pattern, GLOB_ERR, NULL, &found);

	if (result == GLOB_NOSPACE)
		return -ENOMEM;
	if (result == GLOB_ABORTED)
		return RECORDINGS_UNREADABLE;
	if (result == GLOB_NOMATCH)
		return RECORDINGS_NONE;
	result = 0;
	for (size_t i = 0; i < found.gl_pathc && result == 0; i++)
		result = add(r, found.gl_pathv[i]);
	globfree(&found);
	return result;
}

/* Escape the characters that a pattern would interpret. */
static char *pattern_of_folder(const char *folder)
{
	char *pattern = malloc(2 * strlen(folder) + sizeof("/*" RECORDINGS_SUFFIX)), *to = pattern;
	if (!pattern)
		return NULL;
	for (; *folder; folder++) {
		if (strchr("*?[\\", *folder))
			*to++ = '\\';
		*to++ = *folder;
	}
	strcpy(to, "/*" RECORDINGS_SUFFIX);
	return pattern;
}

int recordings_add(struct recordings *r, const char *selection)
{
	struct stat s;

	if (stat(selection, &s) != 0)
		return strpbrk(selection, "*?[") ? add_matches(r, selection) : RECORDINGS_NONE;
	if (!S_ISDIR(s.st_mode))
		return add(r, selection);
	if (access(selection, R_OK | X_OK) != 0)
		return RECORDINGS_UNREADABLE;
	_cleanup_(freep) char *pattern = pattern_of_folder(selection);
	return pattern ? add_matches(r, pattern) : -ENOMEM;
}

/* Write why the selection has no recording. */
static int say_none(const char *selection, char **ret_says)
{
	struct stat s;
	if (stat(selection, &s) == 0)
		return asprintf(ret_says,
			"the folder '%s' has no recording (*" RECORDINGS_SUFFIX ")", selection);
	return asprintf(ret_says,
		strpbrk(selection, "*?[") ? "no file matches '%s'" : "there is no recording '%s'",
		selection);
}

int recordings_add_or_say(struct recordings *r, const char *selection, const char *whose)
{
	_cleanup_(freep) char *says = NULL;
	const char *remedy =
		"Give a recording, a folder of *" RECORDINGS_SUFFIX ", or a pattern in quotes.";
	int outcome = recordings_add(r, selection), n = 0;

	if (outcome == 0)
		return 0;
	if (outcome == RECORDINGS_NONE)
		n = say_none(selection, &says);
	else if (outcome == RECORDINGS_MANY)
		n = asprintf(&says, "with '%s', %s has more than %d recordings", selection, whose,
			RECORDINGS_MAX);
	else
		n = asprintf(&says, "'%s' cannot be read: %s", selection,
			strerror(outcome < 0 ? -outcome : errno));
	say_failure(n < 0 ? "out of memory" : says, remedy);
	return outcome < 0 ? EXIT_FAILED : EXIT_USAGE;
}

void recordings_clear(struct recordings *r)
{
	for (size_t i = 0; i < r->n; i++)
		free(r->path[i]);
	r->n = r->n_twice = 0;
}
