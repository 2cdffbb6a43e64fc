/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* The side band of a hart: mappings, names, forks and exits, through a dummy event
 *
 * What the kernel can report is found out once, on the first hart.
 */

#include <errno.h>
#include <sys/resource.h>
#include <unistd.h>

#include "daemon/sampler/attr.h"
#include "daemon/sampler/sampler_private.h"

/* Explain a refusal of the side band. The user did not name it, so the message names no event. */
int sideband_refuse(struct opening *o, int error)
{
	struct event dummy = event_dummy();
	struct refusal why = refusal_explain(&dummy, error, true, &o->sampler->machine);
	opening_explain(&o->error, "%s; %s", why.says, why.remedy);
	return HART_REFUSED;
}

/* --- what the kernel can report --------------------------------------------------------------- */

/* Newer features are given up first, and as few as possible. */
static const uint8_t sideband_order[] = {
	SIDEBAND_KSYMBOL | SIDEBAND_CGROUP | SIDEBAND_LOST,
	SIDEBAND_KSYMBOL | SIDEBAND_LOST, /* no CONFIG_CGROUP_PERF */
	SIDEBAND_KSYMBOL | SIDEBAND_CGROUP,
	SIDEBAND_KSYMBOL,
	SIDEBAND_CGROUP | SIDEBAND_LOST,
	SIDEBAND_LOST,
	SIDEBAND_CGROUP,
	0,
};

static int sideband_try(struct opening *o, int hart)
{
	struct sampler *s = o->sampler;
	const struct kernel *k = s->kernel;
	bool kernel_symbols = !s->options.user_only && s->machine.may_see_kernel;
	int fd = -EINVAL;
	for (size_t i = 0; i < sizeof(sideband_order) && (fd == -EINVAL || fd == -E2BIG); i++) {
		unsigned features = sideband_order[i];
		if ((features & SIDEBAND_KSYMBOL) && !kernel_symbols)
			continue;
		/* A task may end at any time, so the features are tried on the first live one. */
		for (size_t task = 0; task < o->n_tasks; task++) {
			struct perf_event_attr attr;
			fd = -ESRCH;
			if (o->tasks[task] == 0)
				continue;
			attr_sideband(s, features, 0, &attr);
			fd = k->event_open(
				k->userdata, &attr, o->tasks[task], hart, -1, PERF_FLAG_FD_CLOEXEC);
			if (fd != -ESRCH)
				break;
			o->tasks[task] = 0;
		}
		if (fd >= 0)
			s->sideband.features = features;
	}
	if (fd == -ESRCH || fd == -ENODEV)
		return HART_GONE;
	if (opening_exhausted(fd))
		return fd;
	if (fd < 0)
		return sideband_refuse(o, -fd);
	k->event_close(k->userdata, fd);
	s->cgroups = s->sideband.features & SIDEBAND_CGROUP;
	s->reads_lost = s->sideband.features & SIDEBAND_LOST;
	return 0;
}

/* The soft limit is small because of select(2), which is not used here: raise it to the hard limit.
 * This is the process's own limit, not the machine's, so struct kernel is not used. */
bool raise_descriptor_limit(void)
{
	struct rlimit limit;
	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur >= limit.rlim_max)
		return false;
	limit.rlim_cur = limit.rlim_max;
	return setrlimit(RLIMIT_NOFILE, &limit) == 0;
}

int sideband_learn(struct opening *o, int hart)
{
	int r = sideband_try(o, hart);
	if (r == -EMFILE && raise_descriptor_limit())
		r = sideband_try(o, hart);
	return r;
}

/* --- events and rings ------------------------------------------------------------------------- */

/* Map the ring of samples, through an event without records of its own. */
static int sample_ring_open(struct opening *o, int hart)
{
	struct sampler *s = o->sampler;
	struct perf_event_attr attr;
	size_t n = ring_bytes_for(s, hart);
	attr_ring(s, n / 4, &attr);
	struct stream stream = {.role = STREAM_RING, .hart = hart, .event = -1};
	int r = stream_open(s, &attr, -1, -1, &stream);
	if (r < 0)
		return r;
	return hart_map_ring(s, &(struct ring){.hart = hart, .fd = stream.fd}, n, &o->error);
}

int sideband_open(struct opening *o, int hart, pid_t pid)
{
	struct sampler *s = o->sampler;
	struct perf_event_attr attr;
	const bool apart = s->options.always;
	size_t n = apart ? sideband_ring_bytes(s) : ring_bytes_for(s, hart);
	attr_sideband(s, s->sideband.features, n, &attr);
	struct stream stream = {
		.role = STREAM_SIDEBAND,
		.rung = s->plan[hart].rung,
		.hart = hart,
		.event = -1,
	};
	int r = stream_open(s, &attr, pid, -1, &stream);
	if (r == 0 && (apart || !hart_ring(s, hart, 0)))
		r = hart_map_ring(s,
			&(struct ring){.hart = hart, .fd = stream.fd, .sideband = apart}, n,
			&o->error);
	return r == 0 && apart ? sample_ring_open(o, hart) : r;
}
