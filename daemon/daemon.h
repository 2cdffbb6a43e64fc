/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* The daemon: the rooms connected to one event loop
 *
 * Only daemon.c knows sd-event. It owns everything; a room never knows the owners of others.
 */

#include <stdbool.h>

#include "daemon/sampler/sampler.h"

struct daemon_options {
	/* --private: the connected end of the client's socketpair; -1: a service */
	int control_fd;
	const char *namer;  /* path of mperf-namer; NULL: found beside us */
	const char *config; /* path of mperf.conf; NULL: CONF_PATH, which may be absent */
	enum sampler_switches switches;
	/* return address of main, where the stacks of other processes begin too; or NULL */
	const void *main_caller;
};

/* Serve one private client until it hangs up. 0 or -errno. */
int daemon_run_private(const struct daemon_options *o);

/* Run as the service until SIGTERM or SIGINT; SIGHUP reloads the configuration. Errors go to
 * standard error. 0; DAEMON_MISCONFIGURED; DAEMON_REFUSED (another daemon, no socket); -errno. */
enum { DAEMON_MISCONFIGURED = 1, DAEMON_REFUSED };
int daemon_run_service(const struct daemon_options *o);
