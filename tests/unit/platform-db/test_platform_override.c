/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Folders on top of folders: what /etc/mperf/platforms.d can change, and what it cannot lose.
 */
#include <linux/perf_event.h>

#include "tests/unit/platform-db/platform_made.h"
#include "tests/unit/test.h"

#define ORIGIN "\"source\": \"me\", \"verified\": \"no\""
#define X60_EVENTS (164 + 22) /* its own and firmware's */
#define X60 "\"platform\": \"spacemit-x60\", " ORIGIN

static const struct platform_identity x60 = {.arch = PLATFORM_ARCH_RISCV,
	.read = true,
	.mvendorid = 0x710,
	.marchid = 0x8000000058000001};

/* The data with one more file; the file's folder is gone afterwards. */
static struct platform_db *with(const char *text)
{
	struct made_folder f = made_folder_new();
	made_file(&f, "x.json", text);
	struct platform_db *db = made_load(PLATFORM_DATA, f.path);
	made_folder_remove(&f);
	return db;
}

static const char *leader(const struct platform *p, unsigned modes)
{
	const struct platform_event *e = platform_leader(p, modes);
	return e ? e->name : "none";
}

TEST(a_leader_can_be_named_for_a_core_that_is_known)
{
	_cleanup_(platform_db_freep) struct platform_db *db = with(
		"{" X60 ", \"quirks\": [{\"quirk\": \"leader\", \"user\": \"r1\", " ORIGIN "}]}\n");
	must_be_clean(db);
	const struct platform *p = platform_match(db, &x60);
	ck_assert_str_eq(p->name, "spacemit-x60");
	ck_assert_str_eq(leader(p, PLATFORM_MODE_USER), "r1");
	ck_assert_uint_eq(platform_leader(p, PLATFORM_MODE_USER)->code, 1);
	/* Quirks of that kind are the file's alone now. */
	ck_assert_str_eq(leader(p, PLATFORM_MODE_KERNEL), "none");
	/* All else is as it was. */
	ck_assert_uint_eq(p->n_events, X60_EVENTS);
	ck_assert_uint_eq(p->counters, 0x7fff8);
	ck_assert_int_eq(p->overflow, PLATFORM_OVERFLOW_PROGRAMMABLE);
	ck_assert_uint_eq(p->vector_bits, 256);
}

TEST(an_event_is_replaced_by_its_name_and_others_are_added)
{
	_cleanup_(platform_db_freep) struct platform_db *db = with(
		"{" X60 ", \"events\": ["
		"{\"name\": \"U_MODE_CYCLE\", \"code\": \"0x1234\", \"topic\": \"cycles\", " ORIGIN
		"}, "
		"{\"name\": \"new\", \"code\": 5, \"topic\": \"mine\", \"generic\": "
		"[\"cycles\"], " ORIGIN
		"}, {\"name\": \"miss\", \"code\": 6, \"topic\": \"mine\", \"generic\": "
		"[\"branch-misses\"], " ORIGIN "}]}\n");
	must_be_clean(db);
	const struct platform *p = platform_match(db, &x60);
	ck_assert_uint_eq(p->n_events, X60_EVENTS + 2);
	ck_assert_uint_eq(platform_event_find(p, "u_mode_cycle")->code, 0x1234);
	/* The leader is by name, so it follows. */
	ck_assert_uint_eq(platform_leader(p, PLATFORM_MODE_USER)->code, 0x1234);
	const uint32_t hardware = PERF_TYPE_HARDWARE;
	ck_assert_str_eq(
		platform_event_generic(p, hardware, PERF_COUNT_HW_CPU_CYCLES)->name, "new");
	ck_assert_str_eq(
		platform_event_generic(p, hardware, PERF_COUNT_HW_BRANCH_MISSES)->name, "miss");
	ck_assert_str_eq(
		platform_event_generic(p, hardware, PERF_COUNT_HW_BRANCH_INSTRUCTIONS)->name,
		"cond_br_inst");
}

TEST(a_new_pattern_leads_to_a_core_that_is_known)
{
	_cleanup_(platform_db_freep) struct platform_db *db = with(
		"{" X60 ", \"arch\": \"riscv\", \"cpus\": [{\"arch\": \"riscv\", \"mvendorid\": "
		"\"0x999\", " ORIGIN "}]}\n");
	struct platform_identity id = {
		.arch = PLATFORM_ARCH_RISCV, .read = true, .mvendorid = 0x999};
	must_be_clean(db);
	ck_assert_str_eq(platform_match(db, &id)->name, "spacemit-x60");
	ck_assert_str_eq(platform_match(db, &x60)->name, "spacemit-x60");
}

TEST(of_equal_patterns_the_later_folder_wins)
{
	_cleanup_(platform_db_freep) struct platform_db *db =
		with("{\"platform\": \"mine\", \"title\": \"Mine\", \"arch\": \"riscv\", " ORIGIN
		     ", \"cpus\": [{\"arch\": \"riscv\", \"mvendorid\": \"0x710\", \"marchid\": "
		     "\"0x8000000058000001\", " ORIGIN "}]}\n");
	must_be_clean(db);
	ck_assert_str_eq(platform_match(db, &x60)->name, "mine");
}

TEST(a_pattern_for_everything_takes_no_core_that_is_known)
{
	_cleanup_(platform_db_freep) struct platform_db *db = with(
		"{\"platform\": \"mine\", \"title\": \"Mine\", \"arch\": \"riscv\", " ORIGIN
		", \"cpus\": [{\"arch\": \"riscv\", \"mvendorid\": \"0x???\", " ORIGIN "}]}\n");
	struct platform_identity other = {
		.arch = PLATFORM_ARCH_RISCV, .read = true, .mvendorid = 0x999};
	must_be_clean(db);
	ck_assert_str_eq(platform_match(db, &x60)->name, "spacemit-x60");
	ck_assert_str_eq(platform_match(db, &other)->name, "mine");
}

TEST(a_broken_override_loses_itself_alone)
{
	static const char *const broken[] = {
		"{" X60 ", \"quirks\": [{\"quirk\": \"leader\", \"user\": \"none\", " ORIGIN
		"}]}\n",
		"{" X60 ", \"events\": [{\"name\": \"u_mode_cycle\"}]}\n",
		"{" X60 ", \"lists\": [\"nowhere\"]}\n",
		"{" X60 ",\n}\n",
		"{" X60 ", \"leader\": \"r1\"}\n",
	};
	for (size_t i = 0; i < sizeof(broken) / sizeof(broken[0]); i++) {
		struct made_folder f = made_folder_new();
		made_file(&f, "1.json", broken[i]);
		made_file(&f, "2.json",
			"{\"platform\": \"sifive-u74\", \"title\": \"Changed\", " ORIGIN "}\n");
		_cleanup_(platform_db_freep) struct platform_db *db =
			made_load(PLATFORM_DATA, f.path);
		must_complain(db, "/1.json:");
		const struct platform *p = platform_match(db, &x60);
		ck_assert_uint_eq(p->n_events, X60_EVENTS);
		ck_assert_str_eq(leader(p, PLATFORM_MODE_USER), "u_mode_cycle");
		ck_assert_str_eq(platform_db_find(db, "sifive-u74")->title, "Changed");
		made_folder_remove(&f);
	}
}

TEST(an_event_that_leads_cannot_be_taken_away_unnoticed)
{
	/* It is still there by name; its code is the file's, as the file wanted. */
	_cleanup_(platform_db_freep) struct platform_db *db =
		with("{" X60 ", \"events\": ["
		     "{\"name\": \"other\", \"aliases\": [\"u_mode_cycle\"], \"code\": 9, "
		     "\"topic\": \"t\", " ORIGIN "}]}\n");
	must_be_clean(db);
	ck_assert_str_eq(leader(platform_match(db, &x60), PLATFORM_MODE_USER), "other");
}

TEST(no_folder_of_overrides_is_no_error)
{
	_cleanup_(platform_db_freep) struct platform_db *db =
		made_load(PLATFORM_DATA, "/nowhere/that/is");
	must_be_clean(db);
}
