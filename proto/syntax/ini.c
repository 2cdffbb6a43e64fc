/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Lines are checked byte by byte before they are parsed: characters that a reader of the file would
 * not see (control characters, a byte order mark) are refused by name. */

#include "proto/syntax/ini.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "proto/base/memory.h"

#define QUOTED_BYTES 40

int ini_each_line(const char *text, size_t n,
	int (*take)(void *userdata, const char *bytes, size_t n, unsigned number), void *userdata)
{
	unsigned number = 0;
	int r = 0;
	for (size_t at = 0; at < n && r == 0;) {
		const char *end = memchr(text + at, '\n', n - at);
		size_t length = end ? (size_t)(end - (text + at)) : n - at;
		r = take(userdata, text + at, length, ++number);
		at += length + 1;
	}
	return r;
}

struct ini_quote ini_quoted(const char *text)
{
	struct ini_quote q = {""};
	size_t n = 0;
	for (size_t i = 0; i < QUOTED_BYTES && text[i]; i++) {
		unsigned char c = (unsigned char)text[i];
		n += (size_t)snprintf(q.text + n, sizeof(q.text) - n,
			c >= 0x20 && c < 0x7f ? "%c" : "\\x%02x", c);
	}
	if (strlen(text) > QUOTED_BYTES)
		snprintf(q.text + n, sizeof(q.text) - n, "...");
	return q;
}

int ini_has_comment(const char *value)
{
	for (const char *at = value; (at = strpbrk(at, "#;")); at++)
		if (at > value && (at[-1] == ' ' || at[-1] == '\t'))
			return 1;
	return 0;
}

static int is_blank(char c)
{
	return c == ' ' || c == '\t';
}

/* Cut blanks off both ends, in place. */
static char *trimmed(char *text)
{
	while (is_blank(*text))
		text++;
	size_t n = strlen(text);
	while (n > 0 && is_blank(text[n - 1]))
		text[--n] = '\0';
	return text;
}

static int wrong(char *fault, const char *says)
{
	snprintf(fault, INI_FAULT_BYTES, "%s", says);
	return INI_WRONG;
}

/* Characters that no line may hold. */
static int check_bytes(const char *line, size_t n, int first, char *fault)
{
	if (n >= INI_LINE_BYTES) {
		snprintf(fault, INI_FAULT_BYTES, "the line has %zu bytes, but may have at most %d",
			n, INI_LINE_BYTES - 1);
		return INI_WRONG;
	}
	if (n >= 2 && first &&
		(memcmp(line, "\xef\xbb", 2) == 0 || memcmp(line, "\xff\xfe", 2) == 0 ||
			memcmp(line, "\xfe\xff", 2) == 0))
		return wrong(fault,
			"the file starts with a byte order mark; save it as UTF-8 without one");
	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)line[i];
		if (c == '\0')
			return wrong(
				fault, "the line holds a NUL byte; save the file as plain text");
		if (c == '\r')
			return wrong(fault, "the line holds a carriage return; save the file with "
					    "Unix line endings");
		if ((c >= 0x20 || c == '\t') && c != 0x7f)
			continue;
		snprintf(fault, INI_FAULT_BYTES,
			"the line holds the control character 0x%02x; remove it", c);
		return INI_WRONG;
	}
	return 0;
}

static int read_section(char *line, struct ini_line *l, char *fault)
{
	size_t n = strlen(line);
	if (line[n - 1] != ']' || n < 3) {
		snprintf(fault, INI_FAULT_BYTES,
			"'%s' is not a section; write its name in brackets", ini_quoted(line).text);
		return INI_WRONG;
	}
	line[n - 1] = '\0';
	l->kind = INI_SECTION;
	l->name = line + 1;
	return 0;
}

int ini_read(const char *bytes, size_t n, int first, struct ini_line *ret_line,
	char fault[static INI_FAULT_BYTES])
{
	struct ini_line *l = ret_line;
	int r = check_bytes(bytes, n, first, fault);
	if (r != 0)
		return r;
	memcpy(l->text, bytes, n);
	l->text[n] = '\0';
	l->kind = INI_BLANK;
	l->name = l->value = "";

	char *line = trimmed(l->text);
	if (!*line || *line == '#' || *line == ';')
		return 0;
	if (*line == '[')
		return read_section(line, l, fault);
	char *equals = strchr(line, '=');
	if (!equals) {
		snprintf(fault, INI_FAULT_BYTES,
			"'%s' is neither a section nor a 'key = value'; comments begin with #",
			ini_quoted(line).text);
		return INI_WRONG;
	}
	*equals = '\0';
	l->kind = INI_KEY;
	l->name = trimmed(line);
	l->value = trimmed(equals + 1);
	return *l->name ? 0 : wrong(fault, "there is no key before '='");
}

/* --- files ------------------------------------------------------------------------------------ */

/* Read up to n bytes; how many, or -errno. */
static ssize_t read_all(int fd, char *buffer, size_t n)
{
	size_t done = 0;
	while (done < n) {
		ssize_t got = read(fd, buffer + done, n - done);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		if (got == 0)
			break;
		done += (size_t)got;
	}
	return (ssize_t)done;
}

static int failed(char *fault, int outcome, const char *why)
{
	snprintf(fault, INI_FAULT_BYTES, "%s", why);
	return outcome;
}

int ini_read_file(
	const char *path, char **ret_text, size_t *ret_n, char fault[static INI_FAULT_BYTES])
{
	struct stat st;
	/* Do not wait for a writer if it is a FIFO. */
	_cleanup_(closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0 && errno == ENOENT)
		return INI_ABSENT;
	if (fd < 0 || fstat(fd, &st) < 0)
		return failed(fault, INI_REFUSED, strerror(errno));
	if (!S_ISREG(st.st_mode) && !S_ISCHR(st.st_mode))
		return failed(fault, INI_UNREADABLE, "it is not a regular file");

	_cleanup_(freep) char *text = malloc(INI_FILE_BYTES + 1);
	if (!text)
		return -ENOMEM;
	ssize_t n = read_all(fd, text, INI_FILE_BYTES + 1);
	if (n < 0)
		return failed(fault, INI_UNREADABLE, strerror((int)-n));
	*ret_text = TAKE_PTR(text);
	*ret_n = (size_t)n;
	return 0;
}
