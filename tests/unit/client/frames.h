/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Frames of top made by hand, and tables with names */

#include "tests/unit/client/answers.h"

static inline int frames_columns(answers_sink *sink, void *userdata, const char *table,
	const struct answers_column *column, size_t n)
{
	Mperf__Column made[ANSWERS_COLUMNS_MAX], *list[ANSWERS_COLUMNS_MAX];
	for (size_t i = 0; i < n; i++) {
		made[i] = (Mperf__Column)MPERF__COLUMN__INIT;
		made[i].name = (char *)column[i].name;
		made[i].title = (char *)column[i].title;
		made[i].unit = column[i].unit;
		list[i] = &made[i];
	}
	Mperf__Columns columns = MPERF__COLUMNS__INIT;
	columns.n_column = n;
	columns.column = list;
	columns.table = (char *)table;
	Mperf__Answer a = MPERF__ANSWER__INIT;
	a.body_case = MPERF__ANSWER__BODY_COLUMNS;
	a.columns = &columns;
	return sink(userdata, &a);
}

#define FRAMES_SAMPLES_EARLY 97 /* of a frame whose names are on their way */

static inline int frames_provenance(answers_sink *sink, void *userdata, uint64_t samples)
{
	Mperf__Provenance p = MPERF__PROVENANCE__INIT;
	p.event = (char *)"cpu-clock";
	p.rung = (char *)"d: cpu-clock alone";
	p.hz = 99;
	p.samples = samples;
	p.seconds = 1;
	p.named_share = samples == FRAMES_SAMPLES_EARLY ? 0 : 1;
	p.coming_share = samples == FRAMES_SAMPLES_EARLY ? 0.97 : 0;
	Mperf__Answer a = MPERF__ANSWER__INIT;
	a.body_case = MPERF__ANSWER__BODY_PROVENANCE;
	a.provenance = &p;
	return sink(userdata, &a);
}

static const struct answers_column frames_harts[] = {
	{"hart", "Hart", MPERF__UNIT__UNIT_NONE},
	{"load", "Load", MPERF__UNIT__UNIT_SHARE},
	{"user", "User", MPERF__UNIT__UNIT_SHARE},
	{"kernel", "Kernel", MPERF__UNIT__UNIT_SHARE},
	{"rung", "Sampled by", MPERF__UNIT__UNIT_NONE},
	{"hz", "Rate", MPERF__UNIT__UNIT_HZ},
	{"ipc", "IPC", MPERF__UNIT__UNIT_RATIO},
};
#define FRAMES_N_HARTS (sizeof(frames_harts) / sizeof(*frames_harts))

static inline int frames_hart(
	answers_sink *sink, void *userdata, int hart, double load, const char *rung)
{
	Mperf__Value v[] = {answers_integer(hart), answers_real(load), answers_real(load / 2),
		answers_real(load / 2), answers_text(rung), answers_integer(99), answers_real(0.5)};
	return answers_row(sink, userdata, v, FRAMES_N_HARTS);
}

static const struct answers_column frames_functions[] = {
	{"function", "Function", MPERF__UNIT__UNIT_NONE},
	{"module", "Module", MPERF__UNIT__UNIT_NONE},
	{"self", "Self", MPERF__UNIT__UNIT_SHARE},
	{"total", "Total", MPERF__UNIT__UNIT_SHARE},
	{"samples", "Samples", MPERF__UNIT__UNIT_COUNT},
	{"self_ns", "Time", MPERF__UNIT__UNIT_NS},
	{"ipc", "IPC", MPERF__UNIT__UNIT_RATIO},
	{"process", "Process", MPERF__UNIT__UNIT_NONE},
};
#define FRAMES_N_FUNCTIONS (sizeof(frames_functions) / sizeof(*frames_functions))

struct frames_function {
	const char *name, *module; /* NULL: unknown */
	double self, total;
	double ipc; /* below 0: not counted */
};

static inline int frames_function(
	answers_sink *sink, void *userdata, const struct frames_function *f)
{
	Mperf__Value v[] = {f->name ? answers_text(f->name) : answers_absent(),
		f->module ? answers_text(f->module) : answers_absent(), answers_real(f->self),
		answers_real(f->total), answers_integer((int64_t)(1000 * f->self)),
		answers_integer((int64_t)(1e9 * f->self)),
		f->ipc < 0 ? answers_absent() : answers_real(f->ipc), answers_text("proc")};
	return answers_row(sink, userdata, v, FRAMES_N_FUNCTIONS);
}
