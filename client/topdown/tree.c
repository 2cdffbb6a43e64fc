/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "client/topdown/tree.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/memory.h"
#include "proto/syntax/unit.h"

static const char *text_at(const struct reply *r, size_t row, const char *column)
{
	const char *text = reply_text(r, row, reply_column(r, column));
	return text ? text : "";
}

static double number_at(const struct reply *r, size_t row, const char *column, double otherwise)
{
	double value;
	return reply_number(r, row, reply_column(r, column), &value) && isfinite(value) ? value
											: otherwise;
}

static int whole_at(const struct reply *r, size_t row, const char *column, int max)
{
	double value = number_at(r, row, column, 0);
	return value < 0 ? 0 : value > max ? max : (int)value;
}

static enum topdown_kind kind_of(const char *text)
{
	return strcmp(text, "useful") == 0     ? TOPDOWN_USEFUL
	       : strcmp(text, "residual") == 0 ? TOPDOWN_RESIDUAL
					       : TOPDOWN_LOST;
}

static struct topdown_node read_node(const struct reply *r, size_t row)
{
	int level = whole_at(r, row, "level", TOPDOWN_LEVELS_MAX);
	double error = number_at(r, row, "error", NAN);
	return (struct topdown_node){
		.kind = kind_of(text_at(r, row, "kind")),
		.name = text_at(r, row, "node"),
		.parent = text_at(r, row, "parent"),
		.unit = text_at(r, row, "unit"),
		.passes = text_at(r, row, "passes"),
		.missing = text_at(r, row, "missing"),
		.reason = text_at(r, row, "reason"),
		.says = text_at(r, row, "says"),
		.formula = text_at(r, row, "formula"),
		.inputs = text_at(r, row, "inputs"),
		.next = text_at(r, row, "next"),
		.source = text_at(r, row, "source"),
		.verified = text_at(r, row, "verified"),
		.level = level ? level : 1,
		.value = number_at(r, row, "value", NAN),
		.error = error >= 0 ? error : NAN,
		.running = number_at(r, row, "running_share", 1),
		.is_worst = whole_at(r, row, "worst", 1),
		.has_more = whole_at(r, row, "has_more", 1),
	};
}

static struct topdown_input read_input(const struct reply *r, size_t row)
{
	return (struct topdown_input){
		.name = text_at(r, row, "event"),
		.reason = text_at(r, row, "reason"),
		.count = number_at(r, row, "scaled", NAN),
		.raw = number_at(r, row, "value", NAN),
		.running = number_at(r, row, "running_share", 1),
		.pass = whole_at(r, row, "pass", 1000),
	};
}

size_t topdown_count(const struct replies *r)
{
	const struct reply *core = replies_table(r, "core");
	size_t n = core ? core->n_rows : 0;
	return n < TOPDOWN_TREES_MAX ? n : TOPDOWN_TREES_MAX;
}

/* Is the row of the tree of these harts? Rows of a single tree need not say so. */
static bool is_of(const struct reply *r, size_t row, const struct topdown *t)
{
	return t->is_alone || strcmp(text_at(r, row, "harts"), t->harts) == 0;
}

int topdown_read(struct topdown *t, const struct replies *r, size_t i)
{
	const struct reply *core = replies_table(r, "core"), *node = replies_table(r, "node");
	const struct reply *event = replies_table(r, "event");
	if (!core || i >= core->n_rows || !node || !event)
		return TOPDOWN_MALFORMED;
	struct topdown read = {
		.core = text_at(core, i, "core"),
		.harts = text_at(core, i, "harts"),
		.is_alone = core->n_rows == 1,
		.levels = whole_at(core, i, "levels", TOPDOWN_LEVELS_MAX),
		.deepest = whole_at(core, i, "deepest", TOPDOWN_LEVELS_MAX),
		.passes = whole_at(core, i, "passes", 1000),
		.is_cut = whole_at(core, i, "cut", 1),
		.is_fewest = whole_at(core, i, "fewest", 1),
		.node = calloc(node->n_rows + 1, sizeof(*read.node)),
		.input = calloc(event->n_rows + 1, sizeof(*read.input)),
		.notes = r->provenance,
	};
	if (!read.node || !read.input) {
		topdown_clear(&read);
		return -ENOMEM;
	}
	for (size_t row = 0; row < node->n_rows; row++)
		if (is_of(node, row, &read))
			read.node[read.n_nodes++] = read_node(node, row);
	for (size_t row = 0; row < event->n_rows; row++)
		if (is_of(event, row, &read))
			read.input[read.n_inputs++] = read_input(event, row);
	if (read.n_nodes == 0) {
		topdown_clear(&read);
		return TOPDOWN_MALFORMED;
	}
	*t = read;
	return 0;
}

void topdown_clear(struct topdown *t)
{
	free(t->node);
	free(t->input);
	*t = (struct topdown){.node = NULL};
}

const struct topdown_node *topdown_worst(const struct topdown *t)
{
	const struct topdown_node *worst = NULL;
	for (size_t i = 0; i < t->n_nodes; i++)
		if (t->node[i].is_worst && (!worst || t->node[i].level > worst->level))
			worst = &t->node[i];
	return worst;
}

const char *topdown_next(const struct topdown *t)
{
	const char *next = "";
	int level = 0;
	for (size_t i = 0; i < t->n_nodes; i++)
		if (t->node[i].is_worst && *t->node[i].next && t->node[i].level > level) {
			next = t->node[i].next;
			level = t->node[i].level;
		}
	return next;
}

void topdown_value_text(const struct topdown_node *n, char text[static TOPDOWN_TEXT_BYTES])
{
	if (!isfinite(n->value))
		snprintf(text, TOPDOWN_TEXT_BYTES, "n/a");
	else if (strcmp(n->unit, "%") == 0)
		snprintf(text, TOPDOWN_TEXT_BYTES, "%.1f %%", n->value);
	else
		snprintf(text, TOPDOWN_TEXT_BYTES, "%.4g%s%.40s", n->value, *n->unit ? " " : "",
			n->unit);
}

void topdown_error_text(const struct topdown_node *n, char text[static TOPDOWN_TEXT_BYTES])
{
	text[0] = '\0';
	if (!isfinite(n->value) || n->error == 0)
		return;
	if (!isfinite(n->error))
		snprintf(text, TOPDOWN_TEXT_BYTES, "± ?");
	else if (strcmp(n->unit, "%") == 0)
		snprintf(text, TOPDOWN_TEXT_BYTES, n->error < 0.05 ? "± <0.1" : "± %.1f", n->error);
	else
		snprintf(text, TOPDOWN_TEXT_BYTES, "± %.2g", n->error);
}

bool topdown_is_input(const struct topdown_input *i, const char *name, size_t n)
{
	return strlen(i->name) >= n && strncmp(i->name, name, n) == 0 &&
	       (i->name[n] == '\0' || i->name[n] == ':');
}

static double least_running(const struct topdown *t)
{
	double least = 1;
	for (size_t i = 0; i < t->n_inputs; i++)
		if (isfinite(t->input[i].count))
			least = fmin(least, t->input[i].running);
	return least;
}

char *topdown_how(const struct topdown *t)
{
	char part[UNIT_TEXT_BYTES];
	char *text = NULL;
	size_t bytes;
	FILE *f = open_memstream(&text, &bytes);
	if (!f)
		return NULL;
	bool is_scaled = unit_part_text(least_running(t), part);
	if (t->passes > 1)
		fprintf(f, "The events need %d passes, %sand the kernel rotates them. ", t->passes,
			t->is_fewest ? "the fewest for these counters, " : "");
	if (is_scaled)
		fprintf(f,
			"The event with the least time on a counter was counted %s of the time; ± "
			"is half of the 95 %% interval of scaled figures (?: the run was too short "
			"to tell). ",
			part);
	if (t->is_cut)
		fprintf(f,
			"The tree has %d levels, of which %d can be counted at once; -M NAME shows "
			"the tree below a node. ",
			t->deepest, t->levels);
	if (fclose(f) != 0) {
		free(text);
		return NULL;
	}
	if (bytes > 0)
		text[bytes - 1] = '\0'; /* the last blank */
	return text;
}
