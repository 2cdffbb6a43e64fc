/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * mperfctl roofs: what this machine can do at most. A program of its own measures, as the caller,
 * since it needs no rights and runs for a minute on all harts; what it prints is checked like a file
 * from anybody, and kept.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "client/commands/command.h"
#include "client/options/options.h"
#include "client/roofs/roofs.h"
#include "client/show/escape.h"
#include "client/show/print.h"
#include "client/show/say.h"
#include "proto/memory.h"

#define PATH_BYTES 4096

/* --- measuring -------------------------------------------------------------------------------- */

/* In order: beside mperfctl, as in a build; relative to mperfctl as installed; where it was
 * configured to be. */
static bool find_program(char ret_path[static PATH_BYTES])
{
	static const char *const from_here[] = {"mperf-roofs", "../libexec/mperf/mperf-roofs"};
	ssize_t n = readlink(
		"/proc/self/exe", ret_path, PATH_BYTES - sizeof("../libexec/mperf/mperf-roofs"));
	char *slash = n > 0 ? memrchr(ret_path, '/', (size_t)n) : NULL;
	for (size_t i = 0; slash && i < sizeof(from_here) / sizeof(*from_here); i++) {
		strcpy(slash + 1, from_here[i]);
		if (access(ret_path, X_OK) == 0)
			return true;
	}
	snprintf(ret_path, PATH_BYTES, "%s/mperf-roofs", MPERF_LIBEXECDIR);
	return access(ret_path, X_OK) == 0;
}

/* In the child. */
static void become_program(const char *path, const struct options *o, int out)
{
	char limit[64];
	const char *argument[4] = {"mperf-roofs"};
	size_t n = 1;
	if (o->quick)
		argument[n++] = "--quick";
	if (o->for_ns) {
		snprintf(limit, sizeof(limit), "--for=%lluns", (unsigned long long)o->for_ns);
		argument[n++] = limit;
	}
	dup2(out, STDOUT_FILENO);
	execv(path, (char *const *)argument);
	dprintf(STDERR_FILENO, "mperfctl: cannot run '%s': %s.\n", path, strerror(errno));
	_exit(EXIT_NOT_EXECUTABLE);
}

/* All that the program prints, up to the limit of a file. 0, -errno. */
static int read_all(int fd, char **ret_text, size_t *ret_n)
{
	_cleanup_(freep) char *text = malloc(ROOFS_BYTES_MAX + 1);
	size_t n = 0;
	if (!text)
		return -ENOMEM;
	while (n <= ROOFS_BYTES_MAX) {
		ssize_t got = read(fd, text + n, ROOFS_BYTES_MAX + 1 - n);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		if (got == 0)
			break;
		n += (size_t)got;
	}
	*ret_text = TAKE_PTR(text);
	*ret_n = n;
	return 0;
}

static int run_program(const struct options *o, char **ret_text, size_t *ret_n)
{
	char path[PATH_BYTES], what[PATH_BYTES];
	int pipe_fd[2], status;
	if (!find_program(path)) {
		say_failure("cannot find mperf-roofs, which measures for mperfctl",
			"Install it beside mperfctl");
		return EXIT_FAILED;
	}
	if (pipe2(pipe_fd, O_CLOEXEC) < 0)
		return -errno;
	_cleanup_(closep) int in = pipe_fd[0], out = pipe_fd[1];
	pid_t pid = fork();
	if (pid < 0)
		return -errno;
	if (pid == 0)
		become_program(path, o, out);
	close(TAKE_FD(out));
	int r = read_all(in, ret_text, ret_n);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (r < 0)
		return r;
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return 0;
	if (WIFSIGNALED(status)) {
		snprintf(
			what, sizeof(what), "mperf-roofs was ended by signal %d", WTERMSIG(status));
		say_failure(what, "Nothing was kept; try again");
	}
	return EXIT_FAILED;
}

/* 0; an exit status after a message; -errno. */
static int measure(const struct options *o, struct roofs *ret_roofs)
{
	_cleanup_(freep) char *text = NULL;
	char fault[ROOF_NOTE_BYTES], what[2 * ROOF_NOTE_BYTES];
	size_t n = 0;
	int r = run_program(o, &text, &n);
	if (r != 0)
		return r;
	r = roofs_parse(text, n, ret_roofs, fault);
	if (r > 0) {
		snprintf(what, sizeof(what), "mperf-roofs printed what are no roofs: %s", fault);
		say_failure(what, "Install mperf-roofs and mperfctl of the same version");
		return EXIT_FAILED;
	}
	if (r == 0 && ret_roofs->n == 0) {
		roofs_clear(ret_roofs);
		say_failure("there was no time to measure a roof",
			"Give more with --for, or wait until the machine has less to do");
		return EXIT_FAILED;
	}
	if (r == 0 && (r = roofs_keep(ret_roofs)) < 0) {
		say_note("the roofs could not be kept: %s", strerror(-r));
		r = 0; /* they are still shown */
	}
	return r;
}

/* --- showing ---------------------------------------------------------------------------------- */

/* "98.1 GFLOP/s"; integers are plain operations. */
static void rate_text(const struct roof *r, double value, char ret_text[static 32])
{
	static const char prefix[] = {' ', 'k', 'M', 'G', 'T', 'P'};
	size_t i = 0;
	while (value >= 1000 && i + 1 < sizeof(prefix)) {
		value /= 1000;
		i++;
	}
	snprintf(ret_text, 32, "%.*f %c%s",
		value < 10    ? 2
		: value < 100 ? 1
			      : 0,
		value, prefix[i],
		r->limit == ROOF_MEMORY ? "B/s"
		: *r->precision == 'f'  ? "FLOP/s"
					: "OP/s");
}

static void write_roof(const struct roof *r, FILE *f)
{
	char value[32], low[32], high[32], unit[32], per_cycle[32] = "-";
	rate_text(r, r->value, value);
	rate_text(r, r->low, low);
	rate_text(r, r->high, high);
	snprintf(unit, sizeof(unit), r->lmul ? "%s m%u" : "%s", r->unit, r->lmul);
	if (r->hz > 0)
		snprintf(per_cycle, sizeof(per_cycle), "%.2f",
			r->value / r->hz / (r->n_harts ? r->n_harts : 1));
	fputs("  ", f);
	const char *first = r->limit == ROOF_COMPUTE ? r->precision : r->level;
	const char *second = r->limit == ROOF_COMPUTE ? r->operation : r->pattern;
	escape_terminal(f, first);
	fprintf(f, "%*s", (int)(6 - escape_width(first) % 6), "");
	escape_terminal(f, second);
	fprintf(f, "%*s", (int)(10 - escape_width(second) % 10), "");
	escape_terminal(f, unit);
	fprintf(f, "%*s%14s  %14s %14s  %9s", (int)(9 - escape_width(unit) % 9), "", value, low,
		high, per_cycle);
	if (*r->note) {
		fputs("  ", f);
		escape_terminal(f, r->note);
	}
	fputc('\n', f);
}

static void write_heading(const struct roofs *roofs, const struct roof *r, FILE *f)
{
	const char *name = r->kind;
	for (size_t i = 0; i < roofs->n_kinds; i++)
		if (strcmp(roofs->kinds[i].id, r->kind) == 0)
			name = roofs->kinds[i].name;
	fprintf(f, "\n%u %s (%s), ", r->n_harts, r->n_harts == 1 ? "hart" : "harts",
		roof_scope_name(r->scope));
	escape_terminal(f, name);
	fprintf(f, "\n  %-16s%-9s%14s  %14s %14s  %9s\n", "", "Unit", "Rate", "Low", "High",
		"Per cycle");
}

static int write_table(const struct roofs *roofs, FILE *f)
{
	char when[64] = "";
	struct tm tm;
	time_t measured = (time_t)roofs->measured_s;
	if (localtime_r(&measured, &tm))
		strftime(when, sizeof(when), "%Y-%m-%d %H:%M", &tm);
	fprintf(f, "Measured %s in %.0f s%s%s, on Linux ", when, roofs->took_s,
		roofs->quick ? ", --quick" : "", roofs->paused ? "" : ", beside whatever else ran");
	escape_terminal(f, roofs->kernel);
	fputc('\n', f);
	for (size_t i = 0; i < roofs->n; i++) {
		const struct roof *r = &roofs->roof[i], *before = i > 0 ? r - 1 : NULL;
		if (!before || before->scope != r->scope || strcmp(before->kind, r->kind) != 0)
			write_heading(roofs, r, f);
		write_roof(r, f);
	}
	fputs(roofs->n_notes > 0 ? "\n" : "", f);
	for (size_t i = 0; i < roofs->n_notes; i++) {
		fputs("note: ", f);
		escape_terminal(f, roofs->note[i]);
		fputc('\n', f);
	}
	return 0;
}

static int show(const struct options *o, const struct roofs *roofs)
{
	struct print p;
	if (roofs->stale)
		say_note("these roofs are stale: %s. Run `mperfctl roofs measure`", roofs->why);
	int r = print_open(&p, STDOUT_FILENO);
	if (r == 0)
		r = print_close(
			&p, o->json ? roofs_write(roofs, p.file) : write_table(roofs, p.file));
	if (r < 0)
		print_say_failed(NULL, r, "send stdout elsewhere");
	return r < 0 ? EXIT_FAILED : EXIT_DONE;
}

/* --- reading ---------------------------------------------------------------------------------- */

static int say_unread(const char *from, int r, const char *fault)
{
	char what[1024];
	if (r == ROOFS_NONE) {
		say_failure("no roofs have been measured", "Run `mperfctl roofs measure`");
		return EXIT_FAILED;
	}
	snprintf(what, sizeof(what), "cannot read %s%.300s%s: %s", from ? "'" : "",
		from ? from : "the roofs that were kept", from ? "'" : "",
		r < 0 ? strerror(-r) : fault);
	say_failure(what, r == ROOFS_NEWER ? "Update mperfctl"
			  : from           ? "Name a file that `mperfctl roofs --json` wrote"
					   : "Run `mperfctl roofs measure`");
	return EXIT_FAILED;
}

static int read_kept(const struct options *o, struct roofs *ret_roofs)
{
	char fault[ROOF_NOTE_BYTES] = "";
	int r = o->input ? roofs_read(o->input, ret_roofs, fault) : roofs_find(ret_roofs, fault);
	return r == 0 ? 0 : say_unread(o->input, r, fault);
}

int client_roofs(const struct options *o)
{
	struct roofs roofs;
	int r = o->topic ? measure(o, &roofs) : read_kept(o, &roofs);
	if (r < 0) {
		char what[256];
		snprintf(what, sizeof(what), "cannot measure: %s", strerror(-r));
		say_failure(what, "Free some memory or processes, and try again");
		return EXIT_FAILED;
	}
	if (r > 0)
		return r;
	r = show(o, &roofs);
	roofs_clear(&roofs);
	return r;
}
