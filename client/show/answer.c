/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * The file takes the place of stdout, so that commands print in one way.
 */
#include "client/show/answer.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/show/outfile.h"
#include "client/show/print.h"
#include "client/show/say.h"
#include "proto/base/memory.h"

static struct {
	struct outfile file;
	const char *path;
	int stdout_fd; /* the one that we were started with; -1: still stdout */
	bool on_stdout;
} answer = {.file.fd = -1, .stdout_fd = -1};

int answer_begin(const char *path, bool force)
{
	if (!path || strcmp(path, "-") == 0)
		return 0;
	int r = outfile_open(&answer.file, path, outfile_over_answer(force));
	if (r == 0) {
		answer.path = path;
		answer.stdout_fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
		if (answer.stdout_fd < 0 || dup2(answer.file.fd, STDOUT_FILENO) < 0)
			r = -errno;
	}
	if (r == 0) {
		print_stdout_is_file(true);
		return 0;
	}
	outfile_say_failed(path, r, "name another file with -o");
	outfile_clear(&answer.file);
	return EXIT_FAILED;
}

void answer_is_on_stdout(void)
{
	answer.on_stdout = true;
}

void answer_give_stdout(void)
{
	int fd = answer.stdout_fd >= 0                        ? answer.stdout_fd
		 : answer.on_stdout && !isatty(STDOUT_FILENO) ? STDERR_FILENO
							      : STDOUT_FILENO;
	if (fd != STDOUT_FILENO)
		dup2(fd, STDOUT_FILENO);
}

int answer_end(int exit_status)
{
	struct stat st;
	if (answer.stdout_fd < 0)
		return exit_status;
	/* network file systems report a full disk when the last descriptor is closed */
	bool wrote = !print_stdout_failed() && fstat(answer.file.fd, &st) == 0 &&
		     (!S_ISREG(st.st_mode) || st.st_size > 0);
	print_stdout_is_file(false);
	dup2(answer.stdout_fd, STDOUT_FILENO);
	close(TAKE_FD(answer.stdout_fd));
	int r = wrote ? outfile_commit(&answer.file) : 0;
	if (r != 0)
		outfile_say_failed(answer.path, r, "name another file with -o");
	else if (wrote)
		say_note("wrote %s", answer.path);
	outfile_clear(&answer.file);
	return r == 0 ? exit_status : EXIT_FAILED;
}
