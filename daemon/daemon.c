/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Stations say what they wait for as plain pollfds and one deadline; this file turns that into
 * sd-event sources and back, anew after each round of the loop: a few rounds a second, a handful of
 * descriptors. Keeping what looks unchanged would be wrong, since a worker that was restarted, or a
 * ring that was opened anew, may bear the number of a descriptor that is closed. So no station knows
 * the event loop, and tests drive them with poll() alone.
 */
#include "daemon/daemon.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <systemd/sd-event.h>
#include <time.h>

#include "daemon/control/peer.h"
#include "proto/memory.h"

/* A deadline may be this much late. The shortest is the millisecond after which arguments of a
 * process that exec'd are looked at again. */
#define TIMER_US 100

struct wire {
	struct daemon *daemon;
	sd_event_source *source;
	int fd;
	short events;
};

struct daemon {
	sd_event *event;
	sd_event_source *timer;
	struct control_options control;
	struct peer *peer;
	struct wire *wire[JOB_FDS_MAX + 1];
	size_t n_wires;
	struct pollfd wanted[JOB_FDS_MAX + 1];
	int trouble; /* what ended the loop; 0: the peer has gone */
};

static uint64_t now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Both ways: the low bits of poll and epoll are the same. Source: include/uapi/linux/eventpoll.h. */
_Static_assert(POLLIN == EPOLLIN && POLLOUT == EPOLLOUT && POLLERR == EPOLLERR &&
		POLLHUP == EPOLLHUP, "poll and epoll bits differ");

static int step(struct daemon *d, short peer_revents)
{
	int r = peer_revents ? peer_dispatch(d->peer, peer_revents) : 0;
	if (r == 0)
		r = peer_run_jobs(d->peer, now_ns());
	if (r == 0)
		r = peer_dispatch(d->peer, 0); /* send what the jobs answered */
	if (r == PEER_GONE) {
		d->peer = peer_free(d->peer);
		return sd_event_exit(d->event, 0);
	}
	/* sd-event takes an error for the source's own, switches that off and goes on. */
	if (r < 0)
		d->trouble = r;
	return r < 0 ? sd_event_exit(d->event, 0) : 0;
}

static int on_descriptor(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
	struct wire *w = userdata;
	(void)source;
	return step(w->daemon, fd == w->daemon->peer->fd ? (short)revents : 0);
}

static int on_timer(sd_event_source *source, uint64_t usec, void *userdata)
{
	(void)source;
	(void)usec;
	return step(userdata, 0);
}

static void wire_free(struct wire *w)
{
	sd_event_source_disable_unref(w->source);
	free(w);
}

static int wire_add(struct daemon *d, const struct pollfd *p)
{
	struct wire *w = calloc(1, sizeof *w);
	if (!w)
		return -ENOMEM;
	*w = (struct wire){.daemon = d, .fd = p->fd, .events = p->events};
	int r = sd_event_add_io(d->event, &w->source, p->fd, (uint32_t)p->events, on_descriptor, w);
	if (r < 0) {
		free(w);
		return r;
	}
	d->wire[d->n_wires++] = w;
	return 0;
}

/* Make the event loop wait for what the stations wait for. */
static int rewire(struct daemon *d)
{
	while (d->n_wires > 0)
		wire_free(d->wire[--d->n_wires]);
	size_t n = peer_fds(d->peer, d->wanted, JOB_FDS_MAX);
	for (size_t i = 0; i < n; i++) {
		int r = wire_add(d, &d->wanted[i]);
		if (r < 0)
			return r;
	}

	uint64_t deadline = peer_deadline_ns(d->peer);
	if (deadline == UINT64_MAX)
		return sd_event_source_set_enabled(d->timer, SD_EVENT_OFF);
	int r = sd_event_source_set_time(d->timer, deadline / 1000u);
	return r < 0 ? r : sd_event_source_set_enabled(d->timer, SD_EVENT_ONESHOT);
}

static int loop(struct daemon *d)
{
	for (;;) {
		int r = rewire(d);
		if (r >= 0)
			r = sd_event_run(d->event, UINT64_MAX);
		if (r < 0)
			return r;
		if (sd_event_get_state(d->event) == SD_EVENT_FINISHED || !d->peer || d->trouble)
			return d->trouble;
	}
}

int daemon_run_private(const struct daemon_options *o)
{
	struct daemon *d = calloc(1, sizeof *d);
	if (!d)
		return -ENOMEM;
	d->control = (struct control_options){.namer = o->namer, .private = true};

	int r = sd_event_new(&d->event);
	if (r >= 0)
		r = sd_event_add_time(d->event, &d->timer, CLOCK_MONOTONIC, 0, TIMER_US, on_timer, d);
	if (r >= 0)
		r = peer_new(&d->control, o->control_fd, &d->peer);
	if (r >= 0)
		r = loop(d);

	peer_free(d->peer);
	for (size_t i = 0; i < d->n_wires; i++)
		wire_free(d->wire[i]);
	sd_event_source_disable_unref(d->timer);
	sd_event_unref(d->event);
	free(d);
	return r;
}
