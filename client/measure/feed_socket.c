/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "client/measure/feed_socket.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "client/measure/run.h"
#include "client/show/outfile.h"
#include "client/show/print.h"
#include "proto/base/memory.h"

int feed_socket_make(struct feed_socket *s)
{
	const char *parent = outfile_temporary_folder();
	if (asprintf(&s->folder, "%s/mperf-feed-XXXXXX", parent) < 0) {
		s->folder = NULL;
		return RUN_FAILED;
	}
	if (!mkdtemp(s->folder)) {
		print_say_failed(parent, -errno, "set TMPDIR to a folder that you may write to");
		free(TAKE_PTR(s->folder));
		return RUN_FAILED;
	}
	if (asprintf(&s->path, "%s/feed", s->folder) < 0) {
		s->path = NULL;
		return RUN_FAILED;
	}
	return setenv("MPERF_FEED", s->path, 1) == 0 ? 0 : RUN_FAILED;
}

void feed_socket_clear(struct feed_socket *s)
{
	if (s->folder)
		rmdir(s->folder); /* fails if a daemon's socket is still in it */
	free(TAKE_PTR(s->folder));
	free(TAKE_PTR(s->path));
}
