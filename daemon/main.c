/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * mperfd's options. Signals that a terminal sends to the whole foreground group are left to the
 * client, who finishes the recording well; when the client is gone, so is a private daemon.
 */
#include <argp.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include <sqlite3.h>
#include <systemd/sd-daemon.h>

#include "daemon/conf/conf.h"
#include "daemon/daemon.h"
#include "daemon/debuginfod/server.h"
#include "daemon/sampler/sampler.h"

#define EXIT_USAGE 2

const char *argp_program_version = "mperfd " MPERF_VERSION;

enum {
	OPTION_PRIVATE = 256,
	OPTION_NAMER,
	OPTION_FOREGROUND,
	OPTION_CONFIG,
	OPTION_CHECK,
	OPTION_FETCH,
	OPTION_PRINT
};

static const struct argp_option options[] = {
	{"foreground", OPTION_FOREGROUND, NULL, 0,
		"run as the service, and log to standard error (mperfd always does: it never "
		"forks away)",
		0},
	{"config", OPTION_CONFIG, "FILE", 0, "read this instead of " CONF_PATH, 0},
	{"check-config", OPTION_CHECK, NULL, 0, "check the configuration, and exit", 0},
	{"print-config", OPTION_PRINT, NULL, 0, "print every key with the value in force, and exit",
		0},
	{"fetch-debug", OPTION_FETCH, NULL, 0,
		"fetch debug symbols from the servers of the configuration, for the service "
		"(mperf-debuginfod.service does this)",
		0},
	{"namer", OPTION_NAMER, "PATH", 0,
		"where mperf-namer is (default: $MPERF_NAMER, then beside mperfd)", 0},
	{"private", OPTION_PRIVATE, "FD", 0,
		"serve only the client at the other end of socket FD (mperfctl does this where no "
		"service answers)",
		0},
	{0},
};

struct arguments {
	struct daemon_options daemon;
	bool check, print, fetch;
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct arguments *a = state->input;
	switch (key) {
	case OPTION_PRIVATE: {
		char *end;
		long fd = strtol(arg, &end, 10);
		if (*end || end == arg || fd < 0 || fd > 1 << 20 || fcntl((int)fd, F_GETFD) < 0)
			argp_error(state, "--private=%s is not an open descriptor", arg);
		a->daemon.control_fd = (int)fd;
		return 0;
	}
	case OPTION_NAMER:
		a->daemon.namer = arg;
		return 0;
	case OPTION_CONFIG:
		a->daemon.config = arg;
		return 0;
	case OPTION_FOREGROUND:
		return 0;
	case OPTION_CHECK:
		a->check = true;
		return 0;
	case OPTION_FETCH:
		a->fetch = true;
		return 0;
	case OPTION_PRINT:
		a->print = true;
		return 0;
	case ARGP_KEY_ARG:
		argp_error(state, "unexpected argument '%s': mperfd takes none", arg);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* 0, or the exit status. */
static int read_config(const struct arguments *a, struct conf *ret_conf)
{
	struct conf_error error = {""};
	const char *path = a->daemon.config ? a->daemon.config : CONF_PATH;
	int r = conf_read(path, ret_conf, &error);
	if (r == CONF_ABSENT && !a->daemon.config) {
		conf_defaults(ret_conf);
		fprintf(stderr, "mperfd: there is no %s; using the defaults\n", path);
	} else if (r != 0) {
		fprintf(stderr, "mperfd: %s\n", r > 0 ? error.text : strerror(-r));
		return r > 0 ? EXIT_USAGE : EXIT_FAILURE;
	}
	return 0;
}

/* --check-config and --print-config. */
static int show_config(const struct arguments *a)
{
	struct conf conf;
	int r = read_config(a, &conf);
	if (r == 0 && a->print)
		conf_print(&conf, stdout);
	return r != 0 ? r : fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* --fetch-debug, with one socket from systemd. */
static int fetch_debug(const struct arguments *a)
{
	struct conf conf;
	int wrong = read_config(a, &conf), r;
	if (sd_listen_fds(1) != 1) {
		if (wrong)
			return wrong;
		fputs("mperfd: --fetch-debug needs the socket of mperf-debuginfod.socket: "
		      "`systemctl start mperf-debuginfod.socket`\n",
			stderr);
		return EXIT_USAGE;
	}
	/* Somebody waits: if we ended now, systemd would start us again and again. So we ask no server, and end when idle. */
	if (wrong)
		conf_defaults(&conf);
	r = debuginfod_serve(
		SD_LISTEN_FDS_START, &(struct debuginfod_options){.urls = conf.debuginfod,
					     .cache = conf.debuginfod_cache,
					     .cache_bytes_max = conf.debuginfod_cache_bytes});
	if (r < 0)
		fprintf(stderr, "mperfd: --fetch-debug stopped: %s\n", strerror(-r));
	return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* The soft limit is small for the sake of select(2), which nobody here uses. */
static void raise_file_limit(void)
{
	struct rlimit files;
	if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
		files.rlim_cur = files.rlim_max;
		setrlimit(RLIMIT_NOFILE, &files);
	}
}

static int run_private(const struct daemon_options *o)
{
	signal(SIGINT, SIG_IGN);
	signal(SIGQUIT, SIG_IGN);
	fcntl(o->control_fd, F_SETFD, FD_CLOEXEC);
	return daemon_run_private(o);
}

/* Nobody asks how much memory SQLite has, and only the main thread calls it, here and in children: no
 * mutex at each allocation. A library built otherwise refuses, and is slower. */
static void configure_sqlite(void)
{
	(void)sqlite3_config(SQLITE_CONFIG_SINGLETHREAD);
	(void)sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
}

/* What cuts counts at switches, for tests and comparisons. False: no such thing. */
static bool read_switches(enum sampler_switches *ret_switches)
{
	const char *text = getenv("MPERF_SWITCHES");
	if (!text || sampler_switches_parse(text, ret_switches) == 0)
		return true;
	fprintf(stderr,
		"mperfd: MPERF_SWITCHES=%s is not best, sibling, bpf, sums, cheapest or none; "
		"unset it\n",
		text);
	return false;
}

/* It would hold all users' samples, and copies of their stacks. */
static void leave_no_core(void)
{
	(void)setrlimit(RLIMIT_CORE, &(struct rlimit){0});
}

int main(int argc, char **argv)
{
	static const struct argp argp = {
		.options = options,
		.parser = parse,
		.doc = "The profiling daemon of mperf. Without --private it is the system's "
		       "service; "
		       "`systemctl start mperfd` starts it.\v"
		       "Examples:\n"
		       "  mperfd --foreground --config=./mperf.conf\n"
		       "  mperfd --check-config\n\n"
		       "Exit status: 0 after a signal to end (or, with --private, when the client "
		       "hung up), 1 on failure, 2 on wrong usage or configuration.",
	};
	struct arguments a = {.daemon = {.control_fd = -1,
				      .namer = getenv("MPERF_NAMER"),
				      .main_caller = __builtin_return_address(0)}};
	argp_err_exit_status = EXIT_USAGE;
	argp_parse(&argp, argc, argv, 0, NULL, &a);
	if (a.check || a.print)
		return show_config(&a);
	if (a.fetch)
		return fetch_debug(&a);
	if (!read_switches(&a.daemon.switches))
		return EXIT_USAGE;

	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	raise_file_limit();
	leave_no_core();
	configure_sqlite();
	int r = a.daemon.control_fd >= 0 ? run_private(&a.daemon) : daemon_run_service(&a.daemon);
	if (r < 0)
		fprintf(stderr, "mperfd: stopped: %s\n", strerror(-r));
	return r == 0 ? EXIT_SUCCESS : r == DAEMON_MISCONFIGURED ? EXIT_USAGE : EXIT_FAILURE;
}
