/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * What several commands read from their requests: events, processes, the segment that is asked
 * about; and whether who asks may have them. A private daemon leaves the latter to the kernel,
 * since it runs as its client. The service may do more than most who ask it, so it decides by who
 * they are.
 */
#include "daemon/control/request.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/conf.h"
#include "daemon/control/peer.h"
#include "daemon/pmu/cores.h"

static bool is_probe(const struct event *e)
{
	return strcmp(e->pmu, "kprobe") == 0 || strcmp(e->pmu, "uprobe") == 0;
}

/* May the service open this event for the peer? Probes are placed anywhere in the kernel, and named
 * by an address in the memory of who opens them. Tracepoints and breakpoints tell of the kernel
 * and, where they fire, of other users. 0; positive after the peer was told; -errno. */
static int check_event(struct request *q, const struct event *e)
{
	const struct peer *p = q->peer;
	bool watches_all = e->type == PERF_TYPE_TRACEPOINT || e->type == PERF_TYPE_BREAKPOINT;
	char what[EVENT_NAME_BYTES_MAX + 64];
	int r;
	if (p->options->private)
		return 0;
	if (is_probe(e) && p->uid != 0) {
		r = request_fail(q, MPERF__FAILURE_KIND__FAILURE_REFUSED, "Ask as root.",
			"the service places no probes for its users: '%s'", e->name);
	} else if (watches_all && !p->sees_all) {
		snprintf(what, sizeof what, "the event '%s' tells of more than your own processes",
			e->name);
		r = request_refuse_group(q, what);
	} else {
		return 0;
	}
	return r < 0 ? r : 1;
}

int request_parse_events(struct request *q, char *const *text, size_t n, struct event_list *list)
{
	struct event_error error = {""};
	struct machine machine; /* whose cores have names for their events */
	int outcome = n > 0 ? request_read_machine(q, &machine) : 0;
	if (outcome != 0)
		return outcome;
	for (size_t i = 0; i < n; i++) {
		int before = list->n_events;
		int r = event_parse_for(
			&kernel_real, q->peer->options->cores, text[i], list, &error);
		if (r > 0)
			r = request_fail(q, MPERF__FAILURE_KIND__FAILURE_USAGE,
				    "`mperfctl list` shows the events of this machine.", "%s",
				    error.text)
				    ?: 1;
		for (int e = before; e < list->n_events && r == 0; e++)
			r = check_event(q, &list->event[e]);
		if (r != 0)
			return r < 0 ? r : 1;
	}
	return 0;
}

int request_read_machine(struct request *q, struct machine *ret_machine)
{
	int r = machine_read(&kernel_real, ret_machine);
	if (r == 0)
		r = cores_read(q->peer->options->cores, &kernel_real, ret_machine);
	if (r == -EIO)
		r = request_fail(q, MPERF__FAILURE_KIND__FAILURE_MISSING,
			"Mount it: mount -t sysfs sysfs /sys.",
			"/sys/devices/system/cpu cannot be read, so the harts are not known");
	else
		return r;
	return r < 0 ? r : 1;
}

int request_refuse_group(struct request *q, const char *what)
{
	const struct conf *conf = q->peer->options->conf;
	char remedy[128 + 2 * CONF_TEXT_BYTES];
	if (conf && *conf->group && q->peer->options->group_known)
		snprintf(remedy, sizeof remedy,
			"Join the group %s, which sees everybody's processes (usermod -aG %s USER, "
			"then log in anew).",
			conf->group, conf->group);
	else if (conf && *conf->group)
		snprintf(remedy, sizeof remedy,
			"Ask as root, or have root make the group %s (groupadd --system %s, then "
			"systemctl reload mperfd) and join it.",
			conf->group, conf->group);
	else
		snprintf(remedy, sizeof remedy, "Ask as root, or as the user whom mperfd runs as.");
	return request_fail(q, MPERF__FAILURE_KIND__FAILURE_REFUSED, remedy, "%s", what);
}

int request_refuse_limit(struct request *q, enum user_hold what)
{
	char why[USER_WHY_BYTES];
	user_explain(q->peer->user, what, why, sizeof why);
	return request_fail(q, MPERF__FAILURE_KIND__FAILURE_LIMIT, user_remedy(what), "%s", why);
}

int request_take(struct request *q, enum user_hold what, uint64_t n)
{
	if (user_take(q->peer->user, what, n))
		return 0;
	return request_refuse_limit(q, what) ?: 1;
}

/* Real, effective, saved and file system user of a process. Source: man 5 proc, status. */
static bool read_uids(int32_t pid, uid_t ret_uid[static 4])
{
	char path[32], line[256];
	bool found = false;
	snprintf(path, sizeof path, "/proc/%d/status", pid);
	FILE *f = fopen(path, "re");
	while (f && !found && fgets(line, sizeof line, f))
		found = sscanf(line, "Uid: %u %u %u %u", &ret_uid[0], &ret_uid[1], &ret_uid[2],
				&ret_uid[3]) == 4;
	if (f)
		fclose(f);
	return found;
}

static int refuse_pid(struct request *q, int32_t pid, uid_t owner)
{
	char what[96];
	if (owner == q->peer->uid)
		snprintf(what, sizeof what,
			"process %d runs a program with rights of its own (setuid or the like)",
			pid);
	else if (owner == 0)
		snprintf(what, sizeof what, "process %d belongs to root", pid);
	else
		snprintf(what, sizeof what, "process %d belongs to another user (uid %u)", pid,
			(unsigned)owner);
	if (!q->peer->options->private)
		return request_refuse_group(q, what);
	return request_fail(q, MPERF__FAILURE_KIND__FAILURE_REFUSED,
		"Run mperfctl as that user, or as root.", "%s", what);
}

/* Is each of its users the peer? A setuid program has another one in at least one of the four; the
 * folder of one that has capabilities, or is hidden for another reason, belongs to root.
 * Source: man 5 proc; man 2 prctl, PR_SET_DUMPABLE. */
static bool wholly_own(const struct request *q, uid_t folder, const uid_t uid[static 4])
{
	if (folder != q->peer->uid)
		return false;
	for (int i = 0; i < 4; i++)
		if (uid[i] != q->peer->uid)
			return false;
	return true;
}

static int check_pid(struct request *q, int32_t pid, bool all)
{
	char path[32];
	struct stat st;
	uid_t uid[4];
	snprintf(path, sizeof path, "/proc/%d", pid);
	bool lives = pid > 0 && stat(path, &st) == 0;
	bool service = !q->peer->options->private;
	if (lives && service)
		lives = read_uids(pid, uid);
	if (!lives)
		return request_fail(q, MPERF__FAILURE_KIND__FAILURE_MISSING,
			       "Look for its pid with ps.", "there is no process with pid %d", pid)
			       ?: 1;
	if (service && !q->peer->sees_all && !wholly_own(q, st.st_uid, uid))
		return refuse_pid(q, pid, uid[0]) ?: 1;
	if (!service && !all && st.st_uid != geteuid())
		return refuse_pid(q, pid, st.st_uid) ?: 1;
	return 0;
}

int request_check_pids(struct request *q, const int32_t *pid, size_t n, bool all)
{
	for (size_t i = 0; i < n; i++) {
		int r = check_pid(q, pid[i], all);
		if (r != 0)
			return r < 0 ? r : 1;
	}
	return 0;
}

static Mperf__FailureKind kind_of(int outcome)
{
	return outcome == SEGMENT_ABSENT    ? MPERF__FAILURE_KIND__FAILURE_MISSING
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
