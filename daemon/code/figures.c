/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "daemon/code/figures.h"

#include <math.h>

void tally_add_instruction(struct tally *t, const struct instruction *i)
{
	t->n++;
	for (int k = 0; k < N_COUNTS; k++)
		t->count[i->masked][i->scalable][k] += (double)i->count[k];
}

void tally_add(struct tally *t, const struct tally *more, double times)
{
	t->n += times * more->n;
	for (int masked = 0; masked < 2; masked++)
		for (int scalable = 0; scalable < 2; scalable++)
			for (int k = 0; k < N_COUNTS; k++)
				t->count[masked][scalable][k] +=
					times * more->count[masked][scalable][k];
}

/* A count at one vector length: the unconditional part, and the part that masks may leave out. */
struct amount {
	double sure, masked;
};

static double operations(const double count[static N_COUNTS], enum code_ops ops)
{
	switch (ops) {
	case CODE_OPS_INT:
		return count[COUNT_INT];
	case CODE_OPS_SP:
		return count[COUNT_FP32];
	case CODE_OPS_DP:
		return count[COUNT_FP64];
	case CODE_OPS_FP:
	default:
		return count[COUNT_FP16] + count[COUNT_FP32] + count[COUNT_FP64] +
		       count[COUNT_FP80];
	}
}

static double numerator(const double count[static N_COUNTS], int figure)
{
	if (figure == FIGURE_LOADED)
		return count[COUNT_LOADED];
	if (figure == FIGURE_STORED)
		return count[COUNT_STORED];
	int first = figure < FIGURE_INTENSITY ? FIGURE_OPERATIONS : FIGURE_INTENSITY;
	return operations(count, (enum code_ops)(figure - first));
}

static struct amount over_of(const struct tally *t, int figure, double vectors)
{
	double of[2];
	for (int masked = 0; masked < 2; masked++)
		of[masked] = numerator(t->count[masked][0], figure) +
			     vectors * numerator(t->count[masked][1], figure);
	return (struct amount){of[0], of[1]};
}

static struct amount under_of(const struct tally *t, int figure, double vectors)
{
	if (figure < FIGURE_INTENSITY)
		return (struct amount){t->n, 0};
	struct amount loaded = over_of(t, FIGURE_LOADED, vectors);
	struct amount stored = over_of(t, FIGURE_STORED, vectors);
	return (struct amount){loaded.sure + stored.sure, loaded.masked + stored.masked};
}

static double ratio(double over, double under)
{
	return under > 0 ? over / under : NAN;
}

static struct code_estimate figure_at(const struct tally *t, int figure, double vectors)
{
	struct amount over = over_of(t, figure, vectors), under = under_of(t, figure, vectors);
	double value = ratio(over.sure + over.masked, under.sure + under.masked);
	bool all_masked = under.sure <= 0;
	return (struct code_estimate){value,
		all_masked ? value : ratio(over.sure, under.sure + under.masked),
		all_masked ? value : ratio(over.sure + over.masked, under.sure)};
}

void figures_of(const struct tally *t, const struct vectors *v,
	struct code_estimate ret_figure[static N_FIGURES])
{
	for (int f = 0; f < N_FIGURES; f++) {
		struct code_estimate least = figure_at(t, f, v->least);
		struct code_estimate most = figure_at(t, f, v->most);
		ret_figure[f] = (struct code_estimate){
			least.value, fmin(least.low, most.low), fmax(least.high, most.high)};
	}
}
