/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* The daemon: the stations wired to one event loop
 *
 * daemon.c alone knows sd-event. It owns everything; stations never know one another's owners.
 */

#include <stdbool.h>

#include "daemon/pmu/sampler.h"

struct daemon_options {
	int control_fd;          /* --private: the connected end of the client's socketpair; -1: a service */
	const char *namer;       /* path of mperf-namer; NULL: found beside us */
	const char *config;      /* path of mperf.conf; NULL: CONF_PATH, which may be absent */
	enum sampler_switches switches;
	const void *main_caller; /* where main returns to: where the stacks of others begin, too; or NULL */
};

/* Serve one private client until it hangs up. 0 or -errno. */
int daemon_run_private(const struct daemon_options *o);

/* Be the service until SIGTERM or SIGINT; SIGHUP reads the configuration anew. What is wrong is said
 * on standard error. 0; DAEMON_MISCONFIGURED; DAEMON_REFUSED (another daemon, no socket); -errno. */
enum { DAEMON_MISCONFIGURED = 1, DAEMON_REFUSED };
int daemon_run_service(const struct daemon_options *o);
