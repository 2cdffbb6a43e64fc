/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * The event grammar against a machine of our own making, whose PMU has fields that are split, and
 * aliases that want a value. More than half of it is what users get wrong.
 */
#include <errno.h>

#include "daemon/pmu/event/event.h"
#include "tests/unit/test.h"
#include "tests/unit/tree.h"

#define PMU "/sys/bus/event_source/devices/cpu"
#define TRACE "/sys/kernel/tracing/events"

static const struct tree_file files[] = {
	{PMU "/type", "4\n", 0},
	{PMU "/format/event", "config:0-7,32-35\n", 0},
	{PMU "/format/umask", "config:8-15\n", 0},
	{PMU "/format/edge", "config:18\n", 0},
	{PMU "/format/ldlat", "config1:0-15\n", 0},
	{PMU "/format/whole", "config2:0-63\n", 0},
	{PMU "/format/future", "config3:0-7\n", 0},
	{PMU "/format/broken", "config:9-3\n", 0},
	{PMU "/format/overlap", "config:0-3,2-5\n", 0},
	{PMU "/format/beyond", "config:60-64\n", 0},
	{PMU "/format/void", "config:\n", 0},
	{PMU "/events/mem-stores", "event=0xd0,umask=0x82\n", 0},
	{PMU "/events/mem-loads", "event=0xcd,umask=0x1,ldlat=?\n", 0},
	{PMU "/events/joules", "event=2\n", 0},
	{PMU "/events/joules.scale", "0.5\n", 0},
	{PMU "/events/odd", "event=0x1,nonsense=2\n", 0},
	{PMU "/events/loop", "loop\n", 0},
	{"/sys/bus/event_source/devices/bad/type", "many\n", 0},
	{"/sys/bus/event_source/devices/secret", "/etc\n", 0},
	{TRACE "/sched/sched_switch/id", "316\n", 0},
	{TRACE "/sched/sched_wakeup/id", "319\n", 0},
	{TRACE "/sched/locked/id", NULL, -EACCES},
	{TRACE "/k/uk/id", "9\n", 0},
};
static struct tree tree = TREE(files);
static const struct kernel kernel = {
	.read_text = tree_read_text, .list = tree_list, .userdata = &tree};

static struct event_list parse_ok(const char *text)
{
	struct event_list list = {0};
	struct event_error error = {""};
	int r = event_parse(&kernel, text, &list, &error);
	ck_assert_msg(r == 0, "%s: %d, %s", text, r, error.text);
	return list;
}

static struct event one(const char *text)
{
	struct event_list list = parse_ok(text);
	ck_assert_int_eq(list.n_events, 1);
	ck_assert_str_eq(list.event[0].name, text);
	return list.event[0];
}

/* The parse must fail with that outcome, a text that has the words, and the list as it was. */
static void refuse_with(const struct kernel *k, const char *text, int outcome, const char *words)
{
	struct event_list list = {.n_events = 1, .n_groups = 1}, before = list;
	struct event_error error = {""};
	int r = event_parse(k, text, &list, &error);
	ck_assert_msg(r == outcome, "'%s': %d instead of %d, %s", text, r, outcome, error.text);
	ck_assert_msg(strstr(error.text, words), "'%s' is not in: %s", words, error.text);
	ck_assert(memcmp(&list, &before, sizeof(list)) == 0);
}

static void refuse(const char *text, int outcome, const char *words)
{
	refuse_with(&kernel, text, outcome, words);
}

TEST(generic_names_and_aliases_mean_the_same)
{
	struct event e = one("cycles");
	ck_assert_uint_eq(e.type, PERF_TYPE_HARDWARE);
	ck_assert_uint_eq(e.config, PERF_COUNT_HW_CPU_CYCLES);
	ck_assert_str_eq(e.pmu, "hardware");
	ck_assert_int_eq(e.group, -1);
	ck_assert(!e.exclude_user && !e.exclude_kernel && !e.exclude_hv);
	ck_assert_uint_eq(one("cpu-cycles").config, PERF_COUNT_HW_CPU_CYCLES);
	ck_assert_uint_eq(one("branch-instructions").config, one("branches").config);
	ck_assert_uint_eq(one("cs").config, PERF_COUNT_SW_CONTEXT_SWITCHES);
	ck_assert_uint_eq(one("faults").type, PERF_TYPE_SOFTWARE);
	ck_assert_uint_eq(one("migrations").config, PERF_COUNT_SW_CPU_MIGRATIONS);
}

TEST(every_name_of_the_catalogue_parses_to_itself)
{
	for (size_t i = 0; i < n_event_names; i++) {
		struct event e = one(event_names[i].name);
		ck_assert_uint_eq(e.type, event_names[i].type);
		ck_assert_uint_eq(e.config, event_names[i].config);
		ck_assert_str_eq(e.pmu, event_names[i].topic);
		if (event_names[i].alias)
			ck_assert_uint_eq(one(event_names[i].alias).config, event_names[i].config);
		ck_assert_uint_gt(strlen(event_names[i].says), 0);
	}
}

TEST(cache_events_are_composed_of_three_words)
{
	const uint64_t miss = (uint64_t)PERF_COUNT_HW_CACHE_RESULT_MISS << 16;
	ck_assert_uint_eq(one("L1-dcache-load-misses").config, PERF_COUNT_HW_CACHE_L1D | miss);
	ck_assert_uint_eq(one("l1d-misses-loads").config, PERF_COUNT_HW_CACHE_L1D | miss);
	ck_assert_uint_eq(one("L1-d").config, PERF_COUNT_HW_CACHE_L1D);
	ck_assert_uint_eq(one("Data-TLB-write-miss").config,
		PERF_COUNT_HW_CACHE_DTLB | PERF_COUNT_HW_CACHE_OP_WRITE << 8 | miss);
	ck_assert_uint_eq(one("LLC-speculative-read-refs").config,
		PERF_COUNT_HW_CACHE_LL | PERF_COUNT_HW_CACHE_OP_PREFETCH << 8);
	ck_assert_uint_eq(one("bpc-misses").config, PERF_COUNT_HW_CACHE_BPU | miss);
}

TEST(cache_events_that_no_core_has_are_unknown)
{
	refuse("iTLB-stores", EVENT_UNKNOWN, "iTLB-stores");
	refuse("L1-icache-store-misses", EVENT_UNKNOWN, "unknown event");
	refuse("L1-dcache-", EVENT_UNKNOWN, "unknown event");
	refuse("L1-dcache-load-load", EVENT_UNKNOWN, "unknown event");
	refuse("L1-dcache-load-misses-refs", EVENT_UNKNOWN, "unknown event");
	refuse("L1-dcacheloads", EVENT_UNKNOWN, "did you mean 'L1-dcache-loads'?");
}

TEST(raw_events_are_hexadecimal)
{
	ck_assert_uint_eq(one("r22").config, 0x22);
	ck_assert_uint_eq(one("r0x1aB").config, 0x1ab);
	ck_assert_uint_eq(one("rffffffffffffffff").config, UINT64_MAX);
	ck_assert_uint_eq(one("r22:u").type, PERF_TYPE_RAW);
	ck_assert_str_eq(one("r22").pmu, "raw");
	refuse("r", EVENT_UNKNOWN, "unknown event 'r'");
	refuse("r1fffffffffffffffff", EVENT_UNKNOWN, "unknown event");
	refuse("rxyz", EVENT_UNKNOWN, "unknown event");
	refuse("r0x0x1", EVENT_UNKNOWN, "unknown event");
	refuse("r-1", EVENT_UNKNOWN, "unknown event");
}

TEST(modifiers_exclude_the_modes_not_named)
{
	struct event e = one("cycles:u");
	ck_assert(!e.exclude_user && e.exclude_kernel && e.exclude_hv);
	e = one("cycles:kh");
	ck_assert(e.exclude_user && !e.exclude_kernel && !e.exclude_hv);
	e = one("cycles:ukhu");
	ck_assert(!e.exclude_user && !e.exclude_kernel && !e.exclude_hv);
	e = one("cycles:upp");
	ck_assert(e.exclude_kernel && e.precise == 2);
	e = one("cycles:G");
	ck_assert(e.exclude_host && !e.exclude_guest && !e.exclude_kernel);
	e = one("cycles:GH");
	ck_assert(!e.exclude_host && !e.exclude_guest);
}

TEST(wrong_modifiers_are_refused_at_their_column)
{
	refuse("cycles:x", EVENT_MALFORMED, "column 8: 'x'");
	refuse("cycles:", EVENT_MALFORMED, "column 8: modifiers are missing");
	refuse("cycles:pppp", EVENT_MALFORMED, "column 11: 'p'");
	refuse("cycles:u:k", EVENT_MALFORMED, "column 9: ':'");
	refuse("cpu/event=1/q", EVENT_MALFORMED, "column 13: 'q'");
	refuse("cpu/event=1/:", EVENT_MALFORMED, "modifiers are missing");
	refuse("sched:sched_switch:z", EVENT_MALFORMED, "column 20: 'z'");
}

TEST(exclusions_reach_the_attributes)
{
	struct perf_event_attr attr = {0};
	struct event e = one("cpu/config=1,config1=2,config2=3/kppH");
	event_to_attr(&e, &attr);
	ck_assert_uint_eq(attr.type, 4);
	ck_assert_uint_eq(attr.config, 1);
	ck_assert_uint_eq(attr.config1, 2);
	ck_assert_uint_eq(attr.config2, 3);
	ck_assert(attr.exclude_user && !attr.exclude_kernel && attr.exclude_hv);
	ck_assert(!attr.exclude_host && attr.exclude_guest);
	ck_assert_uint_eq(attr.precise_ip, 2);
}

TEST(fields_go_to_the_bits_of_their_format)
{
	struct event e = one("cpu/event=0x7ff,umask=2,edge/");
	ck_assert_uint_eq(e.config, 0xffull | 2ull << 8 | 1ull << 18 | 7ull << 32);
	ck_assert_uint_eq(e.type, 4);
	ck_assert_str_eq(e.pmu, "cpu");
	e = one("cpu/whole=0xffffffffffffffff,ldlat=30/");
	ck_assert_uint_eq(e.config2, UINT64_MAX);
	ck_assert_uint_eq(e.config1, 30);
	e = one("cpu/config=0xffff,umask=0/u");
	ck_assert_uint_eq(e.config, 0xff);
	ck_assert(e.exclude_kernel);
}

TEST(aliases_expand_to_their_fields)
{
	ck_assert_uint_eq(one("cpu/mem-stores/").config, 0x82d0);
	struct event e = one("cpu/mem-loads,ldlat=3/:u");
	ck_assert_uint_eq(e.config, 0x1cd);
	ck_assert_uint_eq(e.config1, 3);
	ck_assert(e.exclude_kernel);
	ck_assert_uint_eq(one("cpu/mem-stores,umask=1/").config, 0x1d0);
}

TEST(wrong_fields_are_refused)
{
	refuse("cpu/event=0x1000/", EVENT_MALFORMED, "0x1000 does not fit into the 12 bits");
	refuse("cpu/edge=2/", EVENT_MALFORMED, "does not fit into the 1 bits");
	refuse("cpu/event=/", EVENT_MALFORMED, "column 11: '' is not a number");
	refuse("cpu/event=-1/", EVENT_MALFORMED, "'-1' is not a number");
	refuse("cpu/event=0x/", EVENT_MALFORMED, "'0x' is not a number");
	refuse("cpu/event=18446744073709551616/", EVENT_MALFORMED, "is not a number");
	refuse("cpu/config=0x10000000000000000/", EVENT_MALFORMED, "is not a number");
	refuse("cpu/evnet=1/", EVENT_UNKNOWN, "did you mean 'event'?");
	refuse("cpu/mem-store/", EVENT_UNKNOWN, "did you mean 'mem-stores'?");
	refuse("cpu/conifg1=1/", EVENT_UNKNOWN, "did you mean 'config1'?");
	refuse("cpu/event=1,/", EVENT_MALFORMED, "column 13: a field is missing");
	refuse("cpu/,event=1/", EVENT_MALFORMED, "column 5: a field's name is missing");
	refuse("cpu/=1/", EVENT_MALFORMED, "name is missing");
	refuse("cpu/mem-loads/", EVENT_MALFORMED, "add ',ldlat=");
	refuse("cpu/../type/", EVENT_MALFORMED, "a third '/'");
	refuse("cpu/..=1/", EVENT_UNKNOWN, "has no field or event '..'");
	refuse("cpu/joules.scale/", EVENT_UNKNOWN, "joules.scale");
}

TEST(what_the_kernel_describes_oddly_is_refused)
{
	refuse("cpu/future=1/", EVENT_UNKNOWN, "'config3:0-7'");
	refuse("cpu/broken=1/", EVENT_UNKNOWN, "does not know");
	refuse("cpu/overlap=1/", EVENT_UNKNOWN, "does not know");
	refuse("cpu/beyond=1/", EVENT_UNKNOWN, "does not know");
	refuse("cpu/void=1/", EVENT_UNKNOWN, "does not know");
	refuse("cpu/odd/", EVENT_UNKNOWN, "column 5: PMU 'cpu' has no field or event 'nonsense'");
	refuse("cpu/loop/", EVENT_UNKNOWN, "has no field or event 'loop'");
	refuse("bad/event=1/", EVENT_UNKNOWN, "no PMU 'bad'");
}

TEST(unknown_pmus_are_refused_with_a_guess)
{
	refuse("cpi/event=1/", EVENT_UNKNOWN, "did you mean 'cpu'?");
	refuse("uncore_imc/event=1/", EVENT_UNKNOWN, "no PMU 'uncore_imc'");
	refuse("/event=1/", EVENT_MALFORMED, "column 1: a PMU's name is missing");
	refuse("../event=1/", EVENT_UNKNOWN, "no PMU '..'");
	refuse("cpu//", EVENT_MALFORMED, "column 5");
	refuse("cpu/event=1", EVENT_MALFORMED, "column 4: this '/' has no closing");
}

TEST(tracepoints_have_the_id_of_tracefs)
{
	struct event e = one("sched:sched_switch");
	ck_assert_uint_eq(e.type, PERF_TYPE_TRACEPOINT);
	ck_assert_uint_eq(e.config, 316);
	ck_assert_str_eq(e.pmu, "tracepoint");
	ck_assert(one("sched:sched_wakeup:u").exclude_kernel);
}

TEST(wrong_tracepoints_say_what_is_wrong)
{
	refuse("sched:sched_swich", EVENT_UNKNOWN, "did you mean 'sched_switch'?");
	refuse("shced:sched_switch", EVENT_UNKNOWN, "did you mean 'sched'?");
	refuse("nothing:like_it", EVENT_UNKNOWN, "no tracepoint 'nothing:like_it'");
	refuse("sched:", EVENT_MALFORMED, "column 7: a name is missing");
	refuse(":sched_switch", EVENT_MALFORMED, "column 1: a name is missing");
	refuse("sched:locked", EVENT_UNKNOWN, "may not read tracefs");
	refuse("sched:*", EVENT_UNKNOWN, "no tracepoint 'sched:*'");
	refuse("..:sched_switch", EVENT_UNKNOWN, "no tracepoint");
}

TEST(a_machine_without_tracefs_is_told_to_mount_it)
{
	static const struct tree_file bare[] = {{"/sys/kernel/tracing", NULL, -ENOENT}};
	struct tree empty = TREE(bare);
	struct kernel k = kernel;
	k.userdata = &empty;
	refuse_with(&k, "sched:sched_switch", EVENT_UNKNOWN, "mount -t tracefs");
}

TEST(lists_and_groups_keep_their_order)
{
	struct event_list list =
		parse_ok("cpu-clock,{cycles,instructions:k}:u,{r22},cpu/event=1,edge/");
	ck_assert_int_eq(list.n_events, 5);
	ck_assert_int_eq(list.n_groups, 2);
	ck_assert_int_eq(list.event[0].group, -1);
	ck_assert_int_eq(list.event[1].group, 0);
	ck_assert_int_eq(list.event[2].group, 0);
	ck_assert_int_eq(list.event[3].group, 1);
	ck_assert_int_eq(list.event[4].group, -1);
	ck_assert_str_eq(list.event[1].name, "cycles:u");
	ck_assert_str_eq(list.event[2].name, "instructions:ku");
	ck_assert_str_eq(list.event[3].name, "r22");
	ck_assert(list.event[1].exclude_kernel && !list.event[1].exclude_user);
	ck_assert(!list.event[2].exclude_kernel && !list.event[2].exclude_user);
	ck_assert(list.event[2].exclude_hv);
	ck_assert(!list.event[0].exclude_kernel);
}

TEST(names_with_a_groups_modifiers_parse_again)
{
	struct event_list list =
		parse_ok("{cpu/event=1/,cpu/event=2/k,sched:sched_switch,sched:sched_wakeup:k}:u");
	for (int i = 0; i < list.n_events; i++) {
		struct event again = one(list.event[i].name);
		ck_assert_uint_eq(again.config, list.event[i].config);
		ck_assert(again.exclude_user == list.event[i].exclude_user);
		ck_assert(again.exclude_kernel == list.event[i].exclude_kernel);
	}
	ck_assert_str_eq(list.event[0].name, "cpu/event=1/:u");
	ck_assert_str_eq(list.event[3].name, "sched:sched_wakeup:ku");
}

TEST(a_second_argument_is_appended)
{
	struct event_list list = parse_ok("{cycles,instructions}");
	struct event_error error;
	ck_assert_int_eq(event_parse(&kernel, "{branches,r1},faults", &list, &error), 0);
	ck_assert_int_eq(list.n_events, 5);
	ck_assert_int_eq(list.event[3].group, 1);
	ck_assert_int_eq(list.n_groups, 2);
}

TEST(unbalanced_lists_are_refused_at_their_column)
{
	refuse("", EVENT_MALFORMED, "column 1: an event is missing");
	refuse(",cycles", EVENT_MALFORMED, "column 1: an event is missing");
	refuse("cycles,", EVENT_MALFORMED, "column 8: an event is missing");
	refuse("cycles,,faults", EVENT_MALFORMED, "column 8: an event is missing");
	refuse("{}", EVENT_MALFORMED, "column 1: a group needs");
	refuse("{cycles", EVENT_MALFORMED, "column 1: this '{' has no '}'");
	refuse("{cycles,", EVENT_MALFORMED, "column 1: this '{' has no '}'");
	refuse("{", EVENT_MALFORMED, "this '{' has no '}'");
	refuse("cycles}", EVENT_MALFORMED, "column 7: this '}' closes no group");
	refuse("{cycles,}", EVENT_MALFORMED, "column 9: an event is missing");
	refuse("{a{b}}", EVENT_UNKNOWN, "unknown event 'a'");
	refuse("{cycles,{faults}}", EVENT_MALFORMED, "column 9: a group cannot hold a group");
	refuse("{cycles{faults}}", EVENT_MALFORMED, "this '{' has no '}'");
	refuse("{cycles}u", EVENT_MALFORMED, "column 9: a ',' is missing");
	refuse("{cycles}:", EVENT_MALFORMED, "column 10: modifiers are missing");
	refuse("{cycles}:x", EVENT_MALFORMED, "column 10: 'x'");
	refuse("cycles, faults", EVENT_MALFORMED, "column 8: no space");
}

TEST(unknown_names_are_answered_with_a_guess)
{
	refuse("cylces", EVENT_UNKNOWN, "column 1: unknown event 'cylces', did you mean 'cycles'?");
	refuse("cycles,instructoins:u", EVENT_UNKNOWN, "did you mean 'instructions'?");
	refuse("CYCLES", EVENT_UNKNOWN, "did you mean 'cycles'?");
	refuse("cpu-clok", EVENT_UNKNOWN, "did you mean 'cpu-clock'?");

	struct event_list list = {0};
	struct event_error error;
	ck_assert_int_eq(event_parse(&kernel, "zzzzzz", &list, &error), EVENT_UNKNOWN);
	ck_assert_ptr_null(strstr(error.text, "did you mean"));
}

TEST(names_from_outside_are_printed_without_control_bytes)
{
	refuse("\x1b[31mred", EVENT_UNKNOWN, "'?[31mred'");
	refuse("cycles:\x1b", EVENT_MALFORMED, "'?' is not a modifier");
}

TEST(names_beyond_their_limit_are_refused)
{
	char text[EVENT_NAME_BYTES_MAX + 2];
	memset(text, 'x', sizeof(text));
	text[EVENT_NAME_BYTES_MAX - 1] = '\0';
	refuse(text, EVENT_UNKNOWN, "unknown event");
	text[EVENT_NAME_BYTES_MAX - 1] = 'x';
	text[EVENT_NAME_BYTES_MAX] = '\0';
	refuse(text, EVENT_MALFORMED, "at most 127 bytes");

	/* 127 bytes fit alone, and not with the ":u" of their group. */
	char group[EVENT_NAME_BYTES_MAX + 8];
	int zeros = EVENT_NAME_BYTES_MAX - 1 - (int)strlen("cpu/event=0x1/");
	snprintf(group, sizeof(group), "{cpu/event=%0*d/}", zeros + 3, 1);
	ck_assert_int_eq(parse_ok(group).n_events, 1);
	snprintf(group, sizeof(group), "{cpu/event=%0*d/}:u", zeros + 3, 1);
	refuse(group, EVENT_MALFORMED, "is too long with");
}

/* n times "r1," with braces around on demand; the caller frees. */
static char *many(int n, bool group)
{
	char *text = calloc(1, (size_t)n * 3 + 3), *at = text;
	ck_assert_ptr_nonnull(text);
	if (group)
		*at++ = '{';
	for (int i = 0; i < n; i++)
		at = stpcpy(at, i ? ",r1" : "r1");
	if (group)
		*at = '}';
	return text;
}

TEST(events_beyond_the_limit_are_refused)
{
	char *all = many(EVENTS_MAX, false), *more = many(EVENTS_MAX + 1, false);
	ck_assert_int_eq(parse_ok(all).n_events, EVENTS_MAX);
	struct event_list list = {0};
	struct event_error error;
	ck_assert_int_eq(event_parse(&kernel, more, &list, &error), EVENT_TOO_MANY);
	ck_assert_int_eq(list.n_events, 0);
	free(all);
	free(more);
}

TEST(groups_beyond_the_limit_are_refused)
{
	char *all = many(EVENT_GROUP_MAX, true), *more = many(EVENT_GROUP_MAX + 1, true);
	ck_assert_int_eq(parse_ok(all).n_groups, 1);
	refuse(more, EVENT_TOO_MANY, "more than 16 events in one group");
	free(all);
	free(more);
}

TEST(switches_are_events_of_the_kernel_only)
{
	struct event cs = one("context-switches"), faults = one("page-faults"),
		     cycles = one("cycles");
	ck_assert(event_is_kernel_only(&cs));
	ck_assert(!event_is_kernel_only(&faults));
	/* cycles has another type, and a number that collides with none by luck alone */
	cycles.config = PERF_COUNT_SW_CONTEXT_SWITCHES;
	ck_assert(!event_is_kernel_only(&cycles));
}
