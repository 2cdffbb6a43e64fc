/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* The parts of a stat: harts whose counts are kept apart
 *
 * One part is all harts, but for metrics of a machine with several kinds of core, which have no sums
 * over them: there each kind is a part; and if the client wants each hart by itself, each hart is.
 */

#include "daemon/control/request.h"
#include "daemon/metric/live_metrics.h"
#include "daemon/metric/plan_says.h"

struct stat_part {
	struct hart_set harts;
	char says[64];                   /* "0-3" */
	const struct platform *platform; /* platform of all its harts; NULL: several kinds */
	struct counter *counter;
	struct counter_value *last;   /* of the counter's events, as of the last answer */
	struct live_metrics *metrics; /* NULL: none was requested */
	struct jackknife *jackknife;  /* of the counter's events */
	double *rotation; /* of its groups (count/rotation.h); NULL until something was scaled */
	struct plan_says *says_plan; /* NULL: not requested */
};

struct stat_parts {
	struct stat_part *part;
	size_t n;
	size_t n_open; /* parts that are open: the first n_open */
	struct stat_none {
		int outcome; /* of the last kind of core that has none of the metrics */
		char because[EVENT_ERROR_BYTES];
	} none;
	struct user *user; /* account charged for the descriptors: */
	uint64_t n_fds;
	bool is_divided;  /* answers name the harts of each part */
	uint64_t look_ns; /* read them before this, or a counter wraps twice between two readings */
	char left_out[512]; /* kinds of core that have none of these metrics, as a note; "": none */
};

struct stat_asked {
	struct request *q;
	const struct machine *machine;
	const Mperf__StatRequest *request;
	bool is_tree;
	const pid_t *pids; /* NULL: all */
	size_t n_pids;
};

/* Find the parts; then plan them and open their counters, disabled, one descriptor in a step. The user of the request
 * is charged for descriptors before they are opened. STAT_PARTS_MORE: another step follows; 0; 1 after a refusal to
 * the peer; -errno. Call stat_parts_clear in any case. */
enum { STAT_PARTS_MORE = 2 };
int stat_parts_divide(const struct stat_asked *asked, struct stat_parts *p);
int stat_parts_open(const struct stat_asked *asked, struct stat_parts *p);
int stat_parts_start(struct stat_parts *p);
void stat_parts_clear(struct stat_parts *p);

/* Read the counters, also to estimate the errors of scaling. 0 or -errno. */
int stat_parts_read(struct stat_parts *p);
/* Counts of a part since the last answer. */
void stat_part_counts(
	const struct stat_part *part, const struct machine *machine, struct counts *ret_counts);
/* When the next reading is due, whether a client asks for it or not. */
uint64_t stat_parts_due_ns(const struct stat_parts *p);
/* Begin a new interval: the counts so far are answered. */
void stat_parts_restart(struct stat_parts *p);
