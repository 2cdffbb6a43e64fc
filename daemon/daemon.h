/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* The daemon: the stations wired to one event loop
 *
 * daemon.c alone knows sd-event. It owns everything; stations never know one another's owners.
 */

#include <stdbool.h>

struct daemon_options {
	int control_fd;          /* --private: the connected end of the client's socketpair */
	const char *namer;       /* path of mperf-namer; NULL: found beside us */
};

/* Serve one private client until it hangs up. 0 or -errno. */
int daemon_run_private(const struct daemon_options *o);
