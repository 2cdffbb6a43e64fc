/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* A watch on the folder of separate debug files, for those that are installed while the service runs
 *
 * One inotify descriptor, read once a second, which is all that it costs while nothing changes.
 */

#include <stdbool.h>

struct debug_watch {
	int fd;       /* -1: the kernel gave none, and only a reload looks again */
	int above;    /* watch on the folder above, while there is none; -1: it is not watched */
	bool changed; /* since the last look */
	const char *folder;
};

/* Watch FOLDER/ab for all numbers ab, also if the folder does not exist yet. The path is borrowed. */
void debug_watch_begin(struct debug_watch *w, const char *folder);
/* Has something come, and nothing more since the last call? A package brings hundreds of files. */
bool debug_watch_settled(struct debug_watch *w);
void debug_watch_end(struct debug_watch *w);
