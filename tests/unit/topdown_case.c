/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Events of passes that take turns count in stretches: each pass its part of each, with a count that
 * varies a little from one stretch to the next.
 */
#include "tests/unit/topdown_case.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/client/answers.h"
#include "tests/unit/test.h"

#define STRETCHES 10
#define STRETCH_NS 20000000ull

void topdown_case_plan(struct topdown_case *c, const char *arch, const char *files,
	const char *hwprobe, const char *top, int levels)
{
	char json[2048];
	memset(c, 0, sizeof(*c));
	snprintf(json, sizeof(json),
		"{\"source\":\"made\",\"verified\":\"no\",\"files\":{%s"
		"\"/sys/devices/system/cpu/online\":\"0\\n\","
		"\"/proc/sys/kernel/arch\":\"%s\\n\"},%s%s%s"
		"\"rules\":[{\"type\":\"hardware\",\"per_us\":1000},{\"type\":\"raw\",\"per_us\":1}"
		"]}",
		files, arch, *hwprobe ? "\"hwprobe\":[{\"harts\":\"0\"," : "", hwprobe,
		*hwprobe ? "}]," : "");
	c->core = core_case_made(json, NULL);
	const struct metric_wish wish = {
		&(char *){(char *)top}, top != NULL, .is_tree = true, .levels = levels};
	const struct metric_harts harts = {
		c->core.cores, metric_plan_platform(c->core.cores), c->core.machine.online};
	c->outcome =
		live_metrics_new(c->core.kernel, &harts, &wish, &c->events, &c->metrics, &c->error);
}

static void count_event(struct topdown_case *c, int e, double value, bool in_turns)
{
	size_t n_passes = metric_plan_n_passes(c->metrics->plan);
	struct counter_value *v = &c->value[e];
	uint64_t parts = in_turns ? n_passes : 1;
	v->enabled_ns = STRETCHES * STRETCH_NS;
	v->running_ns = value < 0 ? 0 : v->enabled_ns / parts;
	v->value = value < 0 ? 0 : (uint64_t)(value / (double)parts);
	v->scaled = value < 0 ? 0 : value;
}

/* Stretches of which each has a tenth, and the odd ones a little more. */
static void read_stretches(struct topdown_case *c)
{
	struct counter_value whole[EVENTS_MAX];
	memcpy(whole, c->value, sizeof(whole));
	for (uint64_t s = 1; s <= STRETCHES; s++) {
		for (int e = 0; e < c->events.n_events; e++) {
			uint64_t each = whole[e].value / STRETCHES;
			uint64_t extra =
				s == STRETCHES ? 0 : s % 2 * (uint64_t)(e + 1) * each / 100;
			c->value[e].value = s == STRETCHES ? whole[e].value : s * each + extra;
			c->value[e].enabled_ns = whole[e].enabled_ns / STRETCHES * s;
			c->value[e].running_ns = whole[e].running_ns / STRETCHES * s;
		}
		counts_read(c->jackknife, &c->counter, s * STRETCH_NS, 0);
	}
	memcpy(c->value, whole, sizeof(whole));
}

/* --- tables ----------------------------------------------------------------------------------- */

struct sink {
	struct replies *replies;
	const char *table;
};

static int add(void *replies, const Mperf__Answer *a)
{
	return replies_add(replies, a);
}

static int take_columns(void *userdata, const struct answer_column *column, size_t n)
{
	const struct sink *s = userdata;
	struct answers_column made[ANSWERS_COLUMNS_MAX];
	for (size_t i = 0; i < n; i++)
		made[i] = (struct answers_column){column[i].name, column[i].title, column[i].unit};
	return answers_table(add, s->replies, s->table, made, n);
}

static int take_row(void *userdata, const struct answer_value *value, size_t n)
{
	const struct sink *s = userdata;
	Mperf__Value made[ANSWERS_COLUMNS_MAX];
	for (size_t i = 0; i < n; i++)
		made[i] = value[i].kind == ANSWER_TEXT      ? answers_text(value[i].text)
			  : value[i].kind == ANSWER_INTEGER ? answers_integer(value[i].integer)
			  : value[i].kind == ANSWER_REAL    ? answers_real(value[i].real)
							    : answers_absent();
	return answers_row(add, s->replies, made, n);
}

static void take_tables(struct topdown_case *c)
{
	struct counts counts;
	struct metric_values values;
	struct sink sink = {&c->replies, "core"};
	const struct answer answer = {.columns = take_columns, .row = take_row, .userdata = &sink};
	const struct platform *p = metric_plan_platform(c->core.cores);
	const struct topdown_counted counted = {c->metrics, &counts, &values, p->title, "0"};
	counts_take(&counts, &c->core.machine, &c->counter, c->last);
	counts.jackknife = c->jackknife;
	ck_assert_int_eq(live_metrics_values(c->metrics, &counts, &values), 0);
	const struct topdown_tree tree = topdown_of_counted(&counted);
	ck_assert_int_eq(topdown_send_cores(&tree, 1, &answer), 0);
	sink.table = "node";
	ck_assert_int_eq(topdown_send_nodes(&tree, 1, &answer), 0);
	sink.table = "event";
	ck_assert_int_eq(topdown_send_events(&tree, 1, &answer), 0);
	metric_values_clear(&values);
	ck_assert_int_eq(topdown_read(&c->tree, &c->replies, 0), 0);
}

void topdown_case_count(
	struct topdown_case *c, const struct topdown_count *count, size_t n, bool in_turns)
{
	ck_assert_msg(c->outcome == 0, "%d: %s", c->outcome, c->error.text);
	c->counter = (struct counter){.terms = {.kernel = c->core.kernel, .cores = c->core.cores},
		.events = c->events,
		.value = c->value};
	for (int e = 0; e < c->events.n_events; e++) {
		c->value[e] = (struct counter_value){.error = ENOENT};
		for (size_t i = 0; i < n; i++)
			if (strcmp(count[i].event, c->events.event[e].name) == 0) {
				c->value[e].error = 0;
				count_event(c, e, count[i].value, in_turns);
			}
	}
	ck_assert_int_eq(jackknife_new((size_t)c->events.n_events, 0, &c->jackknife), 0);
	read_stretches(c);
	take_tables(c);
}

const struct topdown_node *topdown_case_node(
	const struct topdown_case *c, const char *name, const char *parent)
{
	for (size_t i = 0; i < c->tree.n_nodes; i++)
		if (strcmp(c->tree.node[i].name, name) == 0 &&
			strcmp(c->tree.node[i].parent, parent) == 0)
			return &c->tree.node[i];
	return NULL;
}

void topdown_case_end(struct topdown_case *c)
{
	topdown_clear(&c->tree);
	replies_clear(&c->replies);
	live_metrics_free(c->metrics);
	jackknife_free(c->jackknife);
	core_case_end(&c->core);
}
