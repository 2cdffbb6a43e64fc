/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * doctor: what this machine can do, found by trying, one finding a row. A finding that is not "ok"
 * names the layer that refuses and its single remedy. The tries take long, so a service runs them
 * in a separate process.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "daemon/conf/conf.h"
#include "daemon/control/doctor_private.h"
#include "daemon/control/offload_job.h"
#include "daemon/doctor/diagnose.h"
#include "daemon/doctor/switch_compare.h"
#include "daemon/naming/namer.h"
#include "daemon/sampler/attr.h"
#include "daemon/sampler/sampler.h"
#include "daemon/service/service.h"
#include "proto/base/memory.h"
#include "proto/package.h"

/* Report the samples that this peer may see. */
static void examine_peer(struct examination *x)
{
	const struct peer *p = x->request->peer;
	char remedy[96 + 2 * CONF_TEXT_BYTES];
	const char *group = p->options->private ? "" : p->options->conf->group;
	if (p->options->private)
		return;
	snprintf(remedy, sizeof(remedy),
		"join the group %s (usermod -aG %s USER, then log in again)", group, group);
	doctor_tell(x,
		(struct finding){
			-1, "service", p->sees_all ? "ok" : "info", p->sees_all ? NULL : remedy},
		p->sees_all ? "the service shows you everybody's samples"
			    : "the service shows you the samples of your own processes");
}

static void examine_rights(struct examination *x)
{
	const struct machine *m = &x->machine;
	const struct event clock = event_cpu_clock();
	struct refusal refusal = refusal_explain(&clock, EACCES, true, m);
	bool all = m->may_see_all && m->may_see_kernel;
	doctor_tell(x,
		(struct finding){-1, "rights",
			all                 ? "ok"
			: m->may_see_kernel ? "info"
					    : "warn",
			all ? NULL : refusal.remedy},
		"%s%s; kernel.perf_event_paranoid is %d",
		m->may_see_all ? "the whole system can be sampled"
			       : "only your own processes can be sampled",
		m->may_see_kernel ? ", the kernel included" : ", in user space only", m->paranoid);
}

/* x86 kernels whose per-CPU symbols begin at 0 list these first; a visible address comes well
 * before that line. */
#define KALLSYMS_LINES_LOOKED_AT 10000

/* True if the list names no address. */
static bool are_addresses_hidden(FILE *kallsyms)
{
	unsigned long long address = 0;
	char line[256];
	for (int i = 0;
		!address && i < KALLSYMS_LINES_LOOKED_AT && fgets(line, sizeof(line), kallsyms);
		i++)
		sscanf(line, "%llx", &address);
	return address == 0;
}

/* Without CAP_SYSLOG addresses are seen where kptr_restrict is 0 and profiling of the kernel is
 * allowed. Source: kallsyms_show_value in kernel/ksyms_common.c of Linux 6.12. */
static void examine_kernel_names(struct examination *x)
{
	struct finding f = {-1, "kernel names", "warn", NULL};
	char restricts[32] = "0";
	_cleanup_(fclosep) FILE *kallsyms = fopen("/proc/kallsyms", "re");
	kernel_real.read_text(NULL, "/proc/sys/kernel/kptr_restrict", restricts, sizeof(restricts));
	if (!kallsyms) {
		f.remedy = "give mperfd a readable /proc/kallsyms (CONFIG_KALLSYMS)";
		doctor_tell(x, f, "kernel functions have no names: /proc/kallsyms: %s",
			strerror(errno));
	} else if (!are_addresses_hidden(kallsyms)) {
		f.state = "ok";
		doctor_tell(x, f, "kernel functions can be named from /proc/kallsyms");
	} else if (strtol(restricts, NULL, 10) > 1) {
		f.remedy =
			"sysctl kernel.kptr_restrict=1, which shows them to root (0: to everyone "
			"who may profile the kernel)";
		doctor_tell(x, f,
			"the kernel hides the addresses of its symbols from everyone, root "
			"included (sysctl kernel.kptr_restrict is %ld)",
			strtol(restricts, NULL, 10));
	} else if (strtol(restricts, NULL, 10) > 0) {
		f.remedy = "sysctl kernel.kptr_restrict=0, or run as root";
		doctor_tell(x, f,
			"the kernel hides its symbols' addresses (sysctl kernel.kptr_restrict)");
	} else if (x->machine.paranoid > 1) {
		f.remedy = "sysctl kernel.perf_event_paranoid=1, or run as root";
		doctor_tell(x, f,
			"the kernel hides its symbols' addresses from users who may not profile "
			"it (sysctl kernel.perf_event_paranoid)");
	} else {
		f.remedy = "unmask /proc/kallsyms, which a container may have masked";
		doctor_tell(x, f, "/proc/kallsyms has no addresses");
	}
}

static void examine_limits(struct examination *x)
{
	const struct machine *m = &x->machine;
	bool low = m->max_sample_rate < 1000;
	const struct finding rate = {-1, "rate", low ? "warn" : "ok",
		low ? "sysctl kernel.perf_event_max_sample_rate=100000" : NULL};
	if (m->max_sample_rate == 0)
		doctor_tell(x, rate, "kernel.perf_event_max_sample_rate cannot be read");
	else
		doctor_tell(x, rate,
			"the kernel allows %u samples a second and hart, and throttles more than "
			"%u%s",
			m->max_sample_rate, machine_rate_max(m),
			low ? "; it lowers this itself when interrupts take too long" : "");

	struct rlimit files = {0};
	getrlimit(RLIMIT_NOFILE, &files);
	rlim_t wanted = (rlim_t)hart_set_count(&m->online) * 6 + 512;
	bool few = files.rlim_max < wanted;
	doctor_tell(x,
		(struct finding){-1, "descriptors", few ? "warn" : "ok",
			few ? "ulimit -n 4096, or LimitNOFILE= in the unit" : NULL},
		"%llu descriptors may be open; %d harts want about %llu",
		(unsigned long long)files.rlim_max, hart_set_count(&m->online),
		(unsigned long long)wanted);

	bool root = geteuid() == 0;
	doctor_tell(x, (struct finding){-1, "rings", "ok", NULL}, "%s",
		root ? "ring memory is not limited for root"
		     : "ring memory is limited by kernel.perf_event_mlock_kb; rings shrink to fit");
}

static void tell_absent_bpf(struct examination *x, const struct switch_comparison *c)
{
	const char *why = c->error == ENOTSUP ? "mperf was built without it" : strerror(c->error);
	const char *remedy = c->error == ENOTSUP
				     ? "build it where clang, bpftool and libbpf-dev are installed"
			     : c->error == EPERM || c->error == EACCES
				     ? "run as root, or grant CAP_BPF and CAP_PERFMON"
				     : "a kernel with CONFIG_BPF_SYSCALL and CONFIG_BPF_EVENTS";
	if (c->cut & CUT_SIBLING)
		doctor_tell(x, (struct finding){-1, "bpf", "info", remedy},
			"BPF is not available (%s); the context-switches sibling cuts counts at "
			"switches, but --event waiting has no callers, and the service no waits",
			why);
	else
		doctor_tell(x, (struct finding){-1, "bpf", "warn", remedy},
			"BPF is not available (%s), and the context-switches sibling does not "
			"open: counts are charged only where no switch came between two samples",
			why);
}

static void tell_comparison(struct examination *x, const struct switch_comparison *c)
{
	const struct switch_verdict *v = &c->verdict;
	if (v->n_apart > 0)
		doctor_tell(x,
			(struct finding){
				-1, "bpf", "warn", "report it, with your kernel's version"},
			"the two ways to cut counts at switches disagree: %s of thread %u is %llu "
			"by the "
			"context-switches sibling and %llu by BPF",
			c->worst_event, v->worst.tid, (unsigned long long)v->worst.by_sibling,
			(unsigned long long)v->worst.by_bpf);
	else if (v->n_sums == 0 && v->n_apart_too_long > 0)
		doctor_tell(x,
			(struct finding){-1, "bpf", "warn",
				"try again when this machine, or its host, is less busy"},
			"BPF programs can be loaded, but could not be compared with the "
			"context-switches sibling: at each of %llu switches the two readings came "
			"more than %u µs apart",
			(unsigned long long)v->n_apart_too_long, SWITCH_CHECK_GAP_NS / 1000);
	else if (v->n_sums == 0)
		doctor_tell(x, (struct finding){-1, "bpf", "warn", "ask again"},
			"BPF programs can be loaded, but gave no counts to compare with the "
			"context-switches sibling");
	else
		doctor_tell(x, (struct finding){-1, "bpf", "ok", NULL},
			"the context-switches sibling cuts counts at switches, and BPF agrees: "
			"%llu switches, %u sums by thread, at most %.2f %% apart",
			(unsigned long long)v->n_switches, v->n_sums, v->worst_share * 100);
}

/* Report how counts are cut at context switches, and whether both ways agree. */
static void examine_bpf(struct examination *x)
{
	struct switch_comparison c = {0};
	if (!x->machine.may_see_all) {
		doctor_tell(x,
			(struct finding){
				-1, "bpf", "info", "run as root, or grant CAP_BPF and CAP_PERFMON"},
			"BPF works only system-wide; your own processes do not need it for counts, "
			"since "
			"their counters stop while others run; their waits have no callers without "
			"it");
		return;
	}
	if (!doctor_measures(x)) {
		doctor_tell(x,
			(struct finding){-1, "bpf", "info",
				"run mperfctl doctor as root or as a member of the group"},
			"not tested: whether BPF separates counts at switches as the "
			"context-switches event does. The test slows all programs, so only root "
			"and the group may run it");
		return;
	}
	int r = switch_compare(&kernel_real, &c);
	if (r != 0)
		doctor_tell(x, (struct finding){-1, "bpf", "warn", NULL},
			"the ways to cut counts at switches could not be tested: %s",
			r < 0 ? strerror(-r) : c.why.text);
	else if (!(c.cut & CUT_BPF))
		tell_absent_bpf(x, &c);
	else if (c.cut & CUT_SIBLING)
		tell_comparison(x, &c);
	else
		doctor_tell(x, (struct finding){-1, "bpf", "ok", NULL},
			"BPF cuts counts at switches, since the context-switches sibling does "
			"not open");
}

static void examine_files(struct examination *x)
{
	bool tracefs = access("/sys/kernel/tracing/events", R_OK) == 0 ||
		       access("/sys/kernel/debug/tracing/events", R_OK) == 0;
	doctor_tell(x,
		(struct finding){-1, "tracepoints", tracefs ? "ok" : "info",
			tracefs ? NULL : "mount -t tracefs tracefs /sys/kernel/tracing (as root)"},
		"%s",
		tracefs ? "tracepoints are available" : "tracefs is not mounted or not readable");

	bool debug = access("/usr/lib/debug/.build-id", R_OK) == 0;
	doctor_tell(x,
		(struct finding){-1, "debug information", debug ? "ok" : "info",
			debug ? NULL
			      : "`apt install libc6-dbg`, and the -dbgsym packages of the "
				"programs that you profile; `mperfctl doctor -i` on a recording "
				"names them. Or have a server asked: DEBUGINFOD_URLS for "
				"yourself, `debuginfod` in mperf.conf(5) for the service"},
		"%s",
		debug ? "separate debug files are installed below /usr/lib/debug"
		      : "no separate debug files: stripped programs have only their dynamic "
			"symbols");
}

/* Report the namer of the service's samples: a test start of another namer would show little about
 * it. */
static void examine_service_namer(struct examination *x)
{
	const struct peer *p = x->request->peer;
	const struct service *service = p->options->service;
	struct namer_status s;
	if (!service || !service->walk)
		return;
	namer_status(service->walk->namer, &s);
	uint64_t now_ns = kernel_real.now_ns(NULL);
	if (s.off)
		doctor_tell(x,
			(struct finding){-1, "service's namer", "fail",
				"`mperfctl status` says why; `systemctl restart mperfd` tries at "
				"once"},
			"a worker of the service's namer does not start: functions have no names "
			"until it does");
	else
		doctor_tell(x, (struct finding){-1, "service's namer", "ok", NULL},
			"the service's opener (%s, %u restarts) and parser (%s, %u restarts) "
			"run; %u files that stopped them are skipped; naming is paused for %u "
			"users",
			s.opener.state, s.opener.restarts, s.parser.state, s.parser.restarts,
			s.n_faulty, s.n_refused);
	for (uint32_t i = 0; i < s.n_refused && i < NAMER_REFUSED_SHOWN_MAX; i++) {
		const struct namer_refused *u = &s.refused[i];
		if (u->uid == p->uid && u->until_ns > now_ns)
			doctor_tell(x,
				(struct finding){-1, "service's namer", "warn",
					"find the file: `mperfctl doctor -i` on a recording "
					"lists the files that stopped a worker"},
				"naming is paused for you (%s) for %llu s, since workers of the "
				"namer ended %u times",
				u->what,
				(unsigned long long)((u->until_ns - now_ns) / 1000000000u + 1),
				u->deaths);
	}
}

static void examine_namer(struct examination *x)
{
	struct file_table files = {0};
	struct namer_options o = {
		.binary = x->request->peer->options->namer,
		.graves = x->request->peer->options->graves,
		.files = &files,
	};
	struct namer *n = NULL;
	int r = namer_new(&o, &n);
	struct namer_status status = {0};
	if (r == 0)
		namer_status(n, &status);
	if (r < 0)
		doctor_tell(x,
			(struct finding){-1, "namer", "fail",
				"install all of mperf, or run it from its build folder"},
			"mperf-namer cannot be started: %s; no function would have a name",
			strerror(-r));
	else
		doctor_tell(x, (struct finding){-1, "namer", "ok", NULL},
			"the opener and the sandboxed parser start (pids %d and %d)",
			(int)status.opener.pid, (int)status.parser.pid);
	namer_free(n);
}

/* Report errors in the platform database, by file and line. */
static void examine_platforms(struct examination *x)
{
	const struct peer *p = x->request->peer;
	const struct cores *cores = p->options->cores;
	const char *remedy =
		p->options->private
			? "fix that line; `mperf-platform-check` lists all errors. Until then "
			  "mperf ignores that file"
		: cores_are_older(cores)
			? "fix that line and run `systemctl reload mperfd`; "
			  "`mperf-platform-check` lists all errors. Until then mperfd "
			  "keeps the platforms that it had"
			: "fix that line and run `systemctl reload mperfd`; "
			  "`mperf-platform-check` lists all errors. Until then mperf "
			  "ignores that file";
	const char *error;
	for (size_t i = 0; (error = cores_error(cores, i)); i++)
		doctor_tell(x, (struct finding){-1, "platforms", "warn", remedy}, "%s", error);
}

/* Report a plan that is older than the platform data on the hart's core: it was made when the
 * service began. */
static void examine_outdated(struct examination *x, int hart)
{
	const struct hart_set outdated = cores_outdated(x->request->peer->options->cores);
	if (hart_set_has(&outdated, hart))
		doctor_tell(x,
			(struct finding){hart, "sampling", "warn", "systemctl restart mperfd"},
			"the platform data on how to sample this core has changed since mperfd "
			"started; a restart applies it");
}

struct hart_examination {
	struct examination *x;
	int hart;
};

static int tell_diagnosis(void *userdata, const struct diagnosis *d)
{
	struct hart_examination *h = userdata;
	doctor_tell(h->x, (struct finding){h->hart, d->topic, d->state, d->remedy}, "%s", d->says);
	return h->x->result;
}

/* Report one hart: the service's plan if it samples; else the result of a try. */
static void examine_hart(struct examination *x, int hart)
{
	const struct control_options *options = x->request->peer->options;
	const struct service *service = options->service;
	const struct sampler *s = service && service->walk ? service->walk->sampler : NULL;
	struct ladder_options o = {
		.platform = cores_platform(options->cores, hart),
		.hz = 999,
		.user_only = !x->machine.may_see_kernel,
	};
	_cleanup_(freep) struct plan *plan = calloc(1, sizeof(*plan));
	int r = plan ? 0 : -ENOMEM;
	bool in_force = s && hart < s->machine.n_harts && s->plan[hart].n_tries > 0;
	if (r == 0 && in_force)
		*plan = s->plan[hart];
	else if (r == 0)
		r = ladder_probe(&kernel_real, &x->machine, hart, &o, plan);
	if (r < 0) {
		doctor_tell(x,
			(struct finding){hart, "sampling", "fail",
				"run mperfctl doctor again, and check dmesg"},
			"this hart could not be probed: %s", strerror(-r));
		return;
	}
	x->n_sampling += plan->rung != RUNG_NONE;
	struct hart_examination h = {x, hart};
	const struct diagnose_question q = {
		.kernel = &kernel_real,
		.machine = &x->machine,
		.cores = options->cores,
		.hart = hart,
		.plan = plan,
		.counted_share = in_force ? sampler_counted_share(s, hart) : 1,
	};
	(void)diagnose_hart(&q, tell_diagnosis, &h);
	if (in_force)
		examine_outdated(x, hart);
	doctor_cost(x, hart);
}

/* Files that were read and most of whose samples found no symbol: they were stripped. */
static void examine_stripped(struct examination *x, sqlite3 *db)
{
	static const char sql[] =
		"SELECT file.path, SUM(sample.count) AS n, "
		"1.0 * SUM(sample.count * (frame.state = ?1)) / SUM(sample.count) AS named, "
		"1.0 * SUM(sample.count * (frame.state IN (?1, ?2))) / SUM(sample.count) "
		"FROM sample JOIN stack ON stack.id = sample.stack "
		"JOIN frame ON frame.id = stack.frame JOIN file ON file.id = frame.file "
		"WHERE file.state IN (?3, ?4) AND file.kind = ?5 GROUP BY file.id "
		"HAVING named < 0.5 AND n * 100 > (SELECT SUM(count) FROM sample) ORDER BY n DESC";
	sqlite3_stmt *s = NULL;
	if (sqlite3_prepare_v2(db, sql, -1, &s, NULL) == SQLITE_OK) {
		sqlite3_bind_int(s, 1, FRAME_NAMED);
		sqlite3_bind_int(s, 2, FRAME_PLACED);
		sqlite3_bind_int(s, 3, FILE_READY);
		sqlite3_bind_int(s, 4, FILE_NO_SYMBOLS);
		sqlite3_bind_int(s, 5, FILE_ELF);
		while (sqlite3_step(s) == SQLITE_ROW && x->result == 0) {
			const char *name = (const char *)sqlite3_column_text(s, 0);
			char remedy[256];
			package_remedy(
				&package_places_debian, name ? name : "", remedy, sizeof(remedy));
			doctor_tell(x, (struct finding){-1, "file", "info", remedy},
				"%s: %.0f %% of its samples are named by a symbol, %.0f %% by a "
				"symbol or the start of a function",
				name ? name : "", 100 * sqlite3_column_double(s, 2),
				100 * sqlite3_column_double(s, 3));
		}
	}
	sqlite3_finalize(s);
}

/* The files over which naming failed in a recording. */
static int examine_segment(struct examination *x, const char *path)
{
	sqlite3 *db;
	int r = request_open_segment(x->request, path, &db);
	if (r != 0)
		return r;
	sqlite3_stmt *s = NULL;
	if (sqlite3_prepare_v2(db,
		    "SELECT path, state, kind, has_symbols FROM file WHERE state >= ? ORDER BY "
		    "path",
		    -1, &s, NULL) == SQLITE_OK) {
		sqlite3_bind_int(s, 1, FILE_VANISHED);
		while (sqlite3_step(s) == SQLITE_ROW && x->result == 0) {
			const char *name = (const char *)sqlite3_column_text(s, 0);
			int state = sqlite3_column_int(s, 1);
			bool bad = state >= FILE_MALFORMED;
			const bool absent = file_is_absent((enum file_kind)sqlite3_column_int(s, 2),
				(enum file_state)state, sqlite3_column_int(s, 3) != 0);
			char symbols[256];
			if (state == FILE_NO_SYMBOLS)
				package_remedy(&package_places_debian, name ? name : "", symbols,
					sizeof(symbols));
			const char *remedy =
				absent ? "make the program's runtime write a perf map or a jitdump"
				: state == FILE_NO_SYMBOLS ? symbols
				: state == FILE_REFUSED
					? "record as root, or as the user who owns it"
					: NULL;
			doctor_tell(x, (struct finding){-1, "file", bad ? "warn" : "info", remedy},
				"%s: %s", name ? name : "",
				absent ? "it does not exist, so generated code has no names"
				       : file_state_says((enum file_state)state));
		}
	}
	sqlite3_finalize(s);
	examine_stripped(x, db);
	sqlite3_close(db);
	return 0;
}

/* Report all findings about a recording. 0 or -errno. */
static int examine_recording(struct request *q, const char *path)
{
	struct examination x = {.request = q};
	struct row_stream stream;
	int r = doctor_begin(&x, &stream);
	if (r == 0)
		r = examine_segment(&x, path);
	/* positive: the peer has an error */
	return row_stream_done(&stream, r != 0 ? r : x.result);
}

/* 0 or -errno. */
static int examine(struct request *q, void *path)
{
	struct examination x = {.request = q};
	if (*(const char *)path)
		return examine_recording(q, path);
	int r = request_read_machine(q, &x.machine);
	if (r != 0)
		return r < 0 ? r : 0;
	struct row_stream stream;
	r = doctor_begin(&x, &stream);
	if (r == 0) {
		doctor_tell(&x, (struct finding){-1, "machine", "info", NULL},
			"%s, Linux %s, %d harts online", x.machine.arch, x.machine.release,
			hart_set_count(&x.machine.online));
		if (!request_has_proc())
			doctor_tell(&x, (struct finding){-1, "proc", "fail", NO_PROC_REMEDY}, "%s",
				NO_PROC_SAYS);
		examine_peer(&x);
		examine_rights(&x);
		examine_kernel_names(&x);
		examine_limits(&x);
		examine_bpf(&x);
		doctor_sideband(&x);
		examine_files(&x);
		examine_namer(&x);
		examine_service_namer(&x);
		examine_platforms(&x);
		for (int hart = 0; hart < x.machine.n_harts; hart++)
			if (hart_set_has(&x.machine.online, hart))
				examine_hart(&x, hart);
		r = x.result;
	}
	int ended = row_stream_end(&stream);
	if (r == 0)
		r = ended;
	if (r == 0)
		r = request_done(q, x.n_sampling > 0 ? 0 : 1);
	return r < 0 ? r : 0;
}

int control_doctor(struct request *q, const Mperf__Request *request)
{
	static const struct offload_answer doctor_answer = {
		.run = examine,
		.release = free,
		.keeps_capabilities = true,
	};
	char *path = strdup(request->doctor->path);
	return path ? offload_start(q, &doctor_answer, path) : -ENOMEM;
}
