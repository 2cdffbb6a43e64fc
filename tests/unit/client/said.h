/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* What a tested function said on stderr, for tests of messages to people */

#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct said {
	int kept_fd;
	FILE *file;
	char text[2048];
};

static inline void said_start(struct said *s)
{
	fflush(stderr);
	s->file = tmpfile();
	s->kept_fd = dup(STDERR_FILENO);
	dup2(fileno(s->file), STDERR_FILENO);
}

/* Everything since said_start, at most as much as fits. */
static inline const char *said_end(struct said *s)
{
	fflush(stderr);
	dup2(s->kept_fd, STDERR_FILENO);
	close(s->kept_fd);
	rewind(s->file);
	size_t n = fread(s->text, 1, sizeof(s->text) - 1, s->file);
	s->text[n] = '\0';
	fclose(s->file);
	return s->text;
}
