/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Overhead: the current cost of mperf to the machine, by cause, and the budget for it
 *
 *      own CPU of all processes (usage.h) − clients' ──────┐
 *      samples × what one costs the hart (budget/cost.h) ─────┼─▶ spent ─▶ governor ─▶ effort, rate
 *      switches × what cutting counts there costs ─────────┘     └─▶ status, LOSS_COST
 *
 * Costs are measured on each hart when the service begins and once an hour, in steps of a few ms.
 * Switches are counted by an event of each hart that neither samples nor is read at a switch.
 * Forks, execs and mappings have the price that `doctor` measured, if a user ran it: that takes
 * half a second and many processes. Status shows this cost, but the budget does not include it:
 * nothing that could be given up would lower it. Nor does the budget include the cost of clients
 * and programs: the shares of their users pay for it (control/user.h, loops/feed.h), and no samples
 * are given up for it.
 */

#include "daemon/budget/governor.h"
#include "daemon/budget/measures.h"
#include "daemon/budget/usage.h"
#include "daemon/conf/conf.h"
#include "daemon/session/sideband_price.h"
#include "daemon/session/walk.h"

/* Ticks over which our own CPU is averaged: a minute. Naming comes in bursts. */
#define OVERHEAD_OWN_TICKS 30
/* Number of these ticks that must be known before our own CPU time counts against the budget. */
#define OVERHEAD_OWN_TICKS_MIN 15
/* Nor does this time after something was given up or taken back: work that began before is still paid for, and files of
 * the segment that ends are named at once. */
#define OVERHEAD_SETTLE_NS 10000000000u
/* The first minute does not count: at the start, mperf scans and names all running programs once.
 * */
#define OVERHEAD_START_NS 60000000000u

struct overhead_options {
	const struct kernel *kernel;
	const struct conf *conf; /* borrowed; its budget and rate may change */
	void (*say)(void *userdata, int syslog_level, const char *text); /* NULL: there is no log */
	void *userdata;
	/* The walk belongs to a client and lasts minutes: the first dispatch begins the first tick,
	 * and our own CPU time counts from there, by the cost of a record instead of as the mean of
	 * a minute. */
	bool brief;
	void (*cpu)(const struct namer *namer, struct usage_cpu *ret_cpu); /* NULL: usage_cpu */
};

struct overhead_hart {
	struct hart_cost cost; /* as measured, or of a hart with the same rung; or unknown */
	bool measured;
	int switch_fd; /* counts switches; -1: not open */
	/* as of the last tick */
	uint64_t n_switches, n_samples, n_hotplugs, n_throttles;
	/* over the last tick, as shares of the hart's time, and per second */
	double samples_part, switches_part, samples, switches, throttles;
	double early_samples, early_switches; /* counted before their price was known */
	double unreported_us;                 /* cost that LOSS_COST does not have yet */
};

/* CPU time of our processes in one tick. */
struct overhead_own {
	uint64_t time_ns;
	uint64_t own_ns, clients_ns; /* the daemon and its namer: for sampling, for clients */
	uint64_t others_ns;
	uint64_t cause_ns[N_CAUSES]; /* own_ns and clients_ns, by cause */
	uint64_t users_naming_ns;    /* of the parser, for programs of users; not in own_ns */
	uint64_t n_samples;          /* records of CAUSE_SAMPLES */
	bool counts; /* counts against the budget: no client had raised the rate, and it was not the
		      * first minute */
};

struct overhead {
	struct overhead_options o;
	struct governor governor;
	struct measures measures;   /* the caller puts off what they say */
	struct overhead_hart *hart; /* n_harts */
	int n_harts;
	struct cost_measure measure;
	uint64_t next_tick_ns, next_measure_ns, measure_again_ns; /* CLOCK_MONOTONIC */
	uint64_t started_ns, ticked_ns;
	uint64_t judged_from_ns; /* own CPU time does not count before; 0: nothing has changed */
	struct usage_cpu cpu;
	/* CPU time of the daemon so far for clients, without the feed's. Set by the caller. */
	uint64_t clients_ns;
	uint64_t writing_ns;      /* the same for the store */
	uint64_t clients_seen_ns; /* with the feed's, as of the last tick */
	struct overhead_own own[OVERHEAD_OWN_TICKS];
	unsigned next_own;
	bool measured_now; /* how often since the last tick */
	/* lowest cost of a record to our processes, whatever else they did; 0: not known */
	double record_ns;
	/* as of the last tick: of the walk; of the store; of the parser for programs of users */
	uint64_t n_sample_records, cpu_ns[N_WALK_WORKS], writing_seen_ns, users_naming_seen_ns;
	enum governor_step said; /* lines in the log */
	uint64_t next_say_ns;
	const struct walk *walk; /* the time that the figures cover */
	/* Share of a hart's time that rotating the topdown groups costs, while they are counted;
	 * and the share that it would cost. Set by the caller. */
	double groups_part, groups_price;
	uint64_t n_ticks; /* so far: figures are new after each */
	/* N_TASK_WORKS, in memory that children share: one of them measures. NULL: without memory */
	struct sideband_price *price;
	uint64_t n_sideband[N_TASK_WORKS]; /* as of the last tick */
	double sideband[N_TASK_WORKS];     /* a second, over the last tick */
};

/* Nothing is known yet. 0 or -ENOMEM. */
int overhead_new(const struct overhead_options *o, struct overhead **ret_overhead);
struct overhead *overhead_free(struct overhead *h);

/* After the walk's dispatch. raised: a client asks for more than always-on sampling, which is not
 * held to the budget. 0; OVERHEAD_STEPPED: the walk does less or more from now on, or cuts counts in
 * another way, and the caller sets the rate (overhead_rate) and begins a new segment; -errno. */
enum { OVERHEAD_STEPPED = 1 };
int overhead_dispatch(struct overhead *h, struct walk *w, bool raised, uint64_t now_ns);
/* The walk is about to stop: count what it cost since the last tick. */
void overhead_stop(struct overhead *h, struct walk *w, uint64_t now_ns);
/* When it must be called next, at the latest at next_ns (the walk's next drain, which is early
 * enough except for the first measurements). */
uint64_t overhead_deadline_ns(const struct overhead *h, uint64_t next_ns);

/* The rate of always-on sampling that the budget allows. */
uint32_t overhead_rate(const struct overhead *h);

/* Share of one CPU's time for naming, while that is put off. */
double overhead_naming_share(const struct overhead *h);

/* A rate that a client requests for the whole system, with a budget that the client chose for all
 * cost of mperf. If the rate costs more, less is requested for this client, but never less than the
 * always-on rate. The client's budget does not limit what other clients request. */
struct overhead_held {
	uint32_t hz, ppm;         /* wanted; and the budget, in millionths of each hart's time */
	uint32_t given_hz;        /* what the budget allows of hz */
	struct governor governor; /* the step in force, and its reason */
};
/* By the last tick's figures, would this rate be allowed in full now? hz 0: the rate of always-on
 * sampling, which must not have been lowered. ppm 0: no budget. If not, the reason is a part of a
 * sentence. */
bool overhead_allows(const struct overhead *h, uint32_t hz, uint32_t ppm, char *ret_why, size_t n);
/* Begin: allow the whole rate until costs are known. */
struct overhead_held overhead_held_begin(uint32_t hz, uint32_t ppm);
/* Decide by the last tick's figures; call it once for each. True if given_hz changed. */
bool overhead_hold(const struct overhead *h, struct overhead_held *held, uint64_t now_ns);

/* Current cost, as shares of all harts' time; negative: not known. */
struct overhead_spent {
	/* a second, on all harts; what a throttle costs is not measured */
	double samples, switches, throttles;
	double samples_part, switches_part, groups_part;
	/* mean cost of one in ns; negative: none came, the cost is not known, or no counts are cut
	 * */
	double sample_ns, switch_ns;
	struct {
		double per_second, ns,
			part; /* ns, part negative: not known, or too small to find */
	} sideband[N_TASK_WORKS];
	/* our processes: the daemon with its namer, but for the time that it has for clients and programs;
	 * that time; the children that answer */
	double own_part, clients_part, others_part;
	double cause_part[N_CAUSES]; /* own_part by cause, and clients_part; */
	double users_naming_part;    /* of that: the parser's time for programs of users */
	/* The same since something was given up or taken back. Negative: not known yet, and the causes are those
	 * above. */
	double judged_part, judged_cause_part[N_CAUSES];
	double all_part;
	int worst_hart;                                 /* the hart that costs most; -1: not known
							 * */
	double worst_samples_part, worst_switches_part; /* shares of its time */
};
void overhead_spent(const struct overhead *h, struct overhead_spent *ret_spent);
/* Cost that the budget is for, as a share of the busiest hart's time, since the last change if that is known. Negative:
 * not known. */
double overhead_spent_of_budget(const struct overhead_spent *s);
/* "1.4 %: records of forks, execs and mappings cost 1.0 %, of which nothing is left to give up"; "" while it is within
 * the budget. Returns ret_text. */
const char *overhead_says_over(
	const struct overhead *h, const struct overhead_spent *s, char *ret_text, size_t n);
