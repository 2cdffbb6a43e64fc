/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Stations say what they wait for as plain pollfds and one deadline, asked for again in each round
 * of the loop: a worker that was restarted, or a ring that was opened again, may have the number of
 * a descriptor that is closed, so nothing is kept from one round to the next. What is the daemon's
 * own (signals, the watchdog) is sd-event's, which is one more descriptor in the same poll: a round
 * is one system call, however many wait. So no station knows the event loop, and tests drive them
 * with poll() alone.
 */
#include "daemon/daemon.h"

#include <errno.h>
#include <grp.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>
#include <systemd/sd-daemon.h>
#include <systemd/sd-event.h>
#include <time.h>

#include "daemon/attribute/proc_reader.h"
#include "daemon/attribute/stack_start.h"
#include "daemon/budget/overhead.h"
#include "daemon/control/peer.h"
#include "daemon/control/server.h"
#include "daemon/naming/namer.h"
#include "daemon/pmu/cores.h"
#include "daemon/service/service.h"
#include "daemon/session/listener.h"
#include "proto/base/clock.h"
#include "proto/base/memory.h"

/* sd-event, the service's rings and workers, the server's. */
#define DAEMON_FDS_MAX (1 + JOB_FDS_MAX + SERVER_FDS_MAX)

#define TELL_NS 1000000000u

/* Whose time the loop's thread spends; CLOCK_THREAD_CPUTIME_ID. */
struct loop_time {
	uint64_t due_ns;     /* CLOCK_MONOTONIC: when the service itself wants a round */
	uint64_t serving_ns; /* in this round, to see what clients wait for */
	uint64_t ended_ns;   /* when the last round was over */
	uint64_t feed_ns;    /* so far, of the feed's time: spent within requests */
};

struct daemon {
	sd_event *event;
	struct control_options control;
	struct stack_starts starts;
	struct graves graves;
	struct quota pool; /* of all clients (control/peer.h) */
	struct peer *peer; /* private mode */
	struct conf conf;
	const char *config;
	char schedules[PATH_MAX]; /* the folder of drop-ins beside it */
	struct service *service;
	struct server *server;
	struct pollfd *fds;   /* DAEMON_FDS_MAX */
	size_t n_service_fds; /* of them, before the server's */
	struct loop_time time;
	bool over, reload;
	char told[1280]; /* STATUS= as systemd knows it */
	uint64_t next_tell_ns;
	int trouble; /* what ended the loop, if it was not told to end */
};

/* --- the loop --------------------------------------------------------------------------------- */

/* What one mode of the daemon waits for and does. */
struct mode {
	size_t (*fds)(struct daemon *d, struct pollfd *fds, size_t n);
	uint64_t (*deadline_ns)(struct daemon *d);
	int (*dispatch)(struct daemon *d, const struct pollfd *fds, size_t n);
};

/* Wait until something is there or the deadline, CLOCK_MONOTONIC, has come. */
static int wait_for(struct pollfd *fds, size_t n, uint64_t deadline_ns)
{
	struct timespec timeout, *patience = &timeout;
	if (deadline_ns == UINT64_MAX) {
		patience = NULL;
	} else {
		uint64_t now = clock_ns(CLOCK_MONOTONIC);
		uint64_t left = deadline_ns > now ? deadline_ns - now : 0;
		timeout.tv_sec = (time_t)(left / 1000000000u);
		timeout.tv_nsec = (long)(left % 1000000000u);
	}
	int r = ppoll(fds, (nfds_t)n, patience, NULL);
	return r < 0 && errno != EINTR ? -errno : 0;
}

static int round_of(struct daemon *d, const struct mode *m)
{
	int pending = sd_event_prepare(d->event);
	if (pending < 0)
		return pending;
	d->fds[0] = (struct pollfd){.fd = sd_event_get_fd(d->event), .events = POLLIN};
	/* first what to wait for, then by when: see exec_watch_deadline_ns */
	size_t n = m->fds(d, d->fds + 1, DAEMON_FDS_MAX - 1);
	int r = wait_for(d->fds, n + 1, pending > 0 ? 0 : m->deadline_ns(d));
	if (r < 0)
		return r;
	/* also when there is nothing: it ends what was prepared */
	r = pending > 0 ? pending : sd_event_wait(d->event, 0);
	if (r > 0)
		r = sd_event_dispatch(d->event);
	if (r < 0)
		return r;
	return m->dispatch(d, d->fds + 1, n);
}

static int loop(struct daemon *d, const struct mode *m)
{
	int r = 0;
	while (r >= 0 && !d->over)
		r = round_of(d, m);
	return r < 0 ? r : 0;
}

static int daemon_new(const struct daemon_options *o, struct daemon **ret_daemon)
{
	struct daemon *d = calloc(1, sizeof(*d));
	if (!d)
		return -ENOMEM;
	d->config = o->config;
	d->control.namer = o->namer;
	d->control.graves = &d->graves;
	d->control.pool = &d->pool;
	d->control.switches = o->switches;
	stack_starts_learn(o->main_caller, "/proc/self/maps", &d->starts);
	d->control.starts = &d->starts;
	d->fds = calloc(DAEMON_FDS_MAX, sizeof(*d->fds));
	int r = d->fds ? sd_event_new(&d->event) : -ENOMEM;
	if (r >= 0)
		r = proc_reader_new(&d->control.reader);
	if (r >= 0)
		r = cores_new(NULL, NULL, &d->control.cores);
	if (r < 0) {
		proc_reader_free(d->control.reader);
		sd_event_unref(d->event);
		free(d->fds);
		free(d);
		return r;
	}
	*ret_daemon = d;
	return 0;
}

static void daemon_free(struct daemon *d)
{
	peer_free(d->peer);
	server_free(d->server);
	service_free(d->service);
	cores_free(d->control.cores);
	proc_reader_free(d->control.reader);
	sd_event_unref(d->event);
	free(d->fds);
	free(d);
}

/* --- private ---------------------------------------------------------------------------------- */

static size_t private_fds(struct daemon *d, struct pollfd *fds, size_t n)
{
	return peer_fds(d->peer, fds, n < JOB_FDS_MAX ? n : JOB_FDS_MAX);
}

static uint64_t private_deadline_ns(struct daemon *d)
{
	return peer_deadline_ns(d->peer);
}

static int private_dispatch(struct daemon *d, const struct pollfd *fds, size_t n)
{
	int r = n > 0 && fds[0].revents ? peer_dispatch(d->peer, fds[0].revents) : 0;
	if (r == 0)
		r = peer_run_jobs(d->peer, clock_ns(CLOCK_MONOTONIC));
	if (r == 0)
		r = peer_dispatch(d->peer, 0); /* send what the jobs answered */
	d->over = r == PEER_GONE;
	return r < 0 ? r : 0;
}

int daemon_run_private(const struct daemon_options *o)
{
	static const struct mode mode = {private_fds, private_deadline_ns, private_dispatch};
	struct daemon *d;
	int r = daemon_new(o, &d);
	if (r < 0)
		return r;
	d->control.private = true;
	d->control.pool = NULL;
	r = peer_new(&d->control, o->control_fd, &d->peer);
	if (r >= 0)
		r = loop(d, &mode);
	daemon_free(d);
	return r;
}

/* --- service ---------------------------------------------------------------------------------- */

/* One line for the journal, which takes the level from "<N>", or for people. */
static void say(void *userdata, int level, const char *text)
{
	(void)userdata;
	if (getenv("JOURNAL_STREAM"))
		fprintf(stderr, "<%d>%s\n", level, text);
	else
		fprintf(stderr, "mperfd: %s\n", text);
}

static void say_with_remedy(const char *text, const char *remedy)
{
	char line[1024];
	snprintf(line, sizeof(line), "%s%s%s", text, *remedy ? ". " : "", remedy);
	say(NULL, LOG_ERR, line);
}

/* What `systemctl status` shows, if it has changed; looked at once a second. */
static void tell_status(struct daemon *d, uint64_t now_ns)
{
	const struct service *s = d->service;
	if (now_ns < d->next_tell_ns)
		return;
	d->next_tell_ns = now_ns + TELL_NS;
	char sampling[sizeof(s->trouble) + 32], text[sizeof(d->told)];
	if (s->walk)
		snprintf(sampling, sizeof(sampling), "sampling at %u Hz", s->walk->sampler->hz);
	else
		snprintf(sampling, sizeof(sampling), "not sampling (%s)", s->trouble);
	bool stores = s->store && !*s->store_trouble;
	snprintf(text, sizeof(text), "%s, %s%s", sampling,
		stores ? "storing in " : "storing nothing: ",
		stores ? d->conf.store_path : s->store_trouble);
	if (strcmp(text, d->told) == 0)
		return;
	memcpy(d->told, text, sizeof(d->told));
	sd_notifyf(0, "STATUS=%s", text);
}

/* "schedules.d" beside mperf.conf. */
static void find_schedules(struct daemon *d)
{
	const char *path = d->config ? d->config : CONF_PATH, *slash = strrchr(path, '/');
	snprintf(d->schedules, sizeof(d->schedules), "%.*sschedules.d",
		slash ? (int)(slash + 1 - path) : 0, path);
}

static int read_conf(const struct daemon *d, struct conf *ret_conf)
{
	struct conf_error error = {""};
	int r = conf_read(d->config ? d->config : CONF_PATH, ret_conf, &error);
	if (r == CONF_ABSENT && !d->config) {
		conf_defaults(ret_conf);
		return 0;
	}
	if (r > 0)
		say_with_remedy(error.text, "");
	return r > 0 ? DAEMON_MISCONFIGURED : r;
}

static int on_stop(sd_event_source *source, const struct signalfd_siginfo *info, void *userdata)
{
	struct daemon *d = userdata;
	(void)source;
	(void)info;
	d->over = true;
	return 0;
}

static int on_reload(sd_event_source *source, const struct signalfd_siginfo *info, void *userdata)
{
	struct daemon *d = userdata;
	(void)source;
	(void)info;
	d->reload = true;
	return 0;
}

static int watch_signals(struct daemon *d)
{
	sigset_t ours;
	sigemptyset(&ours);
	sigaddset(&ours, SIGTERM);
	sigaddset(&ours, SIGINT);
	sigaddset(&ours, SIGHUP);
	if (sigprocmask(SIG_BLOCK, &ours, NULL) < 0)
		return -errno;
	int r = sd_event_add_signal(d->event, NULL, SIGTERM, on_stop, d);
	if (r >= 0)
		r = sd_event_add_signal(d->event, NULL, SIGINT, on_stop, d);
	if (r >= 0)
		r = sd_event_add_signal(d->event, NULL, SIGHUP, on_reload, d);
	if (r >= 0)
		r = sd_event_set_watchdog(d->event, true); /* 1 if there is one */
	return r < 0 ? r : 0;
}

/* Warn: a missing group has no members. */
static void tell_group(const struct daemon *d)
{
	const char *group = d->conf.group;
	char line[256 + 2 * CONF_TEXT_BYTES];
	if (!*group || getgrnam(group))
		return;
	snprintf(line, sizeof(line),
		"there is no group '%s', so only root sees the samples of others; make it with "
		"`groupadd --system %s` and reload mperfd, or set group in mperf.conf",
		group, group);
	say(NULL, LOG_WARNING, line);
}

/* What is wrong with the platform database: it costs what is in those files, and nothing else. */
static void tell_platforms(const struct daemon *d)
{
	const char *const then = cores_are_older(d->control.cores)
					 ? "the platforms stay as they were"
					 : "this file is left out";
	const char *error;
	for (size_t i = 0; (error = cores_error(d->control.cores, i)); i++) {
		char line[1024];
		snprintf(line, sizeof(line), "platform database: %s; %s", error, then);
		say(NULL, LOG_WARNING, line);
	}
}

static int reload_platforms(struct daemon *d)
{
	char harts[128], line[512];
	int r = cores_reload(d->control.cores);
	if (r < 0)
		return r;
	tell_platforms(d);
	const struct hart_set outdated = cores_outdated(d->control.cores);
	if (r == 0)
		say(NULL, LOG_NOTICE, "platforms reloaded");
	if (r == 0 && hart_set_count(&outdated) > 0) {
		snprintf(line, sizeof(line),
			"harts %s keep sampling with the platform data read at the start; "
			"restart mperfd to apply the new data",
			hart_set_says(&outdated, harts, sizeof(harts)));
		say(NULL, LOG_NOTICE, line);
	}
	return 0;
}

static int reload(struct daemon *d)
{
	struct conf next;
	char restart[256] = "", line[512];
	d->reload = false;
	sd_notifyf(0, "RELOADING=1\nMONOTONIC_USEC=%llu",
		(unsigned long long)(clock_ns(CLOCK_MONOTONIC) / 1000));
	int r = read_conf(d, &next);
	if (r == 0) {
		conf_need_restart(&d->conf, &next, restart, sizeof(restart));
		next.callers = d->conf.callers;
		memcpy(next.socket_path, d->conf.socket_path, sizeof(next.socket_path));
		memcpy(next.feed_path, d->conf.feed_path, sizeof(next.feed_path));
		memcpy(next.region_events, d->conf.region_events, sizeof(next.region_events));
		memcpy(next.job_environment, d->conf.job_environment, sizeof(next.job_environment));
		d->conf = next;
		snprintf(line, sizeof(line), "configuration reloaded%s%s",
			*restart ? "; restart mperfd to change " : "", restart);
		say(NULL, LOG_NOTICE, line);
		r = service_reload(d->service);
		if (r == 0)
			server_reload(d->server);
		if (r == 0)
			r = reload_platforms(d);
		tell_group(d);
	} else if (r > 0) {
		say(NULL, LOG_ERR, "the configuration stays as it was");
		r = 0;
	}
	if (r == -EMFILE || r == -ENFILE) {
		service_ran_short(d->service, -r, clock_ns(CLOCK_MONOTONIC));
		r = 0;
	}
	sd_notify(0, "READY=1");
	return r;
}

static uint64_t thread_ns(void)
{
	return clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

static size_t service_mode_fds(struct daemon *d, struct pollfd *fds, size_t n)
{
	d->n_service_fds = service_fds(d->service, fds, n < JOB_FDS_MAX ? n : JOB_FDS_MAX);
	uint64_t began_ns = thread_ns();
	n = d->n_service_fds + server_fds(d->server, fds + d->n_service_fds, n - d->n_service_fds);
	d->time.serving_ns = thread_ns() - began_ns;
	d->time.due_ns = 0; /* where nobody asks for deadlines, there is news */
	return n;
}

static uint64_t service_mode_deadline_ns(struct daemon *d)
{
	uint64_t service = service_deadline_ns(d->service), began_ns = thread_ns();
	uint64_t server = server_deadline_ns(d->server);
	d->time.due_ns = service;
	d->time.serving_ns += thread_ns() - began_ns;
	return service < server ? service : server;
}

static uint64_t feed_ns(const struct daemon *d)
{
	const struct walk *w = d->service->walk;
	return w && w->feed ? feed_spent_ns(w->feed) : 0;
}

/* As server_dispatch. *ret_took_ns: of the thread's time. */
static int serve_clients(
	struct daemon *d, const struct pollfd *fds, size_t n, uint64_t *ret_took_ns)
{
	uint64_t began_ns = thread_ns(), before_ns = feed_ns(d);
	int r = server_dispatch(
		d->server, fds + d->n_service_fds, n - d->n_service_fds, clock_ns(CLOCK_MONOTONIC));
	d->time.feed_ns += feed_ns(d) - before_ns;
	*ret_took_ns = thread_ns() - began_ns;
	return r;
}

/* *ret_ns: of the turn, what was done for clients. */
static int service_turn(struct daemon *d, const struct pollfd *fds, size_t n, uint64_t *ret_ns)
{
	int r = d->reload ? reload(d) : 0;
	uint64_t now_ns = clock_ns(CLOCK_MONOTONIC), spent_ns = server_spent_ns(d->server);
	*ret_ns = 0;
	if (r == 0)
		r = service_dispatch(d->service, now_ns);
	spent_ns = server_spent_ns(d->server) - spent_ns; /* windows of recordings */
	if (r == 0)
		r = serve_clients(d, fds, n, ret_ns);
	*ret_ns += spent_ns;
	tell_status(d, now_ns);
	return r;
}

/* Was there anything for the service in this round? */
static bool has_service_news(const struct daemon *d)
{
	for (size_t i = 0; i < 1 + d->n_service_fds; i++)
		if (d->fds[i].revents)
			return true;
	return clock_ns(CLOCK_MONOTONIC) >= d->time.due_ns;
}

/* A round that only clients wanted is theirs, with all that a round takes. */
static int service_mode_dispatch(struct daemon *d, const struct pollfd *fds, size_t n)
{
	uint64_t began_ns = thread_ns(), clients_ns;
	bool clients_alone = !has_service_news(d);
	int r = service_turn(d, fds, n, &clients_ns);
	uint64_t ended_ns = thread_ns();
	loop_latency_add(&d->service->loop_latency, ended_ns - began_ns, clock_ns(CLOCK_MONOTONIC));
	server_spend(d->server,
		clients_alone ? ended_ns - d->time.ended_ns : clients_ns + d->time.serving_ns);
	d->service->overhead->clients_ns = server_spent_ns(d->server) - d->time.feed_ns;
	d->time.ended_ns = ended_ns;
	return r;
}

/* The sockets that systemd listens on for us, by what they are for; -1 where there is none. What is
 * of neither type is left to the server, which says what is wrong with it. 0 or -errno. */
static int inherited_sockets(int ret_fd[static 2])
{
	int n = sd_listen_fds(1);
	ret_fd[LISTENER_CONTROL] = ret_fd[LISTENER_FEED] = -1;
	for (int i = 0; i < n; i++) {
		enum listener_use use = LISTENER_CONTROL;
		(void)listener_use_of(SD_LISTEN_FDS_START + i, &use);
		if (ret_fd[use] >= 0) {
			say(NULL, LOG_ERR,
				"mperfd was passed more sockets than the two of mperfd.socket, "
				"one for clients and one for programs");
			return -EINVAL;
		}
		ret_fd[use] = SD_LISTEN_FDS_START + i;
	}
	return n < 0 ? n : 0;
}

static int serve(struct daemon *d)
{
	int fd[2];
	int r = inherited_sockets(fd);
	if (r < 0)
		return r;
	struct service_options o = {
		.listen = true,
		.feed_fd = fd[LISTENER_FEED],
		.conf = &d->conf,
		.schedules = d->schedules,
		.namer = d->control.namer,
		.graves = d->control.graves,
		.switches = d->control.switches,
		.cores = d->control.cores,
		.starts = &d->starts,
		.reader = d->control.reader,
		.say = say,
	};
	find_schedules(d);
	r = service_new(&o, &d->service);
	if (r < 0)
		return r;
	tell_platforms(d);
	d->control.service = d->service;
	d->control.conf = &d->conf;
	struct listener_error error = {"", ""};
	r = server_new(&d->control, fd[LISTENER_CONTROL], &d->server, &error);
	if (r > 0)
		say_with_remedy(error.text, error.remedy);
	return r > 0 ? DAEMON_REFUSED : r;
}

int daemon_run_service(const struct daemon_options *o)
{
	static const struct mode mode = {
		service_mode_fds, service_mode_deadline_ns, service_mode_dispatch};
	struct daemon *d;
	int r = daemon_new(o, &d);
	if (r < 0)
		return r;
	r = read_conf(d, &d->conf);
	if (r == 0)
		r = watch_signals(d);
	if (r >= 0 && r != DAEMON_MISCONFIGURED)
		r = serve(d);
	if (r == 0) {
		sd_notify(0, "READY=1");
		tell_status(d, clock_ns(CLOCK_MONOTONIC));
		tell_group(d);
		say(NULL, LOG_INFO, "ready");
		d->time.ended_ns = thread_ns();
		r = loop(d, &mode);
		sd_notify(0, "STOPPING=1");
		d->server = server_free(d->server);
	}
	if (d->service)
		service_stop(d->service);
	daemon_free(d);
	return r;
}
