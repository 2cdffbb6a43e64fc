/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * mperfctl record: we open the output before anything runs, so that a read-only folder fails at
 * once and not after an hour.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/measure/capture.h"
#include "client/measure/signals.h"
#include "client/options/command.h"
#include "client/show/print.h"
#include "proto/base/memory.h"
#include "proto/syntax/unit.h"

/* Write to stdout, as in `ssh board mperfctl record -o - -- CMD >run.mprf`. */
static int open_stdout(struct outfile *out)
{
	if (isatty(STDOUT_FILENO)) {
		say_failure("a recording is not text for a terminal",
			"Send stdout to a file, or name one with -o");
		return OUTFILE_FOREIGN;
	}
	out->fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	return out->fd < 0 ? -errno : 0;
}

static int open_output(struct outfile *out, const char *path, bool force)
{
	char what[512];
	if (strcmp(path, "-") == 0)
		return open_stdout(out);
	int r = outfile_open(out, path, force ? OUTFILE_OVER_FORCE : OUTFILE_OVER_SEGMENT);
	if (r == 0)
		return 0;
	if (r == OUTFILE_FOREIGN) {
		snprintf(what, sizeof(what), "'%.300s' exists and is not an mperf recording", path);
		say_failure(
			what, force ? "Name a regular file with -o"
				    : "Name another file with -o, or overwrite it with --force");
		return r;
	}
	print_say_failed(path, r, "name a file in a folder that you may write to with -o");
	return r;
}

static void say_written(const struct capture *c, const char *path)
{
	char bytes[UNIT_TEXT_BYTES];
	unit_text(MPERF__UNIT__UNIT_BYTES, (double)c->out->bytes, bytes);
	say_note("wrote %s (%s): %s", strcmp(path, "-") == 0 ? "to stdout" : path, bytes,
		c->provenance_line ? c->provenance_line : "no provenance");
	if (c->samples == 0)
		say_failure("nothing was sampled",
			"Let it run longer, raise -F, or see `mperfctl doctor`");
}

/* Counts of a command that counts itself are part of the recording. The service has a socket for them;
 * a daemon of our own gets one, unless the user chose another or none. */
static bool needs_feed(const struct options *o, const struct link *l)
{
	return o->target.command_line && l->daemon_pid > 0 && !getenv("MPERF_FEED");
}

/* The end of a recording that is in `out`. Returns the exit status, that of CMD if it could be written. */
static int keep(const struct capture *c, const char *path, struct outfile *out)
{
	int r = outfile_commit(out);
	if (r == 0) {
		say_written(c, path);
		return c->run.exit_status;
	}
	print_say_failed(path, r, "name another file with -o");
	return EXIT_FAILED;
}

/* --since: save what the service has kept. */
static int save_into(const struct options *o, const char *path, int signal_fd, struct outfile *out)
{
	struct link l;
	struct capture c = {.run = {.exit_status = EXIT_FAILED}};
	const struct source_request asked = source_request_of(o);
	Mperf__Filter filter;
	int r = link_open_service(&l);
	if (r == LINK_ABSENT)
		say_failure("no mperfd service answers, so there is no store to save from",
			"Start the service with `systemctl start mperfd`, or give something to "
			"record: -- CMD, --pid N or -a");
	if (r != 0)
		return EXIT_FAILED;
	source_stored_filter(&asked, &filter);
	r = capture_stored(&c, &l, &filter, signal_fd, out);
	int exit_status = r == 0 ? keep(&c, path, out) : c.run.exit_status;
	capture_clear(&c);
	link_close(&l);
	return exit_status;
}

static int record_into(
	const struct options *o, const char *path, int signal_fd, struct outfile *out)
{
	struct link l;
	struct capture c = {.run = {.exit_status = EXIT_FAILED}};
	struct feed_socket feed = {NULL, NULL};

	if (link_open(&l) != 0)
		return EXIT_FAILED;
	const struct source_request asked = source_request_of(o);
	int r = needs_feed(o, &l) ? feed_socket_make(&feed) : 0;
	if (r == 0)
		r = capture_run(&c, &l, &asked, signal_fd, out, feed.path);
	int exit_status = r == 0 ? keep(&c, path, out) : c.run.exit_status;
	capture_clear(&c);
	link_close(&l);
	feed_socket_clear(&feed);
	return exit_status;
}

int client_record(const struct options *o)
{
	const char *path = o->output ? o->output : SOURCE_DEFAULT;
	struct outfile out = {.fd = -1};
	int signal_fd;

	if (signals_block(&signal_fd) < 0)
		return EXIT_FAILED;
	int exit_status = EXIT_FAILED;
	if (open_output(&out, path, o->force) == 0) {
		exit_status = o->narrowing.since_ns ? save_into(o, path, signal_fd, &out)
						    : record_into(o, path, signal_fd, &out);
		outfile_clear(&out);
	}
	signals_unblock(signal_fd);
	return exit_status;
}
