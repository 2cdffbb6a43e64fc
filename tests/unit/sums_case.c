/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

#include "tests/unit/sums_case.h"

#include "tests/unit/test.h"

static struct kernel kernel;
static int (*plain_work)(void *u, int hart, unsigned n, uint64_t *ret_ns);
static uint64_t cost_ns;
static int refusal, n_loaded, n_watched[SUMS_CASE_HARTS];

/* The kernel never looks inside. */
static int load(
	void *u, enum switch_way way, int n_harts, struct switch_bpf **ret_bpf, int *ret_error)
{
	(void)u;
	ck_assert_int_eq(way, SWITCH_SUMS);
	ck_assert_int_le(n_harts, SUMS_CASE_HARTS);
	if (refusal) {
		*ret_error = refusal;
		return SWITCH_BPF_REFUSED;
	}
	n_loaded++;
	*ret_bpf = (struct switch_bpf *)(void *)&kernel;
	return 0;
}

static int watch(void *u, struct switch_bpf *b, const struct switch_group *g)
{
	(void)u, (void)b;
	ck_assert_int_gt(g->n_members, 1);
	n_watched[g->hart]++;
	return 0;
}

static int watched(void *u, const struct switch_bpf *b, int hart)
{
	(void)u, (void)b;
	return n_watched[hart];
}

static void forget(void *u, struct switch_bpf *b, int hart, int n_kept)
{
	(void)u, (void)b;
	if (n_watched[hart] > n_kept)
		n_watched[hart] = n_kept;
}

static void unload(void *u, struct switch_bpf *b)
{
	(void)u, (void)b;
	for (int hart = 0; hart < SUMS_CASE_HARTS; hart++)
		ck_assert_int_eq(n_watched[hart], 0);
	n_loaded--;
}

static int switch_work(void *u, int hart, unsigned n, uint64_t *ret_ns)
{
	int r = plain_work(u, hart, n, ret_ns);
	if (r == 0)
		*ret_ns += n * cost_ns * (uint64_t)n_watched[hart];
	return r;
}

const struct kernel *sums_case_kernel(struct replay *r)
{
	kernel = *replay_kernel(r);
	plain_work = kernel.switch_work;
	kernel.switch_new = load;
	kernel.switch_watch = watch;
	kernel.switch_watched = watched;
	kernel.switch_forget = forget;
	kernel.switch_free = unload;
	kernel.switch_work = switch_work;
	cost_ns = 0;
	refusal = n_loaded = 0;
	memset(n_watched, 0, sizeof(n_watched));
	return &kernel;
}

void sums_case_cost(uint64_t each_ns)
{
	cost_ns = each_ns;
}

void sums_case_refuse(int error)
{
	refusal = error;
}

int sums_case_n_loaded(void)
{
	return n_loaded;
}

int sums_case_n_watched(int hart)
{
	return n_watched[hart];
}
