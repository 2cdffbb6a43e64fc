/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Directories of other people: the paper's map and masks, Linux' pmu-events, Arm's standard events.
 */

#include <string.h>

#include "tests/unit/platform-db/platform_made.h"
#include "tests/unit/test.h"

static struct made_folder f;

static void setup(void)
{
	f = made_folder_new();
}

static void teardown(void)
{
	made_folder_remove(&f);
}

EACH_TEST(.begin = setup, .end = teardown);

static struct platform_db *load(void)
{
	return made_load(PLATFORM_DATA, f.path);
}

static struct platform_identity riscv(uint64_t mvendorid, uint64_t marchid, uint64_t mimpid)
{
	return (struct platform_identity){.arch = PLATFORM_ARCH_RISCV,
		.read = true,
		.mvendorid = mvendorid,
		.marchid = marchid,
		.mimpid = mimpid};
}

static struct platform_identity arm(uint64_t midr)
{
	return (struct platform_identity){.arch = PLATFORM_ARCH_ARM64, .read = true, .midr = midr};
}

static uint64_t code(const struct platform *p, const char *name)
{
	const struct platform_event *e = platform_event_find(p, name);
	ck_assert_msg(e != NULL, "%s has no %s", p->name, name);
	return e->code;
}

/* --- the paper -------------------------------------------------------------------------------- */

#define PAPER_MAP                                                                                  \
	"CPU ID,File Vers.,Events Filename,Events Type\n"                                          \
	"0x300,0,CVA6,core\n0x500,0,SPIKE,core\n0x200,0,BOOM,core\n"
#define PAPER_EVENT(mask)                                                                          \
	"[{\"Public Description\": \"This is an example event, for demonstration purposes.\",\n"   \
	"\"Brief Description\": \"This is an example event.\",\n\"Event Code\": \"0x11\",\n"       \
	"\"Counter Mask\": \"" mask "\",\n\"Event Name\": \"EXAMPLE_EVENT\"}]\n"

static void made_paper(const char *mask)
{
	char text[512];
	made_file(&f, "vendor/mapfile.csv", PAPER_MAP);
	snprintf(text, sizeof(text), PAPER_EVENT("%s"), mask);
	made_file(&f, "vendor/CVA6/example.json", text);
	made_file(&f, "vendor/SPIKE/a.json", "[{\"Event Name\": \"S\", \"Event Code\": 1}]\n");
	made_file(&f, "vendor/BOOM/a.json", "[{\"Event Name\": \"B\", \"Event Code\": 2}]\n");
}

TEST(a_set_bit_of_the_papers_mask_forbids_a_counter)
{
	made_paper("0xF8FF");
	_cleanup_(platform_db_freep) struct platform_db *db = load();
	struct platform_identity id = riscv(0x602, 3, 0);
	must_be_clean(db);
	const struct platform_event *e =
		platform_event_find(platform_match(db, &id), "EXAMPLE_EVENT");
	ck_assert_ptr_nonnull(e);
	ck_assert_uint_eq(e->counters, 1u << 8 | 1u << 9 | 1u << 10);
	ck_assert_uint_eq(e->code, 0x11);
	ck_assert_str_eq(e->topic, "example");
	ck_assert_str_eq(e->says, "This is an example event.");
}

TEST(a_mask_of_32_bits_has_32_counters)
{
	made_paper("0xFFFFF8FF");
	_cleanup_(platform_db_freep) struct platform_db *db = load();
	struct platform_identity id = riscv(0x602, 3, 0);
	ck_assert_uint_eq(
		platform_event_find(platform_match(db, &id), "EXAMPLE_EVENT")->counters, 0x700);
}

/* Source: section 3.3 of the paper, its listings as they are printed. */
#define PRINTED_MAP                                                                                \
	"CPU ID\tFile Vers.\tEvents Filename\tEvents Type\n0x300\t0\tCVA6\tcore\n"                 \
	"0x500\t0\tSPIKE\tcore\n0x200\t0\tBOOM\tcore\n"
#define PRINTED_EVENT                                                                              \
	"{\n  \"Public Description\": \"This is an example event,\n  for demonstration "           \
	"purposes.\",\n  \"Brief Description\": \"This is an example event.\"\n  \"Event Code\" "  \
	": \"0x11\",\n  \"Counter Mask\" : \"0xF8FF\",\n  \"Event Name\" : "                       \
	"\"EXAMPLE_EVENT\",\n}\n"

TEST(the_printed_map_names_its_cores)
{
	made_paper("0xF8FF");
	made_file(&f, "vendor/mapfile.csv", PRINTED_MAP);
	_cleanup_(platform_db_freep) struct platform_db *db = load();
	struct platform_identity spike = riscv(0, 5, 0);
	must_be_clean(db);
	ck_assert_uint_eq(code(platform_match(db, &spike), "S"), 1);
	ck_assert_uint_eq(code(platform_db_find(db, "SPIKE"), "S"), 1);
	ck_assert_uint_eq(platform_db_find(db, "BOOM")->n_events, 1);
}

/* It is no JSON, and says what to change, one mistake after the other, until it is. */
TEST(the_printed_event_is_refused_with_what_to_write)
{
	static const char *const change[][3] = {
		{",\n  for demonstration ", ", for demonstration ",
			"example.json:2: unexpected newline: a string must end on the line where "
			"it begins: write it on one line, with \\n for a line break"},
		{"event.\"\n", "event.\",\n",
			"example.json:4: '}' expected near '\"Event Code\"': a comma is missing "
			"between two members, or the object's end"},
		{"EVENT\",\n", "EVENT\"\n",
			"example.json:7: string or '}' expected near '}': no comma is allowed "
			"after the last member of an object: remove it"},
	};
	char text[512] = PRINTED_EVENT;
	made_paper("0x0");
	for (size_t i = 0; i < sizeof(change) / sizeof(change[0]); i++) {
		char rest[512], *at = strstr(text, change[i][0]);
		made_file(&f, "vendor/CVA6/example.json", text);
		_cleanup_(platform_db_freep) struct platform_db *db = load();
		must_complain(db, change[i][2]);
		ck_assert_ptr_nonnull(at);
		snprintf(rest, sizeof(rest), "%s", at + strlen(change[i][0]));
		snprintf(at, sizeof(text) - (size_t)(at - text), "%s%s", change[i][1], rest);
	}
	made_file(&f, "vendor/CVA6/example.json", text);
	_cleanup_(platform_db_freep) struct platform_db *db = load();
	must_be_clean(db);
	const struct platform_event *e =
		platform_event_find(platform_db_find(db, "CVA6"), "EXAMPLE_EVENT");
	ck_assert_ptr_nonnull(e);
	ck_assert_uint_eq(e->code, 0x11);
	ck_assert_uint_eq(e->counters, 0x700);
}

TEST(a_mask_that_is_none_is_said)
{
	static const char *const masks[] = {"F8FF", "0x", "0xG", "63743", "0x11112222333344445"};
	for (size_t i = 0; i < sizeof(masks) / sizeof(masks[0]); i++) {
		made_paper(masks[i]);
		_cleanup_(platform_db_freep) struct platform_db *db = load();
		must_complain(db, "CVA6/example.json:4: 'Counter Mask' is not a hexadecimal mask");
	}
}

TEST(merged_ids_have_24_bits_of_marchid_and_8_of_mimpid)
{
	made_paper("0x0");
	_cleanup_(platform_db_freep) struct platform_db *db = load();
	struct platform_identity spike = riscv(0, 5, 0), boom = riscv(0, 2, 0);
	struct platform_identity other = riscv(0, 5, 1), high = riscv(0, 0x7f00000000000005, 0x100);
	ck_assert_uint_eq(code(platform_match(db, &spike), "S"), 1);
	ck_assert_uint_eq(code(platform_match(db, &boom), "B"), 2);
	ck_assert(!platform_match(db, &boom)->generic);
	ck_assert_str_eq(platform_match(db, &boom)->name, "BOOM");
	ck_assert_ptr_null(platform_event_find(platform_match(db, &other), "S"));
	ck_assert(platform_match(db, &other)->generic);
	ck_assert_uint_eq(code(platform_match(db, &high), "S"), 1);
}

/* --- Linux ------------------------------------------------------------------------------------ */

#define LINUX_MAP                                                                                  \
	"#Format:\n#\tMVENDORID-MARCHID-MIMPID,Version,Filename,EventType\n\n"                     \
	"0x710-0x8000000058000001-0x[[:xdigit:]]+,v1,spacemit/x60,core\n"                          \
	"0x123-0x80[89]-0x[[:xdigit:]]+,v1,new/core,core\n"                                        \
	"0x123-0x808-0x0,v1,new/second,core\n"                                                     \
	"0x123-0x808-0x0,v1,new/uncore,uncore\n"

static void made_linux(void)
{
	made_file(&f, "riscv/mapfile.csv", LINUX_MAP);
	made_file(&f, "riscv/firmware.json",
		"[{\"EventName\": \"FW_SET_TIMER\", \"ConfigCode\": \"0x8000000000000005\","
		" \"BriefDescription\": \"Set timer event\"}]\n");
	made_file(&f, "riscv/spacemit/x60/cache.json",
		"[{\"EventName\": \"u_mode_cycle\", \"EventCode\": \"0x99\"},\n"
		"{\"EventName\": \"vendor_event\", \"EventCode\": \"0x77\"}]\n");
	made_file(&f, "riscv/new/core/a-b.json",
		"[{\"EventName\": \"ONE\", \"EventCode\": \"0x1\", \"SampleAfterValue\": 7},\n"
		"{\"ArchStdEvent\": \"fw_set_timer\"},\n"
		"{\"MetricName\": \"ipc\", \"MetricExpr\": \"a / b\"},\n"
		"{\"EventName\": \"far\", \"EventCode\": \"1\", \"Unit\": \"iMC\"}]\n");
	made_file(&f, "riscv/new/second/a.json", "[{\"EventName\": \"TWO\", \"EventCode\": 2}]\n");
}

TEST(a_vendors_events_lie_on_what_we_know_of_the_core)
{
	made_linux();
	_cleanup_(platform_db_freep) struct platform_db *db = load();
	struct platform_identity id = riscv(0x710, 0x8000000058000001, 0x1000000049772200);
	must_be_clean(db);
	const struct platform *p = platform_match(db, &id);
	ck_assert_str_eq(p->name, "spacemit-x60");
	ck_assert_str_eq(p->title, "SpacemiT X60");
	ck_assert_uint_eq(code(p, "vendor_event"), 0x77);
	ck_assert_uint_eq(code(p, "l2_miss"), 0xb9);
	/* What both have is the vendor's, and the quirks are ours. */
	ck_assert_uint_eq(code(p, "u_mode_cycle"), 0x99);
	ck_assert_uint_eq(platform_leader(p, PLATFORM_MODE_USER)->code, 0x99);
	ck_assert_int_eq(p->overflow, PLATFORM_OVERFLOW_PROGRAMMABLE);
	must_be_clean(db);
	/* By its name it is still our own. */
	ck_assert_uint_eq(code(platform_db_find(db, "spacemit-x60"), "u_mode_cycle"), 0x22);
}

TEST(a_core_that_only_the_vendor_knows_is_known)
{
	made_linux();
	_cleanup_(platform_db_freep) struct platform_db *db = load();
	struct platform_identity id = riscv(0x123, 0x808, 0);
	const struct platform *p = platform_match(db, &id);
	ck_assert_str_eq(p->name, "new/core");
	ck_assert(!p->generic);
	ck_assert_uint_eq(code(p, "ONE"), 1);
	ck_assert_uint_eq(code(p, "FW_SET_TIMER"), 0x8000000000000005);
	/* The first row that fits counts, and metrics and far-away units are no events. */
	ck_assert_ptr_null(platform_event_find(p, "TWO"));
	ck_assert_ptr_null(platform_event_find(p, "ipc"));
	ck_assert_ptr_null(platform_event_find(p, "far"));
	ck_assert_str_eq(platform_event_find(p, "ONE")->topic, "a-b");
}

TEST(an_expression_holds_for_the_whole_identity)
{
	made_linux();
	_cleanup_(platform_db_freep) struct platform_db *db = load();
	struct platform_identity ids[] = {
		riscv(0x123, 0x80a, 0), riscv(0x1123, 0x808, 0), riscv(0x123, 0x8080, 0)};
	for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++)
		ck_assert(platform_match(db, &ids[i])->generic);
}

TEST(the_folder_itself_may_be_a_vendors)
{
	made_file(&f, "mapfile.csv", "0x123-0x1-0x1,v1,core,core\n");
	made_file(&f, "core/a.json", "[{\"EventName\": \"ONE\", \"EventCode\": \"0x1\"}]\n");
	_cleanup_(platform_db_freep) struct platform_db *db = load();
	struct platform_identity id = riscv(0x123, 1, 1);
	must_be_clean(db);
	ck_assert_uint_eq(code(platform_match(db, &id), "one"), 1);
}

TEST(x86_selectors_are_put_together)
{
	struct platform_identity id = {.arch = PLATFORM_ARCH_X86,
		.read = true,
		.vendor = "GenuineIntel",
		.family = 6,
		.model = 0x55,
		.stepping = 7};
	made_file(&f, "x86/mapfile.csv",
		"Family-model,Version,Filename,EventType\n"
		"GenuineIntel-6-55-[01234],v1,old,core\nGenuineIntel-6-(55|56),v1,new,core\n");
	made_file(&f, "x86/old/a.json", "[{\"EventName\": \"OLD\", \"EventCode\": \"1\"}]\n");
	made_file(&f, "x86/new/a.json",
		"[{\"EventName\": \"A.B\", \"EventCode\": \"0xA3\", \"UMask\": \"0x14\", "
		"\"CounterMask\": \"20\", \"Invert\": \"1\", \"EdgeDetect\": \"1\", \"AnyThread\": "
		"\"1\"},"
		"\n{\"EventName\": \"OFFCORE\", \"EventCode\": \"0xB7,0xBB\", \"UMask\": \"0x1\", "
		"\"MSRIndex\": \"0x1a6,0x1a7\", \"MSRValue\": \"0x10003\"},"
		"\n{\"EventName\": \"AMD\", \"EventCode\": \"0x18e\", \"UMask\": \"0x1f\"},"
		"\n{\"EventName\": \"CPU_CLK_UNHALTED.REF_TSC\", \"UMask\": \"0x3\"},"
		"\n{\"EventName\": \"INST_RETIRED.ANY\", \"EventCode\": \"0x00\", "
		"\"UMask\": \"0x1\"},"
		"\n{\"EventName\": \"STRANGE\", \"EventCode\": 1, \"MSRIndex\": \"0x99\"},"
		"\n{\"EventName\": \"LAST\", \"EventCode\": 2}]\n");
	_cleanup_(platform_db_freep) struct platform_db *db = load();
	const struct platform *p = platform_match(db, &id);
	must_complain(db, "a.json:6: the event STRANGE needs a register that is not known");
	ck_assert_uint_eq(
		code(p, "A.B"), 0xa3 | 0x14 << 8 | 1 << 18 | 1 << 21 | 1 << 23 | 20 << 24);
	/* The second register has its own word. */
	ck_assert_uint_eq(code(p, "OFFCORE"), 0x1b7);
	ck_assert_uint_eq(platform_event_find(p, "OFFCORE")->config1, 0x10003);
	ck_assert_uint_eq(code(p, "AMD"), UINT64_C(0x100001f8e));
	ck_assert_uint_eq(code(p, "CPU_CLK_UNHALTED.REF_TSC"), 0x300);
	ck_assert_uint_eq(code(p, "INST_RETIRED.ANY"), 0xc0);
	ck_assert_ptr_null(platform_event_find(p, "STRANGE"));
	ck_assert_uint_eq(code(p, "LAST"), 2);
	ck_assert_ptr_null(platform_event_find(p, "OLD"));
	ck_assert_uint_eq(code(p, "inst_retired.any_p"), 0xc0);
}

/* --- Arm -------------------------------------------------------------------------------------- */

static void made_arm(void)
{
	made_file(&f, "arm64/mapfile.csv",
		"0x00000000410fd4a0,v1,arm/e1,core\n0x00000000413fd4a1,v1,arm/late,core\n"
		"0x00000000412fdfe2,v1,arm/later,core\n");
	made_file(&f, "arm64/common.json",
		"[{\"EventName\": \"CPU_CYCLES\", \"EventCode\": \"0x11\", "
		"\"PublicDescription\": \"Cycle,\\n counted\"},\n"
		"{\"EventName\": \"IMPDEF\", \"EventCode\": \"0xC0\"}]\n");
	made_file(&f, "arm64/arm/e1/core.json",
		"[{\"ArchStdEvent\": \"CPU_CYCLES\"},\n{\"ArchStdEvent\": \"IMPDEF\", "
		"\"EventCode\": \"0xC1\", \"BriefDescription\": \"Ours\"}]\n");
	made_file(&f, "arm64/arm/late/core.json", "[{\"ArchStdEvent\": \"IMPDEF\"}]\n");
	made_file(&f, "arm64/arm/later/core.json", "[{\"ArchStdEvent\": \"IMPDEF\"}]\n");
}

/* P and E cores share a map's row: their events of one name are two, and so are metrics. */
TEST(rows_of_one_kind_of_hart_are_for_its_pmu)
{
	struct platform_identity id = {.arch = PLATFORM_ARCH_X86,
		.read = true,
		.vendor = "GenuineIntel",
		.family = 6,
		.model = 0x97,
		.stepping = 2,
		.pmu = "cpu_core"};
	made_file(&f, "x86/mapfile.csv", "GenuineIntel-6-97,v1,adl,core\n");
	made_file(&f, "x86/adl/a.json",
		"[{\"EventName\": \"A\", \"EventCode\": \"0x1\", \"Unit\": \"cpu_atom\"},"
		"{\"EventName\": \"A\", \"EventCode\": \"0x2\", \"Unit\": \"cpu_core\"},"
		"{\"EventName\": \"ATOMS\", \"EventCode\": \"0x3\", \"Unit\": \"cpu_atom\"},"
		"{\"EventName\": \"BOTH\", \"EventCode\": \"0x4\"},"
		"{\"EventName\": \"UNCORE\", \"EventCode\": \"0x5\", \"Unit\": \"ARB\"},"
		"{\"MetricName\": \"m\", \"MetricExpr\": \"cpu_atom@A@ / (5 * BOTH)\", \"Unit\": "
		"\"cpu_atom\"},"
		"{\"MetricName\": \"m\", \"MetricExpr\": \"cpu_core@A@ / "
		"cpu_core@A\\\\,cmask\\\\=1@ + cpu_core@A@u + cpu_atom@A@\", \"Unit\": "
		"\"cpu_core\"}]\n");
	_cleanup_(platform_db_freep) struct platform_db *db = load();
	must_be_clean(db);
	const struct platform *p = platform_match(db, &id);
	ck_assert_str_eq(p->name, "intel-goldencove");
	ck_assert_uint_eq(code(p, "A"), 2);
	ck_assert_uint_eq(code(p, "BOTH"), 4);
	ck_assert_ptr_null(platform_event_find(p, "ATOMS"));
	ck_assert_ptr_null(platform_event_find(p, "UNCORE"));
	/* what is more than an event's name, or of another PMU, stays */
	ck_assert_str_eq(platform_metric_find(p, "m")->text,
		"A / cpu_core@A\\,cmask\\=1@ + cpu_core@A@u + cpu_atom@A@");
	snprintf(id.pmu, sizeof(id.pmu), "cpu_atom");
	const struct platform *e = platform_match(db, &id);
	ck_assert_str_eq(e->name, "intel-gracemont");
	ck_assert_uint_eq(code(e, "A"), 1);
	ck_assert_uint_eq(code(e, "ATOMS"), 3);
	ck_assert_uint_eq(code(e, "BOTH"), 4);
	ck_assert_str_eq(platform_metric_find(e, "m")->text, "A / (5 * BOTH)");
	ck_assert_uint_eq(code(platform_db_find(db, "adl:cpu_atom"), "A"), 1);
	ck_assert_uint_eq(code(platform_db_find(db, "adl:cpu_core"), "A"), 2);
	ck_assert_uint_eq(code(platform_db_find(db, "adl"), "A"), 2);
	ck_assert_ptr_null(platform_db_find(db, "ad:cpu_core"));
	id.pmu[0] = '\0'; /* an older kernel, which has one PMU */
	ck_assert_uint_eq(code(platform_match(db, &id), "A"), 2);
}

TEST(intels_counters_are_a_list_or_a_fixed_one)
{
	static const struct {
		const char *counter;
		uint64_t counters;
	} rows[] = {
		{"0,1,2,3", 0xf},
		{"1", 2},
		{"Fixed counter 1", UINT64_C(1) << 33},
		{"fixed counter 3", UINT64_C(1) << 35},
		{"63", UINT64_C(1) << 63},
		/* not a list of counters: not known */
		{"64", 0},
		{"Fixed counter 32", 0},
		{"0-3", 0},
		{"0,", 0},
		{",0", 0},
		{"0, 1", 0},
		{"-1", 0},
		{"Fixed counter ", 0},
		{"all", 0},
	};
	struct platform_identity id = {.arch = PLATFORM_ARCH_X86,
		.read = true,
		.vendor = "Other",
		.family = 6,
		.model = 1};
	made_file(&f, "x86/mapfile.csv", "Other-6-1,v1,new,core\n");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char text[128];
		snprintf(text, sizeof(text),
			"[{\"EventName\": \"E\", \"EventCode\": \"1\", \"Counter\": \"%s\"}]\n",
			rows[i].counter);
		made_file(&f, "x86/new/a.json", text);
		_cleanup_(platform_db_freep) struct platform_db *db = load();
		must_be_clean(db);
		ck_assert_msg(platform_event_find(platform_match(db, &id), "E")->counters ==
				      rows[i].counters,
			"%s", rows[i].counter);
	}
}

TEST(standard_events_are_found_and_may_be_changed)
{
	made_arm();
	_cleanup_(platform_db_freep) struct platform_db *db = load();
	struct platform_identity id = arm(0x410fd4a1);
	must_be_clean(db);
	const struct platform *p = platform_match(db, &id);
	ck_assert_str_eq(p->name, "arm/e1");
	ck_assert_uint_eq(code(p, "CPU_CYCLES"), 0x11);
	ck_assert_str_eq(platform_event_find(p, "CPU_CYCLES")->says, "Cycle,  counted");
	ck_assert_uint_eq(code(p, "IMPDEF"), 0xc1);
	ck_assert_str_eq(platform_event_find(p, "IMPDEF")->says, "Ours");
	ck_assert_str_eq(platform_event_find(p, "IMPDEF")->topic, "core");
}

TEST(an_arm_core_is_its_part_from_a_revision_on)
{
	made_arm();
	_cleanup_(platform_db_freep) struct platform_db *db = load();
	static const struct {
		uint64_t midr;
		const char *name;
	} cores[] = {
		{0x412fdfe2, "arm/later"},
		{0x412fdfe3, "arm/later"},
		{0x413fdfe0, "arm/later"},
		{0x412fdfe1, "arm64-generic"},
		{0x411fdfe9, "arm64-generic"},
		{0x412fdff2, "arm64-generic"},
		{0x422fdfe2, "arm64-generic"},
	};
	for (size_t i = 0; i < sizeof(cores) / sizeof(cores[0]); i++) {
		struct platform_identity id = arm(cores[i].midr);
		ck_assert_str_eq(platform_match(db, &id)->name, cores[i].name);
	}
}

/* --- what is wrong ---------------------------------------------------------------------------- */

TEST(a_bad_file_of_a_vendor_loses_itself_alone)
{
	static const struct {
		const char *text, *says;
	} bad[] = {
		{"", "b.json:1: "},
		{"[{]", "b.json:1: "},
		{"[\n7]\n", "b.json:2: an event must be an object in braces"},
		{"[{\"EventName\": \"X\"}]\n",
			"b.json:1: the event X has no EventCode or ConfigCode"},
		{"[{\"EventName\": \"X Y\", \"EventCode\": \"1\"}]\n",
			"'X Y' is not an event name"},
		{"[{\"EventName\": \"X\", \"EventCode\": \"one\"}]\n",
			"the event X has no EventCode"},
		{"[\n{\"ArchStdEvent\": \"NONE\"}]\n",
			"b.json:2: no file next to mapfile.csv has the standard event NONE"},
		{"[[[[[[[[[[[]]]]]]]]]]]\n", "b.json:1: nested too deeply"},
	};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		made_linux();
		made_file(&f, "riscv/new/core/b.json", bad[i].text);
		_cleanup_(platform_db_freep) struct platform_db *db = load();
		struct platform_identity id = riscv(0x123, 0x808, 0);
		must_complain(db, bad[i].says);
		ck_assert_uint_eq(code(platform_match(db, &id), "ONE"), 1);
	}
}

TEST(a_bad_row_of_a_map_loses_itself_alone)
{
	static const struct {
		const char *row, *says;
	} bad[] = {
		{"0x9,v1,core\n", "mapfile.csv:2: a row has four columns"},
		{"one two three\n", "mapfile.csv:2: a row has four columns"},
		{"0x9-0x9-0x9,v1,none,core\n", "none cannot be read: No such file"},
		{"0x9-0x9-0x9,v1,../x,core\n", "'../x' is not a folder next to the map"},
		{"0x9-0x9-0x9,v1,/etc,core\n", "'/etc' is not a folder next to the map"},
		{"0x9-0x9-0x9,v1,,core\n", "'' is not a folder next to the map"},
		{"0x9-[-0x9,v1,core,core\n",
			"mapfile.csv:2: '0x9-[-0x9' is not a regular expression"},
		{"0x9-0x9++-0x9,v1,core,core\n", "is too long or too complex for a mapfile"},
		{"0x9-(0x9)+-0x9,v1,core,core\n", "is too long or too complex for a mapfile"},
		{"0+x+9+-0+x+9+-0+x+9+,v1,core,core\n", "is too long or too complex for a mapfile"},
		{"0x9-0x{9}-0x9,v1,core,core\n", "is too long or too complex for a mapfile"},
		{"(0x9)-\\1-0x9,v1,core,core\n", "is too long or too complex for a mapfile"},
	};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		char text[256];
		snprintf(text, sizeof(text),
			"0x123-0x1-0x1,v1,core,core\r\n%s0x123-0x2-0x1,v1,core,core", bad[i].row);
		made_file(&f, "v/mapfile.csv", text);
		made_file(&f, "v/core/a.json", "[{\"EventName\": \"ONE\", \"EventCode\": 1}]\n");
		_cleanup_(platform_db_freep) struct platform_db *db = load();
		struct platform_identity first = riscv(0x123, 1, 1), last = riscv(0x123, 2, 1);
		must_complain(db, bad[i].says);
		ck_assert_uint_eq(code(platform_match(db, &first), "ONE"), 1);
		ck_assert_uint_eq(code(platform_match(db, &last), "ONE"), 1);
	}
}

TEST(a_bad_file_of_standard_events_is_said)
{
	made_arm();
	made_file(&f, "arm64/bad.json", "[{\"EventName\": \"A B\", \"EventCode\": 1}]\n");
	_cleanup_(platform_db_freep) struct platform_db *db = load();
	struct platform_identity id = arm(0x410fd4a0);
	must_complain(db, "arm64/bad.json:1: 'A B' is not an event name");
	ck_assert_uint_eq(code(platform_match(db, &id), "CPU_CYCLES"), 0x11);
}

TEST(maps_are_not_looked_for_without_end)
{
	made_file(&f, "a/b/c/mapfile.csv", "0x123-0x1-0x1,v1,core,core\n");
	made_file(&f, "a/b/c/core/a.json", "[{\"EventName\": \"ONE\", \"EventCode\": 1}]\n");
	made_file(&f, "a/b/c2/d/e/mapfile.csv", "0x123-0x2-0x1,v1,core,core\n");
	made_file(&f, "a/b/c2/d/e/core/a.json", "[{\"EventName\": \"ONE\", \"EventCode\": 1}]\n");
	_cleanup_(platform_db_freep) struct platform_db *db = load();
	struct platform_identity near = riscv(0x123, 1, 1), far = riscv(0x123, 2, 1);
	must_be_clean(db);
	ck_assert(!platform_match(db, &near)->generic);
	ck_assert(platform_match(db, &far)->generic);
}
