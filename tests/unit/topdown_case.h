/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* A top-down tree of a described core, from made counts: a replayed machine, the plan of its metrics,
 * their values and tables, and those as mperfctl reads them */

#include "client/topdown/tree.h"
#include "daemon/control/topdown.h"
#include "tests/unit/core_case.h"

struct topdown_count {
	const char *event;
	double value; /* below 0: it opened and never got a counter */
};

struct topdown_case {
	struct core_case core;
	struct event_list events;
	struct live_metrics *metrics;
	struct counter counter;
	struct jackknife *jackknife;
	struct counter_value value[EVENTS_MAX], last[EVENTS_MAX];
	struct replies replies;
	struct topdown tree;
	int outcome;              /* of live_metrics_new, */
	struct event_error error; /* and what it says */
};

/* Identities for topdown_case_of, as members of a machine. */
#define TOPDOWN_KUNMINGHU "riscv64", "", CORE_KUNMINGHU
#define TOPDOWN_ARM(midr)                                                                          \
	"aarch64",                                                                                 \
		"\"/sys/devices/system/cpu/cpu0/regs/identification/midr_el1\":\"" midr "\\n\",",  \
		""
/* One thread of a P or E core of a hybrid package with that model. */
#define TOPDOWN_INTEL(model)                                                                       \
	"\"/proc/cpuinfo\":\"processor : 0\\nvendor_id : GenuineIntel\\ncpu family : 6\\n"         \
	"model : " model "\\nstepping : 2\\n\","
#define TOPDOWN_INTEL_P(model)                                                                     \
	"x86_64",                                                                                  \
		TOPDOWN_INTEL(model) "\"/sys/bus/event_source/devices/cpu_core/type\":\"4\\n\","   \
				     "\"/sys/bus/event_source/devices/cpu_core/cpus\":\"0\\n\",",  \
		""
#define TOPDOWN_INTEL_E(model)                                                                     \
	"x86_64",                                                                                  \
		TOPDOWN_INTEL(model) "\"/sys/bus/event_source/devices/cpu_atom/type\":\"10\\n\","  \
				     "\"/sys/bus/event_source/devices/cpu_atom/cpus\":\"0\\n\",",  \
		""

/* Plan the tree on a machine with this core: names and levels as the request has them. Ends the test if
 * the machine cannot be read; c->outcome says whether it could be planned. */
void topdown_case_plan(struct topdown_case *c, const char *arch, const char *files,
	const char *hwprobe, const char *top, int levels);

/* Let its events count that, all of the time, or in turns of the passes; those that are not named are
 * refused. Then take its tables. */
void topdown_case_count(
	struct topdown_case *c, const struct topdown_count *count, size_t n, bool in_turns);

/* The node of that name, below `parent` ("": of the first level). NULL if there is none. */
const struct topdown_node *topdown_case_node(
	const struct topdown_case *c, const char *name, const char *parent);

void topdown_case_end(struct topdown_case *c);
