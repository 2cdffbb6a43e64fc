/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * A process ends with its last thread, and the one that sends must not be in the way: where main
 * has ended by pthread_exit and no other thread is left, it returns, and the C library ends the
 * process as it would have without us. An ended main thread stays as a zombie, and is counted as a
 * thread. Source: proc(5), pthread_exit(3).
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/alone.h"

#define STAT_BYTES 128 /* holds pid, name and state */

static bool is_zombie(pid_t pid)
{
	char path[64], text[STAT_BYTES + 1];
	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", pid);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	ssize_t n = read(fd, text, STAT_BYTES);
	close(fd);
	text[n > 0 ? n : 0] = '\0';
	const char *name_end = strrchr(text, ')');
	return name_end && name_end[1] == ' ' && name_end[2] == 'Z';
}

enum mperf_main mperf_main_look(pid_t pid)
{
	if (!is_zombie(pid))
		return MPERF_MAIN_RUNS;
	/* A folder has two links, and one for each folder in it. */
	struct stat st;
	if (stat("/proc/self/task", &st) < 0)
		return MPERF_MAIN_RUNS;
	return st.st_nlink - 2 <= 2 ? MPERF_MAIN_LAST : MPERF_MAIN_ENDED;
}
