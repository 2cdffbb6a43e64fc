/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * We build a message in memory, escape it and write it at once, so that a command's output cannot
 * split it.
 */
#include "client/show/say.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/show/ascii.h"
#include "client/show/escape.h"
#include "proto/base/clock.h"
#include "proto/base/memory.h"

#define NS_PER_S 1000000000ull
#define PROGRESS_AFTER_NS NS_PER_S     /* shorter operations need no progress */
#define PROGRESS_EVERY_NS 200000000ull /* five times a second: readable, and cheap over ssh */

uint64_t say_now_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

static void sentence(FILE *f, const char *text)
{
	size_t n = strlen(text);
	escape_terminal(f, text);
	if (n > 0 && !strchr(".!?", text[n - 1]))
		fputc('.', f);
}

static void say(const char *what, const char *remedy)
{
	_cleanup_(freep) char *line = NULL;
	size_t size;
	FILE *f = open_memstream(&line, &size);
	if (!f)
		return;

	fputs("mperfctl: ", f);
	sentence(f, what);
	if (remedy && *remedy) {
		fputc(' ', f);
		sentence(f, remedy);
	}
	fputc('\n', f);
	if (fclose(f) == 0)
		ascii_print(stderr, line);
}

void say_failure(const char *what, const char *remedy)
{
	say(what, remedy);
}

static bool quiet;

void say_quietly(void)
{
	quiet = true;
}

void say_note(const char *format, ...)
{
	if (quiet)
		return;
	_cleanup_(freep) char *text = NULL;
	va_list arguments;

	va_start(arguments, format);
	int n = vasprintf(&text, format, arguments);
	va_end(arguments);
	if (n >= 0)
		say(text, NULL);
	else
		text = NULL;
}

void say_progress_start(struct say_progress *p)
{
	p->start_ns = say_now_ns();
	p->last_ns = 0;
	p->visible = false;
	p->silent = !isatty(STDERR_FILENO);
}

void say_progress(struct say_progress *p, const char *what, uint64_t done, uint64_t total)
{
	uint64_t now_ns = say_now_ns();
	if (p->silent || now_ns - p->start_ns < PROGRESS_AFTER_NS ||
		now_ns - p->last_ns < PROGRESS_EVERY_NS)
		return;
	p->last_ns = now_ns;
	p->visible = true;

	_cleanup_(freep) char *line = NULL;
	size_t size;
	FILE *f = open_memstream(&line, &size);
	if (!f)
		return;
	fputs("\r\033[K", f);
	escape_terminal(f, what);
	if (total > 0)
		fprintf(f, " %3.0f %%", 100.0 * (double)done / (double)total);
	else if (done > 0)
		fprintf(f, " %llu", (unsigned long long)done);
	if (fclose(f) == 0)
		ascii_print(stderr, line);
}

void say_progress_end(struct say_progress *p)
{
	if (p->visible)
		fputs("\r\033[K", stderr);
	p->visible = false;
}
