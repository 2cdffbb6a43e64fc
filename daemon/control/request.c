/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Parts of requests that several commands read: events, processes, the segment; and the check
 * whether the peer may access them. A private daemon leaves that check to the kernel, since it runs
 * as its client. The service has more rights than most peers, so it decides by the peer's
 * identity.
 */
#include "daemon/control/request.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/attribute/proc_reader.h"
#include "daemon/conf/conf.h"
#include "daemon/control/peer.h"
#include "daemon/loops/feed.h"
#include "daemon/pmu/cores.h"
#include "daemon/query/sources.h"
#include "proto/syntax/label.h"

static bool is_probe(const struct event *e)
{
	return strcmp(e->pmu, "kprobe") == 0 || strcmp(e->pmu, "uprobe") == 0;
}

/* May the service open this event for the peer? Probes can be anywhere in the kernel, and are named
 * by an address in the memory of the process that opens them. Tracepoints and breakpoints show the
 * kernel and, where they fire, other users. 0; positive after a refusal; -errno. */
static int check_event(struct request *q, const struct event *e)
{
	const struct peer *p = q->peer;
	bool watches_all = e->type == PERF_TYPE_TRACEPOINT || e->type == PERF_TYPE_BREAKPOINT;
	char what[EVENT_NAME_BYTES_MAX + 64];
	int r;
	if (p->options->private)
		return 0;
	if (is_probe(e) && p->uid != 0) {
		r = request_fail(q, MPERF__FAILURE_KIND__FAILURE_REFUSED, "Run mperfctl as root.",
			"the service creates no probes for its users: '%s'", e->name);
	} else if (watches_all && !p->sees_all) {
		snprintf(what, sizeof(what), "the event '%s' shows more than your own processes",
			e->name);
		r = request_refuse_group(q, what);
	} else {
		return 0;
	}
	return r < 0 ? r : 1;
}

int request_read_labels(struct request *q, char *const *text, size_t n, char **ret_json)
{
	struct label label[LABELS_MAX];
	struct label_fault fault = {"there is at least one label"};
	int r = n == 0 || n > LABELS_MAX ? LABELS_WRONG : 0;
	for (size_t i = 0; i < n && r == 0; i++)
		r = label_parse(text[i], &label[i], &fault);
	if (r == 0)
		r = labels_write(label, n, ret_json, &fault);
	if (r <= 0)
		return r;
	r = request_fail(q, MPERF__FAILURE_KIND__FAILURE_USAGE,
		"Write labels as KEY=VALUE; mperfctl(1) says what they are.", "%s", fault.text);
	return r < 0 ? r : 1;
}

int request_parse_events(struct request *q, char *const *text, size_t n, struct event_list *list)
{
	struct event_error error = {""};
	struct machine machine; /* machine whose cores have names for their events */
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
		snprintf(remedy, sizeof(remedy),
			"Join the group %s, which may see all processes (usermod -aG %s USER, then "
			"log in again).",
			conf->group, conf->group);
	else if (conf && *conf->group)
		snprintf(remedy, sizeof(remedy),
			"Run mperfctl as root, or have root make the group %s (groupadd "
			"--system %s, then systemctl reload mperfd) and join it.",
			conf->group, conf->group);
	else
		snprintf(remedy, sizeof(remedy),
			"Run mperfctl as root, or as the user that mperfd runs as.");
	return request_fail(q, MPERF__FAILURE_KIND__FAILURE_REFUSED, remedy, "%s", what);
}

int request_refuse_limit(struct request *q, enum user_hold what)
{
	char why[USER_WHY_BYTES];
	user_explain(q->peer->user, what, why, sizeof(why));
	return request_fail(q, MPERF__FAILURE_KIND__FAILURE_LIMIT, user_remedy(what), "%s", why);
}

int request_take(struct request *q, enum user_hold what, uint64_t n)
{
	if (user_take(q->peer->user, what, n))
		return 0;
	return request_refuse_limit(q, what) ?: 1;
}

bool request_has_proc(void)
{
	return access("/proc/self/stat", F_OK) == 0;
}

int request_fail_namer(struct request *q)
{
	if (!request_has_proc())
		return request_fail(
			q, MPERF__FAILURE_KIND__FAILURE_MISSING, NO_PROC_REMEDY, NO_PROC_SAYS);
	return request_fail(q, MPERF__FAILURE_KIND__FAILURE_INTERNAL,
		"Install all of mperf, or run mperfctl from its build folder.",
		"mperf-namer was not found beside mperfd");
}

static int refuse_gone(struct request *q, int32_t pid)
{
	if (!request_has_proc())
		return request_fail(
			q, MPERF__FAILURE_KIND__FAILURE_MISSING, NO_PROC_REMEDY, NO_PROC_SAYS);
	return request_fail(q, MPERF__FAILURE_KIND__FAILURE_MISSING, "Find its pid with ps.",
		"there is no process with pid %d", pid);
}

static int refuse_silent(struct request *q, int32_t pid)
{
	return request_fail(q, MPERF__FAILURE_KIND__FAILURE_REFUSED,
		"Try again: it, or another process of that user, does not respond (perhaps its "
		"file system hangs).",
		"the owner of process %d cannot be found out", pid);
}

/* Refuse a pid, with the apparent reason: it belongs to another user, who is named; or it runs as
 * the peer but has other rights. */
static int refuse_pid(struct request *q, int32_t pid)
{
	char path[32], what[128];
	struct stat st;
	snprintf(path, sizeof(path), "/proc/%d", pid);
	if (stat(path, &st) < 0)
		return refuse_gone(q, pid);
	if (st.st_uid == q->peer->uid)
		snprintf(what, sizeof(what),
			"process %d runs as you, but has additional rights (from setuid or the "
			"like) or hides its memory",
			pid);
	else if (st.st_uid == 0)
		snprintf(what, sizeof(what), "process %d belongs to root", pid);
	else
		snprintf(what, sizeof(what), "process %d belongs to another user (uid %u)", pid,
			(unsigned)st.st_uid);
	if (!q->peer->options->private)
		return request_refuse_group(q, what);
	return request_fail(q, MPERF__FAILURE_KIND__FAILURE_REFUSED,
		"Run mperfctl as that user, or as root.", "%s", what);
}

struct feed_reach request_feed_reach(const struct request *q)
{
	return (struct feed_reach){.all = q->peer->sees_all, .uid = q->peer->uid};
}

uid_t request_raise_uid(const struct request *q)
{
	return q->peer->sees_all ? (uid_t)-1 : q->peer->uid;
}

size_t request_drop_twins(int32_t *pid, size_t n)
{
	size_t kept = 0;
	for (size_t i = 0; i < n && kept <= REQUEST_PIDS_MAX; i++) {
		size_t twin = 0;
		while (twin < kept && pid[twin] != pid[i])
			twin++;
		if (twin == kept)
			pid[kept++] = pid[i];
	}
	return kept;
}

/* Does the process belong wholly to the peer? */
static int check_rights(struct request *q, int32_t pid)
{
	const struct peer *p = q->peer;
	struct rights rights;
	if (p->sees_all)
		return 0;
	int r = proc_reader_rights(p->options->reader, pid, 0, &rights);
	if (r != 0)
		return (r == PROC_SILENT ? refuse_silent(q, pid) : refuse_gone(q, pid)) ?: 1;
	return rights.uid == p->uid && rights.gid == p->gid ? 0 : refuse_pid(q, pid) ?: 1;
}

static int check_pid(struct request *q, int32_t pid, bool all)
{
	char path[32];
	struct stat st;
	snprintf(path, sizeof(path), "/proc/%d", pid);
	if (pid <= 0 || stat(path, &st) < 0)
		return refuse_gone(q, pid) ?: 1;
	if (!q->peer->options->private)
		return check_rights(q, pid);
	return all || st.st_uid == geteuid() ? 0 : refuse_pid(q, pid) ?: 1;
}

static int check_number(struct request *q, size_t n)
{
	if (n <= REQUEST_PIDS_MAX)
		return 0;
	int r = request_fail(q, MPERF__FAILURE_KIND__FAILURE_LIMIT,
		"Name fewer, or name their parent.", "one request can name at most %d processes",
		REQUEST_PIDS_MAX);
	return r < 0 ? r : 1;
}

int request_check_pids(struct request *q, const int32_t *pid, size_t n, bool all)
{
	int r = check_number(q, n);
	for (size_t i = 0; i < n && r == 0; i++)
		r = check_pid(q, pid[i], all);
	return r < 0 ? r : r > 0;
}

/* A thread may be named, of which there is no pidfd: it is looked at alone. */
static int hold_pid(struct request *q, int32_t pid, struct held_pids *held)
{
	int fd = pidfd_open(pid, 0);
	if (fd < 0 && errno == ESRCH)
		return refuse_gone(q, pid) ?: 1;
	if (fd < 0 && errno != EINVAL && errno != ENOENT)
		return -errno;
	held->held[held->n++] = (struct held_pid){pid, fd};
	return 0;
}

int request_hold_pids(
	struct request *q, const int32_t *pid, size_t n, bool all, struct held_pids *ret_held)
{
	int r = check_number(q, n);
	ret_held->n = 0;
	for (size_t i = 0; i < n && r == 0; i++) {
		r = hold_pid(q, pid[i], ret_held);
		if (r == 0)
			r = check_pid(q, pid[i], all);
	}
	return r < 0 ? r : r > 0;
}

/* Check held pids again. Drop processes that have ended: their pids may belong to others. */
int request_recheck_pids(struct request *q, const struct held_pids *held, bool all)
{
	int r = 0;
	for (size_t i = 0; i < held->n && r == 0; i++) {
		struct pollfd p = {.fd = held->held[i].fd, .events = POLLIN};
		r = check_pid(q, held->held[i].pid, all);
		if (r == 0 && p.fd >= 0 && poll(&p, 1, 0) > 0)
			r = refuse_gone(q, held->held[i].pid) ?: 1;
	}
	return r < 0 ? r : r > 0;
}

void held_pids_clear(struct held_pids *held)
{
	for (size_t i = 0; i < held->n; i++)
		if (held->held[i].fd >= 0)
			close(held->held[i].fd);
	held->n = 0;
}

void *request_copy(const ProtobufCMessage *m)
{
	_cleanup_(freep) uint8_t *packed = malloc(protobuf_c_message_get_packed_size(m) + 1);
	if (!packed)
		return NULL;
	return protobuf_c_message_unpack(
		m->descriptor, NULL, protobuf_c_message_pack(m, packed), packed);
}

int request_check_file(struct request *q, const char *path)
{
	int r;
	if (!q->peer->options->private)
		r = request_fail(q, MPERF__FAILURE_KIND__FAILURE_REFUSED,
			"Unset MPERF_SOCKET: mperfctl then reads the file with your own rights.",
			"the service opens no files for its clients");
	else if (!path || !*path)
		r = request_fail(q, MPERF__FAILURE_KIND__FAILURE_USAGE, "Give one with -i.",
			"no recording was named");
	else
		return 0;
	return r < 0 ? r : 1;
}

int request_open_segment(struct request *q, const char *path, sqlite3 **ret_db)
{
	struct query_source source = {.path = path, .named = true};
	struct query_error error;
	int r = request_check_file(q, path);
	if (r != 0)
		return r;
	r = source_open(&source, ret_db, &error);
	return r > 0 ? request_fail(q, error.kind, error.remedy, "%s", error.text) ?: 1 : r;
}
