/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

#include "daemon/namer/mounts.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proto/base/memory.h"

struct mounts {
	FILE *list;
	char *line;
	size_t size;
};

struct mounts *mounts_begin(int proc)
{
	_cleanup_(closep) int fd = openat(proc, "mountinfo", O_RDONLY | O_CLOEXEC);
	struct mounts *m = fd < 0 ? NULL : calloc(1, sizeof(*m));

	if (m)
		m->list = fdopen(fd, "r");
	if (!m || !m->list) {
		free(m);
		return NULL;
	}
	TAKE_FD(fd);
	return m;
}

/* 36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue */
static bool parse(char *line, struct mount_line *ret_line)
{
	int at = 0;
	char *rest = strstr(line, " - ");

	if (!rest ||
		sscanf(line, "%" SCNu64 " %*u %" SCNu32 ":%" SCNu32 " %*s %n", &ret_line->id,
			&ret_line->major, &ret_line->minor, &at) < 3 ||
		at == 0)
		return false;
	char *words = line + at;
	ret_line->place = strsep(&words, " ");
	words = rest + 3;
	ret_line->type = strsep(&words, " ");
	strsep(&words, " "); /* the source */
	ret_line->options = words ? strsep(&words, "\n") : "";
	return true;
}

bool mounts_next(struct mounts *m, struct mount_line *ret_line)
{
	while (getline(&m->line, &m->size, m->list) > 0)
		if (parse(m->line, ret_line))
			return true;
	return false;
}

struct mounts *mounts_end(struct mounts *m)
{
	if (!m)
		return NULL;
	fclose(m->list);
	free(m->line);
	free(m);
	return NULL;
}
