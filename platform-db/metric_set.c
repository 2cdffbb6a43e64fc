/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Metrics of a whole platform: resolve their names, and compute their values. A name means a metric
 * before an event, as in perf; only a metric that names itself means the event. A check ensures
 * that no metric needs itself, so evaluation may follow names without a limit.
 */
#include <errno.h>
#include <string.h>
#include <strings.h>

#include "platform-db/draft.h"
#include "platform-db/expression.h"

#define METRIC_DEPTH_MAX 32 /* depth of metrics that need metrics; trees have three levels */

/* --- checking --------------------------------------------------------------------------------- */

/* Limit of names that one metric leads to, each counted as often as it is reached: if each formula
 * names the next metric twice, the number doubles at each level. Evaluation follows the same names. */
#define METRIC_NAMES_MAX 100000

/* Metrics of a platform refer to each other by name; the walk along these references. */
struct walk {
	const struct platform *platform;
	const struct platform_metric *path[METRIC_DEPTH_MAX];
	size_t n;                         /* metrics on the path, the last is being read */
	size_t n_names;                   /* visited so far */
	const struct expression *at;      /* in the first metric on the path: the name at fault */
	const char *missing;              /* a name that is neither an event nor a metric here */
	const struct platform_metric *by; /* the metric whose formula has it */
};

enum { WALK_UNKNOWN = 1, WALK_CIRCLE, WALK_DEEP, WALK_LARGE };

static bool is_known_event(const struct platform *p, const char *name)
{
	uint32_t type;
	uint64_t config;
	const char *generic;
	if (platform_event_find(p, name) || generic_find(name, &type, &config) ||
		software_find(name))
		return true;
	if (p->arch != PLATFORM_ARCH_UNKNOWN && platform_generic_name(name, &generic) == p->arch)
		return true;
	/* A raw code, as in -e r1a8. */
	return name[0] == 'r' && name[1] &&
	       name[1 + strspn(name + 1, "0123456789abcdefABCDEF")] == '\0';
}

static int walk_metric(struct walk *w, const struct platform_metric *m);

static int walk_name(void *userdata, const struct expression *e)
{
	struct walk *w = userdata;
	if (e->kind != EXPRESSION_NAME)
		return 0;
	if (w->n_names++ == METRIC_NAMES_MAX)
		return WALK_LARGE;
	const struct platform_metric *in = w->path[w->n - 1];
	const struct platform_metric *m = platform_metric_find(w->platform, e->name);
	bool is_event = is_known_event(w->platform, e->name);
	if (m == in && is_event)
		return 0;
	int result = m ? walk_metric(w, m) : !is_event && !in->third_party ? WALK_UNKNOWN : 0;
	if (result == WALK_UNKNOWN && !w->missing) {
		w->missing = e->name;
		w->by = in;
	}
	if (result && w->n == 1)
		w->at = e;
	return result;
}

static int walk_metric(struct walk *w, const struct platform_metric *m)
{
	for (size_t i = 0; i < w->n; i++)
		if (w->path[i] == m)
			/* A circle further on is reported for its members. */
			return i == 0 ? WALK_CIRCLE : 0;
	if (w->n == METRIC_DEPTH_MAX)
		return WALK_DEEP;
	w->path[w->n++] = m;
	int result = expression_each(m->expression, walk_name, w);
	w->n--;
	return result;
}

static int check_metric(
	const struct reader *r, const struct platform *p, const struct platform_metric *m)
{
	struct reader there = *r;
	struct walk w = {.platform = p};
	there.file = m->origin.file;
	switch (walk_metric(&w, m)) {
	case 0:
		return 0;
	case WALK_UNKNOWN:
		return reader_wrong(&there, m->origin.line,
			"the metric %s, column %d: %s is neither an event nor a metric of %s",
			w.by->name, w.at->column, w.missing, p->name);
	case WALK_CIRCLE:
		return reader_wrong(&there, m->origin.line,
			"the metric %s, column %d: %s needs %s itself", m->name, w.at->column,
			w.at->name, m->name);
	case WALK_LARGE:
		return reader_wrong(&there, m->origin.line,
			"the metric %s leads to more than %d names", m->name, METRIC_NAMES_MAX);
	default:
		return reader_wrong(&there, m->origin.line,
			"the metric %s needs a chain of more than %d others", m->name,
			METRIC_DEPTH_MAX);
	}
}

/* The groups and metrics that a metric names as `next` must exist: mperfctl prints commands with them. */
static int check_next(
	const struct reader *r, const struct platform *p, const struct platform_metric *m)
{
	struct reader there = *r;
	there.file = m->origin.file;
	for (size_t i = 0; i < m->n_next; i++) {
		bool is_there = false;
		for (size_t k = 0; k < p->n_metrics && !is_there; k++)
			is_there = strcasecmp(p->metric[k].name, m->next[i]) == 0 ||
				   platform_metric_is_in(&p->metric[k], m->next[i]);
		if (!is_there)
			return reader_wrong(&there, m->origin.line,
				"the metric %s, 'next': %s is neither a metric nor a group of %s",
				m->name, m->next[i], p->name);
	}
	return 0;
}

int metrics_check(const struct reader *r, struct platform *p)
{
	struct platform_metric *kept = pool_take(r->pool, p->n_metrics * sizeof(*kept));
	size_t n = 0;
	if (!kept)
		return -ENOMEM;
	for (size_t i = 0; i < p->n_metrics; i++) {
		int error = check_metric(r, p, &p->metric[i]);
		if (!error)
			error = check_next(r, p, &p->metric[i]);
		if (error && !p->metric[i].third_party)
			return error;
		if (!error)
			kept[n++] = p->metric[i];
	}
	p->metric = kept;
	p->n_metrics = n;
	return 0;
}

/* --- values ----------------------------------------------------------------------------------- */

struct evaluation {
	const struct platform *platform;
	const struct platform_metric *metric;
	const struct expression_source *counts;
	const char *missing;
};

int platform_constant(const struct platform *p, const char *name, double *ret_value)
{
	const struct {
		const char *name;
		uint32_t value;
	} constants[] = {
		{"slots", p->slots},
		{"issue_width", p->issue_width},
		{"vector_bits", p->vector_bits},
		{"cache_line", p->n_caches ? p->cache[0].line_bytes : 0},
	};
	for (size_t i = 0; i < sizeof(constants) / sizeof(constants[0]); i++)
		if (strcasecmp(constants[i].name, name) == 0 && constants[i].value) {
			*ret_value = constants[i].value;
			return 0;
		}
	return EXPRESSION_MISSING;
}

static int evaluate(const struct evaluation *from, const struct platform_metric *m,
	double *ret_value, const char **ret_missing);

/* EXPRESSION_UNDEFINED of a nested metric is passed on: no count is missing. */
static int value_of(void *userdata, enum expression_kind kind, const char *name, double *ret_value)
{
	struct evaluation *e = userdata;
	const struct platform_metric *m =
		kind == EXPRESSION_NAME ? platform_metric_find(e->platform, name) : NULL;
	if (m && m != e->metric)
		return evaluate(e, m, ret_value, &e->missing);
	if (kind == EXPRESSION_CONSTANT && platform_constant(e->platform, name, ret_value) == 0)
		return 0;
	int result = e->counts->value ? e->counts->value(e->counts->userdata, kind, name, ret_value)
				      : EXPRESSION_MISSING;
	if (result)
		e->missing = name;
	return result;
}

static int evaluate(const struct evaluation *from, const struct platform_metric *m,
	double *ret_value, const char **ret_missing)
{
	struct evaluation e = {from->platform, m, from->counts, NULL};
	const struct expression_source source = {value_of, &e};
	const struct expression *at;
	int result = expression_value(m->expression, &source, ret_value, &at);
	if (result)
		*ret_missing = e.missing ? e.missing : m->name;
	return result;
}

int platform_metric_value(const struct platform *p, const struct platform_metric *m,
	const struct expression_source *counts, double *ret_value, const char **ret_missing)
{
	const struct evaluation e = {.platform = p, .counts = counts};
	double value;
	int result = evaluate(&e, m, &value, ret_missing);
	if (!result)
		*ret_value = value * m->scale;
	return result;
}
