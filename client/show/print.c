/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * fopencookie puts our write below stdio's buffer. After the first error we write nothing more:
 * output after a gap is worthless.
 */
#include "client/show/print.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "client/show/say.h"

#define PIECE_BYTES 4096

static void append_all(struct print *p, const char *bytes, size_t n)
{
	size_t done = 0;

	while (p->error == 0 && done < n) {
		ssize_t written = write(p->fd, bytes + done, n - done);
		if (written > 0)
			done += (size_t)written;
		else if (written == 0)
			p->error = -EIO; /* no file returns 0 for n > 0 bytes */
		else if (errno != EINTR)
			p->error = -errno;
	}
}

static void append_ascii(struct print *p, const char *bytes, size_t n)
{
	char piece[PIECE_BYTES];
	size_t used = 0;

	for (size_t i = 0; i < n; i++) {
		used += ascii_take(&p->part, bytes[i], piece + used);
		if (used + ASCII_BYTES_MAX > sizeof(piece)) {
			append_all(p, piece, used);
			used = 0;
		}
	}
	append_all(p, piece, used);
}

/* Source: fopencookie(3): a write that failed returns 0, never less. */
static ssize_t append(void *cookie, const char *bytes, size_t n)
{
	struct print *p = cookie;

	(p->ascii ? append_ascii : append_all)(p, bytes, n);
	return p->error ? 0 : (ssize_t)n;
}

static bool stdout_is_file;

void print_stdout_is_file(bool is_file)
{
	stdout_is_file = is_file;
}

bool print_is_ascii(void)
{
	return !stdout_is_file && ascii_is_wanted();
}

int print_open(struct print *p, int fd, enum print_what what)
{
	*p = (struct print){.fd = fd, .ascii = what == PRINT_TEXT && print_is_ascii()};
	p->file = fopencookie(p, "w", (cookie_io_functions_t){.write = append});
	return p->file ? 0 : -errno;
}

static bool stdout_failed;

bool print_stdout_failed(void)
{
	return stdout_failed;
}

int print_close(struct print *p, int r)
{
	int closed = fclose(p->file);
	p->file = NULL;
	r = p->error < 0 ? p->error : r < 0 ? r : closed != 0 ? -EIO : 0;
	stdout_failed |= r < 0 && p->fd == STDOUT_FILENO;
	return r;
}

void print_say_failed(const char *where, int error, const char *elsewhere)
{
	char what[512], remedy[256];

	if (where)
		snprintf(what, sizeof(what), "cannot write '%.400s': %s", where, strerror(-error));
	else
		snprintf(what, sizeof(what), "cannot write to stdout: %s", strerror(-error));
	if (error == -ENOSPC || error == -EDQUOT)
		snprintf(remedy, sizeof(remedy), "Free some space, or %s", elsewhere);
	else if (error == -ENOMEM)
		snprintf(remedy, sizeof(remedy), "Free some memory, and try again");
	else if (error == -EMFILE)
		snprintf(remedy, sizeof(remedy), "Raise the limit of open files (`ulimit -n`)");
	else if (error == -ENFILE)
		snprintf(remedy, sizeof(remedy), "Raise the sysctl fs.file-max");
	else
		snprintf(remedy, sizeof(remedy), "%s", elsewhere);
	remedy[0] = (char)toupper((unsigned char)remedy[0]);
	say_failure(what, remedy);
}

int print_open_answer(struct print *p, bool is_data)
{
	return print_open(p, STDOUT_FILENO, is_data ? PRINT_DATA : PRINT_TEXT);
}

int print_close_answer(struct print *p, int r)
{
	if (p->file)
		r = print_close(p, r);
	if (r < 0)
		print_say_failed(NULL, r, "send stdout elsewhere");
	return r < 0 ? EXIT_FAILED : EXIT_DONE;
}
