/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

#include "client/measure/systemd.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "proto/base/memory.h"

#define OUTPUT_BYTES 4096 /* of what we ask, some ten lines */
#define SECOND_NS 1000000000ll
#define SHELL_NOT_FOUND 127

extern char **environ;

/* Read all output of the program, cut at `size`. */
static void read_all(int fd, char *text, size_t size)
{
	char rest[256];
	size_t n = 0;
	for (;;) {
		ssize_t got = n + 1 < size ? read(fd, text + n, size - 1 - n)
					   : read(fd, rest, sizeof(rest));
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			break;
		if (n + 1 < size)
			n += (size_t)got;
	}
	text[n] = '\0';
}

static int start(char *const *argv, int out, pid_t *ret_pid)
{
	posix_spawn_file_actions_t actions;
	int error = posix_spawn_file_actions_init(&actions);
	if (error != 0)
		return -error;
	error = posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
	if (error == 0)
		error = posix_spawn_file_actions_adddup2(&actions, out, 1);
	if (error == 0)
		error = posix_spawn_file_actions_adddup2(&actions, out, 2);
	if (error == 0)
		error = posix_spawnp(ret_pid, argv[0], &actions, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	return error == ENOENT ? SYSTEMD_ABSENT : -error;
}

static int ask(char *const *argv, char text[static OUTPUT_BYTES])
{
	int fd[2], status = 0;
	pid_t pid;
	if (pipe2(fd, O_CLOEXEC) < 0)
		return -errno;
	int r = start(argv, fd[1], &pid);
	close(fd[1]);
	if (r == 0) {
		read_all(fd[0], text, OUTPUT_BYTES);
		while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
			;
		r = WIFEXITED(status) && WEXITSTATUS(status) == SHELL_NOT_FOUND ? SYSTEMD_ABSENT
		    : status != 0                                               ? SYSTEMD_REFUSED
										: 0;
	}
	close(fd[0]);
	return r;
}

/* Find the line that begins with this word, and return the rest of it without leading blanks; NULL if there is
 * no such line. Cuts text. */
static char *line_after(char *text, const char *word)
{
	char *at = strstr(text, word);
	if (!at)
		return NULL;
	at += strlen(word);
	at += strspn(at, " ");
	at[strcspn(at, "\n")] = '\0';
	return at;
}

int systemd_check_calendar(const char *calendar, char text[static SYSTEMD_TEXT_BYTES])
{
	char output[OUTPUT_BYTES];
	char *const argv[] = {"systemd-analyze", "calendar", "--", (char *)calendar, NULL};
	int r = ask(argv, output);
	if (r < 0 || r == SYSTEMD_ABSENT)
		return r;
	const char *found = r == 0 ? line_after(output, "Next elapse:") : output;
	if (r != 0)
		output[strcspn(output, "\n")] = '\0';
	snprintf(text, SYSTEMD_TEXT_BYTES, "%.500s", found ? found : "");
	return r;
}

/* "Fri 2026-11-27 02:00:00 UTC", as systemctl writes times, or "@1795744800". 0: neither. */
static int64_t parse_time(const char *text)
{
	struct tm tm = {0};
	if (*text == '@')
		return strtoll(text + 1, NULL, 10);
	if (sscanf(text, "%*s %d-%d-%d %d:%d:%d UTC", &tm.tm_year, &tm.tm_mon, &tm.tm_mday,
		    &tm.tm_hour, &tm.tm_min, &tm.tm_sec) != 6)
		return 0;
	tm.tm_year -= 1900;
	tm.tm_mon--;
	return timegm(&tm);
}

int systemd_timer_next(const char *unit, int64_t *ret_ns)
{
	char output[OUTPUT_BYTES];
	char *const argv[] = {"env", "TZ=UTC", "systemctl", "show",
		"--property=NextElapseUSecRealtime", "--", (char *)unit, NULL};
	int r = ask(argv, output);
	if (r != 0)
		return r;
	const char *at = line_after(output, "NextElapseUSecRealtime=");
	*ret_ns = at ? parse_time(at) * SECOND_NS : 0;
	return 0;
}
