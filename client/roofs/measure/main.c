/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * mperf-roofs: measures what this machine can do, with the rights of its caller, and prints it as JSON.
 * mperfctl starts it; by itself it also checks its kernels and runs single ones.
 */
#include <argp.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "client/roofs/machine.h"
#include "client/roofs/measure/crew.h"
#include "client/roofs/measure/measure.h"
#include "client/roofs/measure/probe.h"
#include "proto/base/memory.h"
#include "proto/syntax/nearest.h"
#include "proto/syntax/unit.h"

#define BUDGET_NS 55000000000ull /* with setting up and taking down, a minute */
#define BUDGET_QUICK_NS 9000000000ull
#define BUDGET_NS_MAX 3600000000000ull
#define WARM_NS 2000000
#define FAILED 1
#define USAGE 2

enum key {
	KEY_QUICK = 0x100,
	KEY_FOR,
	KEY_CHECK,
	KEY_RUN,
	KEY_BYTES,
	KEY_PASSES,
	KEY_CPU,
	KEY_SMALL_PAGES,
	KEY_CACHES,
};

struct options {
	bool quick, check, small_pages;
	uint64_t for_ns;
	const char *run, *caches;
	uint64_t bytes, passes;
	uint32_t number[CPU_SETSIZE];
	size_t n;
};

/* --- measuring -------------------------------------------------------------------------------- */

static bool on_terminal;

static void show_progress(const char *what, double done)
{
	if (on_terminal)
		fprintf(stderr, "\r\033[Kmeasuring roofs: %3.0f %%, %s", 100 * done, what);
	else
		fprintf(stderr, "measuring roofs: %.0f %%, %s\n", 100 * done, what);
}

static int say_failed(const char *what, int error)
{
	fprintf(stderr, "mperf-roofs: %s: %s.\n", what, strerror(-error));
	return FAILED;
}

static int measure(const struct machine *m, const struct options *o)
{
	struct measure_options options = {
		.budget_ns = o->for_ns  ? o->for_ns
			     : o->quick ? BUDGET_QUICK_NS
					: BUDGET_NS,
		.quick = o->quick,
		.caches = o->caches,
		.progress = show_progress,
	};
	struct roofs roofs;
	int r = measure_roofs(m, &options, &roofs);
	if (on_terminal)
		fputs("\r\033[K", stderr);
	if (r < 0)
		return say_failed("cannot measure", r);
	r = roofs_write(&roofs, false, stdout);
	roofs_clear(&roofs);
	if (r == 0 && fflush(stdout) != 0)
		r = -errno;
	return r < 0 ? say_failed("cannot write to stdout", r) : 0;
}

/* --- kernels ---------------------------------------------------------------------------------- */

/* Print a line for each: what it counts, and whether its results are right on this hart. Status 1 if one is wrong. */
static int check(const struct machine *m)
{
	static const char *const verdicts[] = {
		[PROBE_ABSENT] = "absent",
		[PROBE_ILLEGAL] = "illegal",
		[PROBE_WRONG] = "wrong",
		[PROBE_RIGHT] = "right",
	};
	_cleanup_(freep) struct probe *probe = calloc(n_kernels, sizeof(*probe));
	int status = 0;
	int r = probe ? probe_kernels(m->hart[0].number, probe) : -ENOMEM;
	if (r < 0)
		return say_failed("cannot start a child", r);
	for (size_t i = 0; i < n_kernels; i++) {
		const struct kernel *k = &kernels[i];
		printf("%s %s %s %u%s%s\n", verdicts[probe[i].verdict], k->name,
			k->limit == ROOF_COMPUTE ? "operations" : "streams", k->per,
			*probe[i].fault ? " " : "", probe[i].fault);
		if (probe[i].verdict == PROBE_WRONG)
			status = FAILED;
	}
	return fflush(stdout) == 0 ? status : say_failed("cannot write to stdout", -errno);
}

static const struct kernel *find_kernel(const char *name)
{
	_cleanup_(freep) const char **names = calloc(n_kernels, sizeof(*names));
	for (size_t i = 0; i < n_kernels; i++) {
		if (strcmp(kernels[i].name, name) == 0)
			return &kernels[i];
		if (names)
			names[i] = kernels[i].name;
	}
	const char *near = names ? nearest_name(name, names, n_kernels) : NULL;
	fprintf(stderr, "mperf-roofs: there is no kernel '%.100s'. %s%s%s\n", name,
		near ? "Did you mean " : "`mperf-roofs --check` lists them.", near ? near : "",
		near ? "?" : "");
	return NULL;
}

/* Run these passes and nothing else, for tools that count instructions. */
static int run_passes(const struct kernel *k, const struct options *o)
{
	uint64_t stream = o->bytes / k->per / KERNEL_BLOCK_BYTES * KERNEL_BLOCK_BYTES;
	size_t size = k->limit == ROOF_COMPUTE ? KERNEL_RESULT_BYTES : o->bytes;
	unsigned char *in = aligned_alloc(KERNEL_OPERAND_BYTES, 3 * KERNEL_OPERAND_BYTES);
	const size_t whole =
		(size + KERNEL_BLOCK_BYTES - 1) / KERNEL_BLOCK_BYTES * KERNEL_BLOCK_BYTES;
	unsigned char *space = aligned_alloc(KERNEL_BLOCK_BYTES, whole);
	int status = FAILED;
	if (in && space && (k->limit == ROOF_COMPUTE || stream > 0)) {
		memset(space, 0, size);
		uint64_t n;
		if (k->limit == ROOF_COMPUTE) {
			kernel_operands(k, in);
			n = k->compute(o->passes, in, space);
		} else
			n = k->memory(o->passes, stream, space, space + stream, space + 2 * stream);
		printf("%s %llu\n", k->limit == ROOF_COMPUTE ? "operations" : "bytes",
			(unsigned long long)(n * k->per));
		status = fflush(stdout) == 0 ? 0 : say_failed("cannot write to stdout", -errno);
	} else
		fprintf(stderr, "mperf-roofs: --bytes takes at least %u for this kernel.\n",
			k->per * KERNEL_BLOCK_BYTES);
	free(in);
	free(space);
	return status;
}

/* Print the rate and the clock. */
static int run_timed(const struct kernel *k, const struct machine *m, struct options *o)
{
	struct crew *c;
	struct job_result result;
	struct job job = {
		.kernel = k,
		.bytes = o->bytes,
		.run_ns = o->for_ns ? o->for_ns : 1000000000,
		.warm_ns = WARM_NS,
	};
	if (o->n == 0)
		o->number[o->n++] = m->hart[m->n_harts - 1].number;
	int r = crew_new(o->number, o->n, o->bytes, !o->small_pages, &c);
	if (r < 0)
		return say_failed("cannot start threads", r);
	crew_run(c, &job, &result);
	crew_free(c);
	printf("%.6g %s a second, %.4g GHz%s\n", result.rate,
		k->limit == ROOF_COMPUTE ? "operations" : "bytes", result.hz / 1e9,
		result.disturbed ? ", disturbed" : "");
	return fflush(stdout) == 0 ? 0 : say_failed("cannot write to stdout", -errno);
}

static int run_kernel(const struct machine *m, struct options *o)
{
	const struct kernel *k = find_kernel(o->run);
	if (!k)
		return USAGE;
	_cleanup_(freep) struct probe *probe = calloc(n_kernels, sizeof(*probe));
	/* no check in a child: tools that count instructions would count it, too */
	if (o->passes > 0)
		return run_passes(k, o);
	int r = probe ? probe_kernels(m->hart[0].number, probe) : -ENOMEM;
	if (r < 0)
		return say_failed("cannot start a child", r);
	if (probe[k - kernels].verdict != PROBE_RIGHT) {
		fprintf(stderr, "mperf-roofs: this hart cannot run %s.\n", k->name);
		return FAILED;
	}
	return run_timed(k, m, o);
}

/* --- options ---------------------------------------------------------------------------------- */

static bool number(const char *text, uint64_t max, uint64_t *ret_value)
{
	char *end;
	errno = 0;
	unsigned long long value = strtoull(text, &end, 10);
	if (*text < '0' || *text > '9' || errno || *end || value == 0 || value > max)
		return false;
	*ret_value = value;
	return true;
}

static void take_number(
	struct argp_state *state, const char *name, const char *arg, uint64_t max, uint64_t *ret)
{
	if (!number(arg, max, ret))
		argp_error(state, "%s takes a number from 1 to %llu, not '%.100s'", name,
			(unsigned long long)max, arg);
}

static void take_harts(struct argp_state *state, const char *arg, struct options *o)
{
	const char *at = arg;
	while (*at) {
		char *end;
		unsigned long n = strtoul(at, &end, 10);
		if (*at < '0' || *at > '9' || n >= CPU_SETSIZE || (*end && *end != ',') ||
			o->n == CPU_SETSIZE) {
			argp_error(state, "--cpu takes harts like 0,1, not '%.100s'", arg);
			return;
		}
		o->number[o->n++] = (uint32_t)n;
		at = *end ? end + 1 : end;
	}
}

static error_t take(int key, char *arg, struct argp_state *state)
{
	struct options *o = state->input;
	switch (key) {
	case KEY_QUICK:
		o->quick = true;
		return 0;
	case KEY_CHECK:
		o->check = true;
		return 0;
	case KEY_SMALL_PAGES:
		o->small_pages = true;
		return 0;
	case KEY_FOR:
		if (unit_parse_duration(arg, &o->for_ns) != 0 || o->for_ns == 0 ||
			o->for_ns > BUDGET_NS_MAX)
			argp_error(state,
				"--for takes a time up to an hour, like 10s, not '%.100s'", arg);
		return 0;
	case KEY_CACHES:
		o->caches = arg;
		return 0;
	case KEY_RUN:
		o->run = arg;
		return 0;
	case KEY_BYTES:
		take_number(state, "--bytes", arg, 1ull << 40, &o->bytes);
		return 0;
	case KEY_PASSES:
		take_number(state, "--passes", arg, UINT32_MAX, &o->passes);
		return 0;
	case KEY_CPU:
		take_harts(state, arg, o);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

int main(int argc, char **argv)
{
	static const struct argp_option table[] = {
		{"quick", KEY_QUICK, NULL, 0, "measure the most wanted roofs alone, in 10 s", 0},
		{"for", KEY_FOR, "TIME", 0,
			"measure for at most this time (default: a minute); with --run, for this "
			"time",
			0},
		{"caches", KEY_CACHES, "HARTS:BYTES/SHARED,...[;...]", 0,
			"sizes of caches by level, and how many harts share one, if the kernel "
			"states "
			"none",
			0},
		{"check", KEY_CHECK, NULL, 0,
			"measure nothing; run each kernel and compare its results with C's", 0},
		{"run", KEY_RUN, "KERNEL", 0, "measure this kernel alone", 0},
		{"bytes", KEY_BYTES, "N", 0, "with --run: working set of each hart", 0},
		{"cpu", KEY_CPU, "N[,N]", 0, "with --run: harts to run on (default: the last)", 0},
		{"small-pages", KEY_SMALL_PAGES, NULL, 0,
			"with --run: no huge pages, as for programs that do not ask for them", 0},
		{"passes", KEY_PASSES, "N", 0,
			"with --run: run N passes, and print operations or bytes instead of rates",
			0},
		{0},
	};
	static const struct argp parser = {
		.options = table,
		.parser = take,
		.doc = "Measure what this machine can do, and print it as JSON. "
		       "`mperfctl roofs measure` starts it and keeps what it prints.",
	};
	struct options o = {.bytes = 1 << 14, .caches = ""};
	struct machine m;

	argp_program_version = "mperf-roofs " MPERF_VERSION;
	argp_err_exit_status = USAGE;
	argp_parse(&parser, argc, argv, 0, NULL, &o);
	on_terminal = isatty(STDERR_FILENO);
	int r = machine_look(&m);
	if (r < 0 || m.n_harts == 0)
		return say_failed("cannot find harts", r < 0 ? r : -ENODEV);
	int status = o.check ? check(&m) : o.run ? run_kernel(&m, &o) : measure(&m, &o);
	machine_clear(&m);
	return status;
}
