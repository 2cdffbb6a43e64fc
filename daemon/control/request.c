/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * What several commands read from their requests: events, and the segment that is asked about.
 */
#include "daemon/control/request.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/control/peer.h"

int request_parse_events(struct request *q, char *const *text, size_t n, struct event_list *list)
{
	struct event_error error = {""};
	for (size_t i = 0; i < n; i++) {
		int r = event_parse(&kernel_real, text[i], list, &error);
		if (r == 0)
			continue;
		if (r > 0)
			r = request_fail(q, MPERF__FAILURE_KIND__FAILURE_USAGE,
				"mperfctl list shows the events of this machine.", "%s", error.text);
		return r < 0 ? r : 1;
	}
	return 0;
}

int request_read_machine(struct request *q, struct machine *ret_machine)
{
	int r = machine_read(&kernel_real, ret_machine);
	if (r == -EIO)
		r = request_fail(q, MPERF__FAILURE_KIND__FAILURE_MISSING,
			"Mount it: mount -t sysfs sysfs /sys.",
			"/sys/devices/system/cpu cannot be read, so the harts are not known");
	else
		return r;
	return r < 0 ? r : 1;
}

int request_check_pids(struct request *q, const int32_t *pid, size_t n, bool all)
{
	for (size_t i = 0; i < n; i++) {
		char path[32];
		struct stat st;
		int r = 0;
		snprintf(path, sizeof path, "/proc/%d", pid[i]);
		if (pid[i] <= 0 || stat(path, &st) < 0)
			r = request_fail(q, MPERF__FAILURE_KIND__FAILURE_MISSING,
				"Look for its pid with ps.", "there is no process with pid %d", pid[i]);
		else if (!all && st.st_uid != geteuid())
			r = request_fail(q, MPERF__FAILURE_KIND__FAILURE_REFUSED,
				"Run mperfctl as that user, or as root.",
				"process %d belongs to another user (uid %u)", pid[i],
				(unsigned)st.st_uid);
		else
			continue;
		return r < 0 ? r : 1;
	}
	return 0;
}

static Mperf__FailureKind kind_of(int outcome)
{
	return outcome == SEGMENT_ABSENT ? MPERF__FAILURE_KIND__FAILURE_MISSING
		: outcome == SEGMENT_REFUSED ? MPERF__FAILURE_KIND__FAILURE_REFUSED
					     : MPERF__FAILURE_KIND__FAILURE_BROKEN;
}

int request_open_segment(struct request *q, const char *path, sqlite3 **ret_db)
{
	int r;
	if (!q->peer->options->private)
		r = request_fail(q, MPERF__FAILURE_KIND__FAILURE_REFUSED,
			"Unset MPERF_SOCKET: mperfctl then reads the file with your own rights.",
			"the service opens no files for its clients");
	else if (!path || !*path)
		r = request_fail(q, MPERF__FAILURE_KIND__FAILURE_USAGE, "Give one with -i.",
			"no recording was named");
	else {
		struct segment_error error = {"", ""};
		r = segment_open(path, ret_db, &error);
		if (r <= 0)
			return r;
		r = request_fail(q, kind_of(r), error.remedy, "%s", error.text);
	}
	return r < 0 ? r : 1;
}
