/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* A process is selected by pid or name, with all its threads; a name also selects threads of that
 * name. An event is named as in the recording ("cycles:u"), without its modifiers, or by an alias:
 * only the event itself must be the same.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/query/filter.h"

#include "daemon/decode/offcpu.h"
#include "daemon/query/job_label.h"
#include "proto/syntax/event_name.h"

static bool pid_wanted(const struct query_filter *q, const struct loaded_task *t)
{
	for (size_t i = 0; i < q->n_pids; i++)
		if (q->pid[i] == t->pid)
			return true;
	return q->n_pids == 0;
}

static bool comm_wanted(const struct loaded *l, const struct query_filter *q, uint32_t task)
{
	if (q->n_comms == 0)
		return true;
	const char *thread = text_of(l->texts, l->task[task].comm);
	const char *process = text_of(l->texts, l->task[l->task[task].process].comm);
	for (size_t i = 0; i < q->n_comms; i++)
		if ((thread && strcmp(q->comm[i], thread) == 0) ||
			(process && strcmp(q->comm[i], process) == 0))
			return true;
	return false;
}

/* A path, or everything below a path that ends in /. */
static bool cgroup_wanted(const struct loaded *l, const struct query_filter *q, uint32_t task)
{
	if (q->n_cgroups == 0)
		return true;
	const char *path = text_of(l->texts, l->task[task].cgroup);
	for (size_t i = 0; path && i < q->n_cgroups; i++) {
		size_t n = strlen(q->cgroup[i]);
		bool below = n > 0 && q->cgroup[i][n - 1] == '/';
		if (below ? strncmp(path, q->cgroup[i], n) == 0 : strcmp(path, q->cgroup[i]) == 0)
			return true;
	}
	return false;
}

/* The requested labels, and the jobs that they were compared with: all tasks of a job have the same
 * labels, and comparing a pattern takes long. */
#define COMPARED 256
struct wanted_labels {
	/* n_labels of the filter; NULL: one of them is no label, so that nothing matches */
	struct label *label;
	struct {
		uint32_t labels, cgroup; /* texts; both 0: not compared */
		bool wanted;
	} job[COMPARED];
};

static int read_wanted(const struct query_filter *q, struct wanted_labels *w)
{
	struct label_fault fault;
	w->label = calloc(q->n_labels + 1, sizeof(*w->label));
	if (!w->label)
		return -ENOMEM;
	for (size_t i = 0; i < q->n_labels && w->label; i++)
		if (label_parse(q->label[i], &w->label[i], &fault) != 0) {
			free(w->label);
			w->label = NULL;
		}
	return 0;
}

/* Does the task have all requested labels, from its job or from its control group? */
static bool is_labelled(const struct loaded *l, const struct query_filter *q,
	const struct wanted_labels *w, uint32_t task)
{
	struct label label[JOB_LABELS_MAX];
	return labels_match(w->label, q->n_labels, label, job_labels(l, task, label));
}

static bool labels_wanted(const struct loaded *l, const struct query_filter *q,
	struct wanted_labels *w, uint32_t task)
{
	const uint32_t labels = l->task[task].labels, cgroup = l->task[task].cgroup;
	const size_t at = (labels + 31 * cgroup) % COMPARED;
	if (q->n_labels == 0 || !w->label)
		return q->n_labels == 0;
	if (labels == 0 && cgroup == 0)
		return false;
	if (w->job[at].labels != labels || w->job[at].cgroup != cgroup) {
		w->job[at].wanted = is_labelled(l, q, w, task);
		w->job[at].labels = labels;
		w->job[at].cgroup = cgroup;
	}
	return w->job[at].wanted;
}

static bool job_wanted(const struct loaded *l, const struct query_filter *q, uint32_t task)
{
	const char *labels = q->n_jobs ? text_of(l->texts, l->task[task].labels) : NULL;
	for (size_t i = 0; labels && i < q->n_jobs; i++)
		if (q->job[i].uid == l->task[task].labels_uid &&
			strcmp(q->job[i].labels, labels) == 0)
			return true;
	return q->n_jobs == 0;
}

static bool hart_wanted(const struct query_filter *q, uint32_t hart)
{
	for (size_t i = 0; i < q->n_cpus; i++)
		if (q->cpu[i] == hart)
			return true;
	return q->n_cpus == 0;
}

/* A thread may have another user than its process. Such a thread is not shown, since it would show
 * the name and arguments of that process. */
static bool owner_wanted(const struct loaded *l, const struct query_filter *q, uint32_t task)
{
	uint64_t asked = (uint64_t)q->uid + 1;
	const struct loaded_task *t = &l->task[task];
	return !q->only_uid || (t->owner == asked && l->task[t->process].owner == asked);
}

/* Did the window end before the requested time? If the clock was set back, earlier realtime stamps
 * are too late; for windows of this boot we use the monotonic clock. */
static bool is_older(
	const struct loaded *l, const struct query_filter *q, const struct loaded_window *w)
{
	const char *boot = q->since_boot_ns > 0 ? text_of(l->texts, l->boot) : NULL;
	return boot && w->end_ns <= q->since_boot_ns && strcmp(boot, q->boot_id) == 0;
}

bool filter_window(
	const struct loaded *l, const struct query_filter *q, const struct loaded_window *w)
{
	if ((l->since_ns && w->realtime_ns < l->since_ns) ||
		(l->until_ns && w->realtime_ns >= l->until_ns))
		return false;
	if (!q || (!q->since_ns && !q->until_ns))
		return true;
	int64_t end_ns, span_ns; /* made-up times must not overflow */
	if (__builtin_sub_overflow(w->end_ns, w->start_ns, &span_ns) ||
		__builtin_add_overflow(w->realtime_ns, span_ns, &end_ns))
		return false;
	if (q->since_ns && (end_ns <= q->since_ns || is_older(l, q, w)))
		return false;
	return !q->until_ns || w->realtime_ns < q->until_ns;
}

/* "cycles:u" is also "cycles". */
static bool same_without_modifiers(const char *ours, const char *asked)
{
	size_t n = strlen(asked);
	return strncmp(ours, asked, n) == 0 &&
	       (ours[n] == '\0' || (ours[n] == ':' && !strchr(ours + n + 1, ':')));
}

/* Does the event have this name, or an alias of it? */
static bool event_matches(const struct loaded *l, const struct loaded_event *e, const char *name)
{
	const char *ours = text_of(l->texts, e->name);
	if (!e->known || !ours)
		return false;
	/* "waiting" is all of its kinds but the one that a hart is waited for */
	if (e->offcpu && event_name_is_all_waiting(name))
		return e->config != OFFCPU_HART;
	if (same_without_modifiers(ours, name))
		return true;
	for (size_t i = 0; i < n_event_names; i++) {
		const struct event_name *row = &event_names[i];
		bool asked = strcmp(row->name, name) == 0 ||
			     (row->alias && strcmp(row->alias, name) == 0);
		if (asked && row->type == e->type && row->config == e->config)
			return true;
	}
	return false;
}

static int fail_event(const struct loaded *l, const char *name)
{
	char known[200] = "";
	bool waits = false; /* its kinds are one name here */
	for (size_t i = 1, n = 0; i < QUERY_EVENTS_MAX && n + 1 < sizeof(known); i++) {
		const struct loaded_event *e = &l->event[i];
		if (e->known && !(e->offcpu && waits))
			n += (size_t)snprintf(known + n, sizeof(known) - n, "%s%s", n ? ", " : "",
				e->offcpu ? "waiting" : text_of(l->texts, e->name) ?: "?");
		waits |= e->offcpu;
	}
	char remedy[256];
	if (event_name_is_waiting(name) && !waits)
		return query_fail(l->error, MPERF__FAILURE_KIND__FAILURE_MISSING,
			"mperfctl status says why a service has none; recordings with -e of "
			"another event have none",
			"%s has no samples of waiting threads", l->path);
	if (event_name_is_waiting(name))
		return query_fail(l->error, MPERF__FAILURE_KIND__FAILURE_MISSING,
			"WAITING in mperfctl(1) lists the kinds", "there is no event %s", name);
	snprintf(remedy, sizeof(remedy), "It has %s", *known ? known : "no events");
	return query_fail(l->error, MPERF__FAILURE_KIND__FAILURE_MISSING, remedy,
		"%s did not count the event %s", l->path, name);
}

/* Find the tasks whose jobs have pins. 0, QUERY_FAILED, -ENOMEM. */
static int find_pinned(struct row_filter *f, struct loaded *l, const struct query_filter *q)
{
	f->without = calloc((size_t)l->n_tasks + 1, sizeof(*f->without));
	if (!f->without)
		return -ENOMEM;
	f->withouts = q->without;
	f->windows = true;
	/* in reverse order, so that each pin links to the job's next one */
	for (size_t k = q->n_without; k-- > 0;) {
		uint32_t labels;
		int r = query_fail_full(l, text_get(l->texts, q->without[k].labels, &labels));
		if (r != 0)
			return r;
		for (uint32_t i = 1; i <= l->n_tasks; i++)
			if (l->task[i].labels == labels &&
				l->task[i].labels_uid == q->without[k].uid)
				f->without[i] = (uint32_t)k + 1;
	}
	return 0;
}

bool without_has(
	const struct query_without *without, uint32_t first, int64_t realtime_ns, enum tier tier)
{
	int64_t step_ns = (int64_t)tier_step_ns(tier);
	for (uint32_t k = first; k != 0; k = without[k - 1].next) {
		const struct query_without *o = &without[k - 1];
		/* a row of a coarse tier covers all windows that began within its step */
		if (realtime_ns >= o->since_ns - step_ns + (step_ns > 0) &&
			realtime_ns < o->until_ns)
			return true;
	}
	return false;
}

bool filter_leaves_out(
	const struct loaded *l, const struct row_filter *f, uint32_t task, uint32_t window)
{
	return f->without &&
	       without_has(f->withouts, f->without[task], l->window[window].realtime_ns, l->tier);
}

static int find_tasks(bool **ret_task, const struct loaded *l, const struct query_filter *q)
{
	struct wanted_labels wanted = {.label = NULL};
	bool *task = *ret_task = calloc((size_t)l->n_tasks + 1, sizeof(*task));
	int r = task ? read_wanted(q, &wanted) : -ENOMEM;
	if (r < 0)
		return r;
	task[0] = q->n_pids == 0 && q->n_comms == 0 && q->n_cgroups == 0 && q->n_labels == 0 &&
		  q->n_jobs == 0 && !q->only_uid;
	for (uint32_t i = 1; i <= l->n_tasks; i++)
		task[i] = l->task[i].known
				  ? owner_wanted(l, q, i) && pid_wanted(q, &l->task[i]) &&
					    comm_wanted(l, q, i) && cgroup_wanted(l, q, i) &&
					    labels_wanted(l, q, &wanted, i) && job_wanted(l, q, i)
				  : task[0];
	free(wanted.label);
	return 0;
}

/* No event was requested, but the samples of the leading event represent no time: show its
 * counts. */
static void find_untimed(struct row_filter *f, const struct loaded *l)
{
	for (uint32_t i = 0; i <= HARTS_MAX; i++) {
		const uint32_t leader = l->hart[i].known ? l->hart[i].leader : 0;
		if (leader && l->event[leader].period)
			f->asked = f->event[leader] = true;
	}
}

int filter_make(struct row_filter *f, struct loaded *l, const struct query_filter *q)
{
	*f = (struct row_filter){.asked = q->event && *q->event};
	int r = find_tasks(&f->task, l, q);
	if (r == 0 && q->wall) {
		struct query_filter scope = *q;
		scope.n_pids = scope.n_comms = 0;
		r = find_tasks(&f->scope, l, &scope);
	}
	if (r < 0)
		return r;
	for (uint32_t i = 0; i <= HARTS_MAX; i++)
		f->hart[i] = hart_wanted(q, i);
	f->windows = q->since_ns != 0 || q->until_ns != 0 || l->since_ns != 0 || l->until_ns != 0;
	if (q->n_without > 0 && l->pin == QUERY_NO_PIN) {
		r = find_pinned(f, l, q);
		if (r != 0)
			return r;
	}
	for (uint32_t i = 0; i <= l->n_windows; i++)
		l->window[i].wanted =
			!f->windows || (l->window[i].known && filter_window(l, q, &l->window[i]));

	bool found = false;
	if (!f->asked) {
		find_untimed(f, l);
		return 0;
	}
	for (uint32_t i = 1; i < QUERY_EVENTS_MAX; i++)
		found |= f->event[i] = event_matches(l, &l->event[i], q->event);
	return found ? 0 : fail_event(l, q->event);
}

void filter_clear(struct row_filter *f)
{
	free(f->task);
	free(f->scope);
	free(f->without);
	f->task = f->scope = NULL;
	f->without = NULL;
}
