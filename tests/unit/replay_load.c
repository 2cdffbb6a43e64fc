/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Reads a machine of tests/platforms. Strict on purpose: a rule with a misspelt key would fit
 * everything, and the tests that lean on it would test another machine than its name says.
 */

#include <errno.h>
#include <jansson.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/memory.h"
#include "tests/unit/replay_part.h"

DEFINE_CLEANUP(struct replay *, replay_free)

struct loading {
	struct replay *replay;
	const char *where; /* of the file or the text */
	struct replay_error *error;
};

__attribute__((format(printf, 2, 3))) static int fail(
	const struct loading *l, const char *format, ...)
{
	int n = snprintf(l->error->text, sizeof(l->error->text), "%s: ", l->where);
	va_list list;
	va_start(list, format);
	vsnprintf(l->error->text + n, sizeof(l->error->text) - (size_t)n, format, list);
	va_end(list);
	return -EINVAL;
}

static const struct {
	const char *name;
	int error;
} errors[] = {
	{"EACCES", EACCES},
	{"EPERM", EPERM},
	{"EINVAL", EINVAL},
	{"ENOENT", ENOENT},
	{"EOPNOTSUPP", EOPNOTSUPP},
	{"EBUSY", EBUSY},
	{"ENOSPC", ENOSPC},
	{"ENODEV", ENODEV},
	{"E2BIG", E2BIG},
	{"ENOMEM", ENOMEM},
};

static const struct {
	const char *name;
	int type;
} types[] = {
	{"hardware", PERF_TYPE_HARDWARE},
	{"software", PERF_TYPE_SOFTWARE},
	{"tracepoint", PERF_TYPE_TRACEPOINT},
	{"cache", PERF_TYPE_HW_CACHE},
	{"raw", PERF_TYPE_RAW},
};

/* A number, or text of one ("0x22"). */
static int take_number(const struct loading *l, const char *key, const json_t *v, uint64_t *ret)
{
	if (json_is_integer(v) && json_integer_value(v) >= 0) {
		*ret = (uint64_t)json_integer_value(v);
		return 0;
	}
	char *end;
	const char *text = json_string_value(v);
	if (!text || !*text || *text == '-' || *text == ' ')
		return fail(l, "%s is no number", key);
	errno = 0;
	*ret = strtoull(text, &end, 0);
	return errno || *end ? fail(l, "%s is no number: %s", key, text) : 0;
}

/* The type of a PMU beside the static ones, as sysfs tells it. */
static bool is_pmu_type(const json_t *v)
{
	return json_is_integer(v) && json_integer_value(v) >= PERF_TYPE_MAX &&
	       json_integer_value(v) <= INT_MAX;
}

static int take_type(const struct loading *l, const json_t *v, struct replay_rule *rule)
{
	const char *text = json_string_value(v);
	if (is_pmu_type(v)) {
		rule->type = (int)json_integer_value(v);
		return 0;
	}
	for (size_t i = 0; text && i < sizeof(types) / sizeof(types[0]); i++)
		if (strcmp(types[i].name, text) == 0) {
			rule->type = types[i].type;
			return 0;
		}
	return fail(l, "unknown type of event: %s", text ? text : "(not a text)");
}

static int take_error(const struct loading *l, const json_t *v, struct replay_rule *rule)
{
	const char *text = json_string_value(v);
	for (size_t i = 0; text && i < sizeof(errors) / sizeof(errors[0]); i++)
		if (strcmp(errors[i].name, text) == 0) {
			rule->error = errors[i].error;
			return 0;
		}
	return fail(l, "unknown errno: %s", text ? text : "(not a text)");
}

static int take_harts(const struct loading *l, const json_t *v, struct replay_rule *rule)
{
	const char *text = json_string_value(v);
	rule->any_hart = false;
	if (!text || hart_set_parse(text, &rule->harts) != 0)
		return fail(l, "harts is no list of harts");
	return 0;
}

static int take_flag(const struct loading *l, const char *key, const json_t *v, int *ret)
{
	if (!json_is_boolean(v))
		return fail(l, "%s is neither true nor false", key);
	*ret = json_is_true(v);
	return 0;
}

static int *rule_flag(struct replay_rule *rule, const char *key)
{
	const struct {
		const char *key;
		int *flag;
	} flags[] = {
		{"sampling", &rule->sampling},
		{"exclude_kernel", &rule->exclude_kernel},
		{"leader", &rule->leader},
		{"inherit", &rule->inherit},
		{"sample_read", &rule->sample_read},
		{"system_wide", &rule->system_wide},
		{"cgroup", &rule->cgroup},
		{"build_id", &rule->build_id},
		{"ksymbol", &rule->ksymbol},
		{"read_lost", &rule->read_lost},
	};
	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++)
		if (strcmp(flags[i].key, key) == 0)
			return flags[i].flag;
	return NULL;
}

static int take_rule_key(
	const struct loading *l, const char *key, json_t *v, struct replay_rule *rule)
{
	int flag = 0;
	int *condition = rule_flag(rule, key);
	if (condition)
		return take_flag(l, key, v, condition);
	if (strcmp(key, "type") == 0)
		return take_type(l, v, rule);
	if (strcmp(key, "errno") == 0)
		return take_error(l, v, rule);
	if (strcmp(key, "harts") == 0)
		return take_harts(l, v, rule);
	if (strcmp(key, "config") == 0) {
		rule->any_config = false;
		return take_number(l, key, v, &rule->config);
	}
	if (strcmp(key, "per_us") == 0) {
		rule->per_us = json_number_value(v);
		return json_is_number(v) && rule->per_us >= 0 ? 0 : fail(l, "per_us is no rate");
	}
	if (strcmp(key, "fires") == 0 || strcmp(key, "starves") == 0) {
		int r = take_flag(l, key, v, &flag);
		*(*key == 'f' ? &rule->fires : &rule->starves) = flag;
		return r;
	}
	if (strcmp(key, "note") == 0)
		return json_is_string(v) ? 0 : fail(l, "note is no text");
	return fail(l, "unknown key in a rule: %s", key);
}

static int take_rule(const struct loading *l, json_t *object)
{
	struct replay_rule rule = {
		.type = -1,
		.any_config = true,
		.any_hart = true,
		.sampling = -1,
		.exclude_kernel = -1,
		.leader = -1,
		.inherit = -1,
		.sample_read = -1,
		.system_wide = -1,
		.cgroup = -1,
		.build_id = -1,
		.ksymbol = -1,
		.read_lost = -1,
	};
	const char *key;
	json_t *value;
	if (!json_is_object(object))
		return fail(l, "a rule is no object");
	if (l->replay->n_rules == REPLAY_RULES_MAX)
		return fail(l, "more than %d rules", REPLAY_RULES_MAX);
	json_object_foreach(object, key, value)
	{
		int r = take_rule_key(l, key, value, &rule);
		if (r < 0)
			return r;
	}
	bool acts = json_object_get(object, "fires") || json_object_get(object, "per_us") ||
		    rule.starves;
	if ((rule.error != 0) == acts)
		return fail(l, "a rule must either refuse (errno) or count (per_us, fires)");
	l->replay->rule[l->replay->n_rules++] = rule;
	return 0;
}

static int take_rules(const struct loading *l, json_t *array)
{
	size_t i;
	json_t *rule;
	if (!json_is_array(array))
		return fail(l, "rules is no array");
	json_array_foreach(array, i, rule)
	{
		int r = take_rule(l, rule);
		if (r < 0)
			return r;
	}
	return 0;
}

static int take_hwprobe(const struct loading *l, json_t *object)
{
	struct replay_hwprobe h = {0};
	const char *key;
	json_t *value;
	if (!json_is_object(object))
		return fail(l, "a row of hwprobe is no object");
	if (l->replay->n_hwprobes == REPLAY_HWPROBES_MAX)
		return fail(l, "more than %d kinds of hart", REPLAY_HWPROBES_MAX);
	json_object_foreach(object, key, value)
	{
		uint64_t *number = strcmp(key, "mvendorid") == 0 ? &h.mvendorid
				   : strcmp(key, "marchid") == 0 ? &h.marchid
				   : strcmp(key, "mimpid") == 0  ? &h.mimpid
								 : NULL;
		const char *harts = json_string_value(value);
		if (number && take_number(l, key, value, number) != 0)
			return -EINVAL;
		if (!number && strcmp(key, "harts") != 0)
			return fail(l, "unknown key in a row of hwprobe: %s", key);
		if (!number && (!harts || hart_set_parse(harts, &h.harts) != 0))
			return fail(l, "harts is no list of harts");
	}
	l->replay->hwprobe[l->replay->n_hwprobes++] = h;
	return 0;
}

static int take_hwprobes(const struct loading *l, json_t *array)
{
	size_t i;
	json_t *row;
	if (!json_is_array(array))
		return fail(l, "hwprobe is no array");
	json_array_foreach(array, i, row)
	{
		int r = take_hwprobe(l, row);
		if (r < 0)
			return r;
	}
	return 0;
}

static int take_files(const struct loading *l, json_t *object)
{
	const char *path;
	json_t *text;
	if (!json_is_object(object))
		return fail(l, "files is no object");
	json_object_foreach(object, path, text)
	{
		if (path[0] != '/')
			return fail(l, "a file's path does not begin with /: %s", path);
		if (!json_is_string(text))
			return fail(l, "the file %s is no text", path);
		if (l->replay->n_files == REPLAY_FILES_MAX)
			return fail(l, "more than %d files", REPLAY_FILES_MAX);
		replay_set_text(l->replay, path, json_string_value(text));
	}
	return 0;
}

static int take_costs(const struct loading *l, json_t *object)
{
	struct replay *r = l->replay;
	const char *key;
	json_t *value;
	if (!json_is_object(object))
		return fail(l, "costs is no object");
	json_object_foreach(object, key, value)
	{
		uint64_t *number = strcmp(key, "switch_ns") == 0    ? &r->cost.switch_ns
				   : strcmp(key, "sample_ns") == 0  ? &r->cost.sample_ns
				   : strcmp(key, "record_ns") == 0  ? &r->cost.record_ns
				   : strcmp(key, "counter_ns") == 0 ? &r->cost.counter_ns
								    : NULL;
		if (!number)
			return fail(l, "unknown key in costs: %s", key);
		if (take_number(l, key, value, number) != 0)
			return -EINVAL;
	}
	return 0;
}

static int take_text(const struct loading *l, const char *key, const json_t *v, char **ret)
{
	const char *text = json_string_value(v);
	if (!text || !*text)
		return fail(l, "%s is no text", key);
	*ret = strdup(text);
	return *ret ? 0 : -ENOMEM;
}

static int take_key(const struct loading *l, const char *key, json_t *v)
{
	struct replay *r = l->replay;
	uint64_t number = 0;
	if (strcmp(key, "source") == 0)
		return take_text(l, key, v, &r->source);
	if (strcmp(key, "verified") == 0)
		return take_text(l, key, v, &r->verified);
	if (strcmp(key, "files") == 0)
		return take_files(l, v);
	if (strcmp(key, "hwprobe") == 0)
		return take_hwprobes(l, v);
	if (strcmp(key, "rules") == 0)
		return take_rules(l, v);
	if (strcmp(key, "costs") == 0)
		return take_costs(l, v);
	if (strcmp(key, "descriptors") == 0 || strcmp(key, "locked_kb") == 0) {
		int outcome = take_number(l, key, v, &number);
		if (outcome == 0 && number > UINT32_MAX)
			outcome = fail(l, "%s is out of range", key);
		if (*key == 'd')
			r->descriptors = (unsigned)number;
		else
			r->locked_bytes = number << 10;
		return outcome;
	}
	return fail(l, "unknown key: %s", key);
}

static int load(
	json_t *root, const char *where, struct replay **ret_replay, struct replay_error *ret_error)
{
	_cleanup_(replay_freep) struct replay *r = calloc(1, sizeof(*r));
	const struct loading l = {.replay = r, .where = where, .error = ret_error};
	const char *key;
	json_t *value;
	if (!r)
		return -ENOMEM;
	r->descriptors = UINT32_MAX;
	r->locked_bytes = UINT64_MAX / 2;
	r->now_ns = 1000000000u;
	r->tick_hz = 250;
	r->cost.switch_ns = 2000;
	if (!json_is_object(root))
		return fail(&l, "a machine is an object");
	json_object_foreach(root, key, value)
	{
		int outcome = take_key(&l, key, value);
		if (outcome < 0)
			return outcome;
	}
	if (!r->source || !r->verified)
		return fail(&l, "source and verified are not optional");
	if (!replay_text(r, "/sys/devices/system/cpu/online"))
		return fail(&l, "no harts: files lacks /sys/devices/system/cpu/online");
	*ret_replay = TAKE_PTR(r);
	return 0;
}

static int parsed(json_t *root, const json_error_t *e, const char *where,
	struct replay **ret_replay, struct replay_error *ret_error)
{
	_cleanup_(json_decrefp) json_t *owned = root;
	if (owned)
		return load(owned, where, ret_replay, ret_error);
	snprintf(ret_error->text, sizeof(ret_error->text), "%s:%d: %s", where, e->line, e->text);
	return -EINVAL;
}

int replay_load(const char *path, struct replay **ret_replay, struct replay_error *ret_error)
{
	json_error_t e;
	return parsed(
		json_load_file(path, JSON_REJECT_DUPLICATES, &e), &e, path, ret_replay, ret_error);
}

int replay_parse(const char *json, struct replay **ret_replay, struct replay_error *ret_error)
{
	json_error_t e;
	return parsed(
		json_loads(json, JSON_REJECT_DUPLICATES, &e), &e, "text", ret_replay, ret_error);
}

const char *replay_source(const struct replay *r)
{
	return r->source;
}

const char *replay_verified(const struct replay *r)
{
	return r->verified;
}
