/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* The replay keeps no opinion of its own about PMUs: what an event does is the first rule of the
 * machine that fits. What it does itself is what every kernel does alike: descriptors end, groups
 * must agree on target and clock, a rate above the limit is refused, harts can be offline. Time is
 * a number that runs when somebody spins, in small steps, so that periods come out as set.
 */

#include "tests/unit/replay.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/unit/replay_part.h"

#define EVENTS_EVER_MAX 200000u /* a test that opens more is a loop gone wild */
#define ONLINE "/sys/devices/system/cpu/online"
#define MAX_SAMPLE_RATE "/proc/sys/kernel/perf_event_max_sample_rate"

struct replay_event *replay_event(const struct replay *r, int fd)
{
	unsigned i = (unsigned)(fd - REPLAY_FD_FIRST);
	return fd >= REPLAY_FD_FIRST && i < r->n_events ? &r->event[i] : NULL;
}

static struct replay_event *opened(struct replay *r, int fd)
{
	struct replay_event *e = replay_event(r, fd);
	if (e && e->open)
		return e;
	r->n_stray++;
	return NULL;
}

const char *replay_text(const struct replay *r, const char *path)
{
	for (int i = 0; i < r->n_files; i++)
		if (strcmp(r->file[i].path, path) == 0)
			return r->file[i].text;
	return NULL;
}

/* --- opening ---------------------------------------------------------------------------------- */

static bool hart_is_online(const struct replay *r, int hart)
{
	struct hart_set online = {0};
	const char *text = replay_text(r, ONLINE);
	return text && hart_set_parse(text, &online) == 0 && hart_set_has(&online, hart);
}

static bool task_lives(const struct replay *r, pid_t pid)
{
	char process[32], thread[48];
	snprintf(process, sizeof(process), "/proc/%d/", (int)pid);
	snprintf(thread, sizeof(thread), "/task/%d/", (int)pid);
	for (int i = 0; i < r->n_files; i++)
		if (strncmp(r->file[i].path, process, strlen(process)) == 0 ||
			strstr(r->file[i].path, thread))
			return true;
	return false;
}

static bool wants(int condition, bool is)
{
	return condition < 0 || condition == (int)is;
}

static bool rule_fits(const struct replay_rule *rule, const struct perf_event_attr *a, pid_t pid,
	int hart, int group_fd)
{
	bool sampling = a->sample_period > 0;
	return (rule->type < 0 || rule->type == a->type) &&
	       (rule->any_config || rule->config == a->config) &&
	       (rule->any_hart || hart_set_has(&rule->harts, hart)) &&
	       wants(rule->sampling, sampling) && wants(rule->exclude_kernel, a->exclude_kernel) &&
	       wants(rule->leader, group_fd < 0) && wants(rule->inherit, a->inherit) &&
	       wants(rule->sample_read, !!(a->sample_type & PERF_SAMPLE_READ)) &&
	       wants(rule->system_wide, pid == -1) &&
	       wants(rule->cgroup, !!(a->sample_type & PERF_SAMPLE_CGROUP)) &&
	       wants(rule->build_id, a->build_id) && wants(rule->ksymbol, a->ksymbol) &&
	       wants(rule->read_lost, !!(a->read_format & PERF_FORMAT_LOST));
}

/* What every kernel refuses, whatever the PMU. Source: perf_event_open in kernel/events/core.c. */
static int check_generic(
	struct replay *r, const struct perf_event_attr *a, pid_t pid, int hart, int group_fd)
{
	const char *rate = replay_text(r, MAX_SAMPLE_RATE);
	if (a->size < PERF_ATTR_SIZE_VER0)
		return -EINVAL;
	if (a->freq && rate && a->sample_freq > strtoull(rate, NULL, 10))
		return -EINVAL;
	if (replay_n_events(r) >= r->descriptors)
		return -EMFILE;
	if (pid == -1 && hart < 0)
		return -EINVAL;
	if (pid > 0 && !task_lives(r, pid))
		return -ESRCH;
	if (hart >= 0 && !hart_is_online(r, hart))
		return -ENODEV;
	if (group_fd < 0)
		return 0;
	if (a->pinned)
		return -EINVAL;

	const struct replay_event *leader = replay_event(r, group_fd);
	if (!leader || !leader->open)
		return -EBADF;
	if (leader->leader_fd != group_fd || leader->hart != hart || leader->pid != pid ||
		leader->attr.use_clockid != a->use_clockid || leader->attr.inherit != a->inherit)
		return -EINVAL;
	return 0;
}

static int replay_open(void *u, struct perf_event_attr *attr, pid_t pid, int hart, int group_fd,
	unsigned long flags)
{
	struct replay *r = u;
	r->n_opens++;
	if (r->fail_open > 0 && --r->fail_open == 0)
		return -r->fail_open_error;
	if (!(flags & PERF_FLAG_FD_CLOEXEC))
		return -EINVAL; /* the station never wants it inherited over exec */
	int error = check_generic(r, attr, pid, hart, group_fd);
	if (error < 0)
		return error;

	const struct replay_rule *rule = NULL;
	for (int i = 0; i < r->n_rules && !rule; i++)
		if (rule_fits(&r->rule[i], attr, pid, hart, group_fd))
			rule = &r->rule[i];
	if (!rule)
		return -ENOENT;
	if (rule->error)
		return -rule->error;
	if (r->n_events == EVENTS_EVER_MAX)
		return -ENFILE;
	if (r->n_events % 64 == 0) {
		struct replay_event *more =
			reallocarray(r->event, r->n_events + 64, sizeof(*r->event));
		r->event = more ? more : r->event;
		unsigned *live = reallocarray(r->live, r->n_events + 64, sizeof(*r->live));
		r->live = live ? live : r->live;
		if (!more || !live)
			return -ENOMEM;
	}
	int fd = REPLAY_FD_FIRST + (int)r->n_events;
	r->event[r->n_events++] = (struct replay_event){
		.open = true,
		.attr = *attr,
		.pid = pid,
		.hart = hart,
		.fd = fd,
		.leader_fd = group_fd < 0 ? fd : group_fd,
		.output_fd = fd,
		.rule = *rule,
		.enabled = !attr->disabled,
		.id = 1000 + (uint64_t)r->n_events,
	};
	return fd;
}

static void replay_close(void *u, int fd)
{
	struct replay *r = u;
	struct replay_event *e = opened(r, fd);
	if (e)
		e->open = false; /* its ring stays until unmapped, as a kernel's does */
}

/* --- the other calls -------------------------------------------------------------------------- */

static int set_output(struct replay *r, struct replay_event *e, int fd)
{
	const struct replay_event *to = opened(r, fd);
	if (!to)
		return -EBADF;
	/* Source: perf_event_set_output in kernel/events/core.c. */
	if (e->map || e->hart != to->hart || e->attr.use_clockid != to->attr.use_clockid ||
		e->attr.clockid != to->attr.clockid)
		return -EINVAL;
	e->output_fd = fd;
	return 0;
}

static int set_period(struct replay *r, struct replay_event *e, uint64_t value)
{
	const char *rate = replay_text(r, MAX_SAMPLE_RATE);
	if (value == 0 || e->attr.sample_period == 0)
		return -EINVAL;
	if (e->attr.freq && rate && value > strtoull(rate, NULL, 10))
		return -EINVAL;
	e->attr.sample_period = value;
	return 0;
}

static int replay_ioctl(void *u, int fd, unsigned long request, uintptr_t arg)
{
	struct replay *r = u;
	struct replay_event *e = opened(r, fd);
	if (!e)
		return -EBADF;
	if (r->fail_ioctl > 0 && --r->fail_ioctl == 0)
		return -r->fail_ioctl_error;
	switch (request) {
	case PERF_EVENT_IOC_ENABLE:
	case PERF_EVENT_IOC_DISABLE:
		e->enabled = request == PERF_EVENT_IOC_ENABLE;
		e->displaced = false;
		replay_learn_counters(r);
		return 0;
	case PERF_EVENT_IOC_RESET:
		e->value = e->fired_at = 0;
		return 0;
	case PERF_EVENT_IOC_ID:
		*(uint64_t *)arg = e->id;
		return 0;
	case PERF_EVENT_IOC_SET_OUTPUT:
		return set_output(r, e, (int)arg);
	case PERF_EVENT_IOC_PERIOD:
		return set_period(r, e, *(const uint64_t *)arg);
	default:
		return -ENOTTY;
	}
}

static ssize_t replay_read(void *u, int fd, void *buffer, size_t n)
{
	struct replay *r = u;
	const struct replay_event *e = opened(r, fd);
	uint64_t words[REPLAY_READ_WORDS_MAX];
	if (!e)
		return -EBADF;
	replay_charge_read(r);
	/* Source: __perf_read in kernel/events/core.c of Linux 6.12. */
	if (replay_event(r, e->leader_fd)->displaced)
		return 0;
	size_t bytes = replay_read_values(r, e, words) * sizeof(*words);
	if (n < bytes)
		return -ENOSPC;
	memcpy(buffer, words, bytes);
	return (ssize_t)bytes;
}

static size_t page_bytes(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

static uint64_t mapped_bytes(const struct replay *r)
{
	uint64_t n = 0;
	for (unsigned i = 0; i < r->n_events; i++)
		if (r->event[i].map)
			n += r->event[i].data_bytes + page_bytes();
	return n;
}

static void *replay_map(void *u, int fd, size_t data_bytes, int *ret_error)
{
	struct replay *r = u;
	struct replay_event *e = opened(r, fd);
	*ret_error = -EBADF;
	if (!e)
		return NULL;
	*ret_error = -r->fail_map_error;
	if (r->fail_map > 0 && --r->fail_map == 0)
		return NULL;
	*ret_error = -EINVAL;
	if (e->map || data_bytes < page_bytes() || (data_bytes & (data_bytes - 1)) ||
		(e->attr.inherit && e->hart < 0))
		return NULL;
	*ret_error = -EPERM;
	if (mapped_bytes(r) + data_bytes + page_bytes() > r->locked_bytes)
		return NULL;

	void *map = mmap(NULL, page_bytes() + data_bytes, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (map == MAP_FAILED) {
		*ret_error = -ENOMEM;
		return NULL;
	}
	struct perf_event_mmap_page *page = map;
	page->data_offset = page_bytes();
	page->data_size = data_bytes;
	e->map = map;
	e->data_bytes = data_bytes;
	return map;
}

static void replay_unmap(void *u, void *map, size_t data_bytes)
{
	struct replay *r = u;
	for (unsigned i = 0; i < r->n_events; i++) {
		struct replay_event *e = &r->event[i];
		if (e->map != map || e->data_bytes != data_bytes)
			continue;
		munmap(map, page_bytes() + data_bytes);
		e->map = NULL;
		return;
	}
	r->n_stray++;
}

static uint64_t replay_now(void *u)
{
	return ((struct replay *)u)->now_ns;
}

static uint32_t replay_tick_hz(void *u)
{
	return ((struct replay *)u)->tick_hz;
}

static int replay_spin(void *u, int hart, uint64_t ns)
{
	struct replay *r = u;
	if (!hart_is_online(r, hart))
		return -EINVAL;
	replay_run(r, hart, 0, ns);
	return 0;
}

static ssize_t replay_read_text(void *u, const char *path, char *buffer, size_t size)
{
	const char *text = replay_text(u, path);
	if (!text)
		return -ENOENT;
	size_t n = strlen(text);
	if (n >= size)
		return -E2BIG;
	memcpy(buffer, text, n + 1);
	return (ssize_t)n;
}

/* Folders are what the paths of the files say. */
static int replay_list(
	void *u, const char *path, void (*each)(void *userdata, const char *name), void *userdata)
{
	const struct replay *r = u;
	size_t n = strlen(path);
	int n_found = 0;
	while (n > 0 && path[n - 1] == '/')
		n--;
	for (int i = 0; i < r->n_files; i++) {
		const char *rest = r->file[i].path + n;
		if (strncmp(r->file[i].path, path, n) != 0 || *rest != '/')
			continue;
		size_t length = 1 + strcspn(rest + 1, "/");
		bool known = false;
		for (int j = 0; j < i && !known; j++)
			known = strncmp(r->file[j].path, r->file[i].path, n + length) == 0 &&
				(r->file[j].path[n + length] == '/' ||
					r->file[j].path[n + length] == '\0');
		char name[256];
		snprintf(name, sizeof(name), "%.*s", (int)length - 1, rest + 1);
		n_found++;
		if (!known)
			each(userdata, name);
	}
	return n_found ? 0 : -ENOENT;
}

static int replay_hwprobe(void *u, int hart, struct kernel_hwprobe *pairs, size_t n)
{
	const struct replay *r = u;
	const struct replay_hwprobe *h = NULL;
	if (r->n_hwprobes == 0)
		return -ENOSYS;
	if (!hart_is_online(r, hart))
		return -EINVAL;
	for (int i = 0; i < r->n_hwprobes && !h; i++)
		if (hart_set_has(&r->hwprobe[i].harts, hart))
			h = &r->hwprobe[i];
	for (size_t i = 0; i < n; i++) {
		if (!h || pairs[i].key < 0 || pairs[i].key > 2)
			pairs[i].key = -1;
		else
			pairs[i].value = pairs[i].key == 0   ? h->mvendorid
					 : pairs[i].key == 1 ? h->marchid
							     : h->mimpid;
	}
	return 0;
}

static const struct kernel replay_calls = {
	.event_open = replay_open,
	.event_ioctl = replay_ioctl,
	.event_read = replay_read,
	.ring_map = replay_map,
	.ring_unmap = replay_unmap,
	.event_close = replay_close,
	.now_ns = replay_now,
	.tick_hz = replay_tick_hz,
	.locked_bytes = replay_locked_bytes,
	.spin = replay_spin,
	.clock_gaps = replay_clock_gaps,
	.switch_work = replay_switch_work,
	.read_text = replay_read_text,
	.list = replay_list,
	.hwprobe = replay_hwprobe,
};

const struct kernel *replay_kernel(struct replay *r)
{
	r->kernel = replay_calls;
	r->kernel.userdata = r;
	return &r->kernel;
}

/* --- time ------------------------------------------------------------------------------------- */

/* Is it wanted to count, when its hart and task run? */
static bool is_on(const struct replay *r, const struct replay_event *e)
{
	if (!e->open || !e->enabled || e->dead)
		return false;
	const struct replay_event *leader = replay_event(r, e->leader_fd);
	return leader->open && leader->enabled;
}

static bool wanted(const struct replay *r, const struct replay_event *e, int hart, pid_t pid)
{
	return (e->hart == hart || e->hart < 0) && (e->pid == -1 || e->pid == pid) && is_on(r, e);
}

static bool runs(const struct replay *r, const struct replay_event *e, int hart, pid_t pid)
{
	return wanted(r, e, hart, pid) && replay_has_counters(r, e);
}

/* Fire what is due. In frequency mode the measure is time, else what was counted. */
static void fire(struct replay *r, struct replay_event *e, pid_t pid)
{
	if (!e->rule.fires || e->attr.sample_period == 0)
		return;
	double interval =
		e->attr.freq ? 1e9 / (double)e->attr.sample_freq : (double)e->attr.sample_period;
	double at = e->attr.freq ? (double)e->busy_ns : e->value;
	while (at - e->fired_at >= interval) {
		bool stops = replay_throttle(r, e, pid);
		e->fired_at = stops ? at : e->fired_at + interval;
		replay_sample(r, e, pid);
		replay_charge(r, e);
	}
}

void replay_run(struct replay *r, int hart, pid_t pid, uint64_t ns)
{
	replay_learn_counters(r);
	while (ns > 0) {
		uint64_t step = ns < REPLAY_STEP_NS ? ns : REPLAY_STEP_NS;
		ns -= step;
		r->now_ns += step;
		for (unsigned i = 0; i < r->n_live; i++) {
			struct replay_event *e = &r->event[r->live[i]];
			if (!is_on(r, e))
				continue;
			bool here = wanted(r, e, hart, pid);
			/* Time passes on the other harts too. */
			if (!here && e->pid != -1)
				continue;
			bool counts = replay_has_counters(r, e);
			if (replay_event(r, e->leader_fd)->displaced)
				continue;
			e->enabled_ns += step;
			e->running_ns += counts ? step : 0;
			if (!here || !counts || replay_is_stopped(r, e))
				continue;
			e->busy_ns += step;
			e->value += e->rule.per_us * (double)step / 1000;
		}
		/* A switch is told of as it is counted, so before who only reads the group. */
		for (unsigned i = r->n_live; i-- > 0;) {
			struct replay_event *e = &r->event[r->live[i]];
			if (e->rule.fires && runs(r, e, hart, pid) && !replay_is_stopped(r, e))
				fire(r, e, pid);
		}
		replay_unthrottle(r, hart, pid);
	}
}

/* --- scripts and looks ------------------------------------------------------------------------ */

/* What the kernel does with the events of harts that go offline: nothing brings them back. Those of
 * tasks go on elsewhere. Source: perf_event_exit_cpu_context in kernel/events/core.c. */
static void end_events(struct replay *r, const char *online)
{
	struct hart_set set = {0};
	if (hart_set_parse(online, &set) != 0)
		return;
	for (unsigned i = 0; i < r->n_events; i++)
		r->event[i].dead |= r->event[i].pid == -1 && !hart_set_has(&set, r->event[i].hart);
}

void replay_set_text(struct replay *r, const char *path, const char *text)
{
	if (text && strcmp(path, ONLINE) == 0)
		end_events(r, text);
	int i = 0;
	while (i < r->n_files && strcmp(r->file[i].path, path) != 0)
		i++;
	if (i == r->n_files) {
		if (!text || r->n_files == REPLAY_FILES_MAX)
			return;
		r->file[r->n_files++].path = strdup(path);
		r->file[i].text = NULL;
	}
	free(r->file[i].text);
	if (text) {
		r->file[i].text = strdup(text);
		return;
	}
	free(r->file[i].path);
	r->file[i] = r->file[--r->n_files];
}

void replay_fail_open(struct replay *r, unsigned nth, int error)
{
	r->fail_open = nth;
	r->fail_open_error = error;
}

void replay_fail_map(struct replay *r, unsigned nth, int error)
{
	r->fail_map = nth;
	r->fail_map_error = error;
}

void replay_fail_ioctl(struct replay *r, unsigned nth, int error)
{
	r->fail_ioctl = nth;
	r->fail_ioctl_error = error;
}

int replay_queue(struct replay *r, int hart, const void *bytes, size_t n)
{
	for (unsigned i = 0; i < r->n_events; i++)
		if (r->event[i].map && r->event[i].hart == hart)
			return replay_put(&r->event[i], bytes, n) ? 0 : -ENOSPC;
	return -ENOENT;
}

unsigned replay_n_opens(const struct replay *r)
{
	return r->n_opens;
}

unsigned replay_n_events(const struct replay *r)
{
	unsigned n = 0;
	for (unsigned i = 0; i < r->n_events; i++)
		n += r->event[i].open;
	return n;
}

unsigned replay_n_maps(const struct replay *r)
{
	unsigned n = 0;
	for (unsigned i = 0; i < r->n_events; i++)
		n += r->event[i].map != NULL;
	return n;
}

unsigned replay_n_stray(const struct replay *r)
{
	return r->n_stray;
}

const struct perf_event_attr *replay_attr(const struct replay *r, int fd)
{
	const struct replay_event *e = replay_event(r, fd);
	return e && e->open ? &e->attr : NULL;
}

struct replay *replay_free(struct replay *r)
{
	if (!r)
		return NULL;
	for (unsigned i = 0; i < r->n_events; i++)
		if (r->event[i].map)
			munmap(r->event[i].map, page_bytes() + r->event[i].data_bytes);
	for (int i = 0; i < r->n_files; i++) {
		free(r->file[i].path);
		free(r->file[i].text);
	}
	free(r->event);
	free(r->live);
	free(r->source);
	free(r->verified);
	free(r);
	return NULL;
}
