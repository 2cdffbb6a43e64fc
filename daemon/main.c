/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * mperfd's options. Signals that a terminal sends to the whole foreground group are left to the
 * client, who finishes the recording well; when the client is gone, so is a private daemon.
 */
#include <argp.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "daemon/daemon.h"

const char *argp_program_version = "mperfd " MPERF_VERSION;

enum { OPTION_PRIVATE = 256, OPTION_NAMER };

static const struct argp_option options[] = {
	{"private", OPTION_PRIVATE, "FD", 0, "serve the one client at the other end of socket FD", 0},
	{"namer", OPTION_NAMER, "PATH", 0, "where mperf-namer is (default: $MPERF_NAMER, then beside mperfd)", 0},
	{0},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct daemon_options *o = state->input;
	switch (key) {
	case OPTION_PRIVATE: {
		char *end;
		long fd = strtol(arg, &end, 10);
		if (*end || end == arg || fd < 0 || fd > 1 << 20 || fcntl((int)fd, F_GETFD) < 0)
			argp_error(state, "--private=%s is not an open descriptor", arg);
		o->control_fd = (int)fd;
		return 0;
	}
	case OPTION_NAMER:
		o->namer = arg;
		return 0;
	case ARGP_KEY_ARG:
		argp_error(state, "'%s' is too much: mperfd takes no arguments", arg);
		return 0;
	case ARGP_KEY_END:
		if (o->control_fd < 0)
			argp_error(state, "nothing to serve: mperfctl starts mperfd --private=FD "
					  "when it needs one");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

int main(int argc, char **argv)
{
	static const struct argp argp = {
		.options = options,
		.parser = parse,
		.doc = "The profiling daemon of mperf.\v"
		       "Exit status: 0 when the client hung up, 1 on failure, 2 on wrong usage.",
	};
	struct daemon_options o = {.control_fd = -1, .namer = getenv("MPERF_NAMER")};
	argp_err_exit_status = 2;
	argp_parse(&argp, argc, argv, 0, NULL, &o);

	signal(SIGINT, SIG_IGN);
	signal(SIGQUIT, SIG_IGN);
	signal(SIGPIPE, SIG_IGN);
	/* The soft limit is small for the sake of select(2), which nobody here uses. */
	struct rlimit files;
	if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
		files.rlim_cur = files.rlim_max;
		setrlimit(RLIMIT_NOFILE, &files);
	}
	fcntl(o.control_fd, F_SETFD, FD_CLOEXEC);
	int r = daemon_run_private(&o);
	if (r < 0) {
		fprintf(stderr, "mperfd: stopped: %s\n", strerror(-r));
		return 1;
	}
	return 0;
}
