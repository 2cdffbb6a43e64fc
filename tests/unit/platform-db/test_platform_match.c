/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Which platform a hart's identity finds in the data that we ship.
 */

#include "tests/unit/platform-db/platform_made.h"
#include "tests/unit/test.h"

static struct platform_identity riscv(
	uint64_t mvendorid, uint64_t marchid, uint64_t mimpid, const char *compatible)
{
	struct platform_identity id = {.arch = PLATFORM_ARCH_RISCV,
		.read = true,
		.mvendorid = mvendorid,
		.marchid = marchid,
		.mimpid = mimpid};
	snprintf(id.compatible, sizeof(id.compatible), "%s", compatible);
	return id;
}

static struct platform_identity arm(uint64_t midr)
{
	return (struct platform_identity){.arch = PLATFORM_ARCH_ARM64, .read = true, .midr = midr};
}

static struct platform_identity x86(const char *vendor, uint32_t family, uint32_t model)
{
	struct platform_identity id = {
		.arch = PLATFORM_ARCH_X86, .read = true, .family = family, .model = model};
	snprintf(id.vendor, sizeof(id.vendor), "%s", vendor);
	return id;
}

static const char *found(struct platform_identity id)
{
	static char name[64];
	static struct platform_db *db; /* read once for a test's many questions */
	if (!db)
		db = made_load_data();
	const struct platform *p = platform_match(db, &id);
	snprintf(name, sizeof(name), "%s%s", p->name, p->generic ? " (generic)" : "");
	must_be_clean(db);
	return name;
}

#define X60 0x710, 0x8000000058000001
#define THEAD 0x5b7, 0, 0

TEST(x60_is_found_by_vendor_and_architecture)
{
	ck_assert_str_eq(found(riscv(X60, 0x1000000049772200, "spacemit,k1")), "spacemit-x60");
	ck_assert_str_eq(found(riscv(X60, 0, "")), "spacemit-x60");
}

TEST(an_identity_given_to_a_virtual_machine_is_believed)
{
	ck_assert_str_eq(found(riscv(X60, 0, "riscv-virtio")), "spacemit-x60");
	ck_assert_str_eq(
		found(riscv(0x489, 0x8000000000000007, 0x4210427, "riscv-virtio")), "sifive-u74");
	ck_assert_str_eq(found(riscv(0, 0xa0002, 0xa0002, "riscv-virtio")), "qemu-virt");
	ck_assert_str_eq(
		found(riscv(0x123, 0x456, 0x789, "riscv-virtio")), "riscv-generic (generic)");
}

TEST(cores_of_one_identity_are_told_apart_by_their_chip)
{
	ck_assert_str_eq(
		found(riscv(THEAD, "allwinner,d1-nezha allwinner,sun20i-d1")), "thead-c906");
	ck_assert_str_eq(found(riscv(THEAD, "sipeed,lichee-pi-4a thead,th1520")), "thead-c910");
	ck_assert_str_eq(found(riscv(THEAD, "milkv,pioneer sophgo,sg2042")), "thead-c920");
	ck_assert_str_eq(found(riscv(THEAD, "somebody,else")), "thead-c9xx");
	ck_assert_str_eq(found(riscv(THEAD, "riscv-virtio")), "thead-c9xx");
	ck_assert_str_eq(found(riscv(THEAD, "thead,th1520-next")), "thead-c9xx");
}

TEST(of_two_chips_in_one_device_tree_the_first_counts)
{
	ck_assert_str_eq(found(riscv(THEAD, "sophgo,sg2042 thead,th1520")), "thead-c920");
	ck_assert_str_eq(found(riscv(THEAD, "thead,th1520 sophgo,sg2042")), "thead-c910");
}

TEST(riscv_cores_are_found)
{
	ck_assert_str_eq(found(riscv(0x710, 0x8000000058000002, 0x33d8a600, "")), "spacemit-x100");
	ck_assert_str_eq(
		found(riscv(0x710, 0x8000000041000002, 0x10000000d5686200, "")), "spacemit-a100");
	ck_assert_str_eq(found(riscv(0x489, 0x8000000000000008, 1, "")), "sifive-p550");
	ck_assert_str_eq(found(riscv(0x489, 0x8000000000000107, 1, "")), "sifive-bullet");
	ck_assert_str_eq(
		found(riscv(0x489, 0x8000000000000e07, 0x8210427, "")), "sifive-bullet-07");
	ck_assert_str_eq(
		found(riscv(0x489, 0x8000000000000e07, 0xd210427, "")), "sifive-bullet-0d");
	ck_assert_str_eq(found(riscv(0x602, 3, 0, "")), "cva6");
	ck_assert_str_eq(found(riscv(0x86f, 25, 0, "")), "xiangshan-kunminghu");
	ck_assert_str_eq(found(riscv(0, 25, 0, "")), "xiangshan-kunminghu");
	ck_assert_str_eq(found(riscv(0x31e, 0x8000000000008a45, 1, "")), "andes-ax45mp");
	ck_assert_str_eq(found(riscv(0x67e, 0x80000000db000080, 1, "")), "starfive-dubhe");
	ck_assert_str_eq(found(riscv(0x67e, 0x80000000db000090, 1, "")), "starfive-dubhe");
	ck_assert_str_eq(found(riscv(0x67e, 0x80000000db0000a0, 1, "")), "riscv-generic (generic)");
}

TEST(arm_cores_are_found_by_part_and_revision)
{
	ck_assert_str_eq(found(arm(0x413fd0c1)), "arm-neoverse-n1");
	ck_assert_str_eq(found(arm(0x411fd401)), "arm-neoverse-v1");
	ck_assert_str_eq(found(arm(0x410fd490)), "arm-neoverse-n2-early");
	ck_assert_str_eq(found(arm(0x410fd492)), "arm-neoverse-n2-early");
	ck_assert_str_eq(found(arm(0x410fd493)), "arm-neoverse-n2");
	ck_assert_str_eq(found(arm(0x411fd490)), "arm-neoverse-n2");
	ck_assert_str_eq(found(arm(0x410fd4f1)), "arm-neoverse-v2");
	ck_assert_str_eq(found(arm(0x410fd8e0)), "arm-neoverse-n3");
	ck_assert_str_eq(found(arm(0x410fd840)), "arm-neoverse-v3");
	ck_assert_str_eq(found(arm(0x410fd034)), "arm-cortex-a53");
	ck_assert_str_eq(found(arm(0x412fd050)), "arm-cortex-a55");
	ck_assert_str_eq(found(arm(0x410fd083)), "arm-cortex-a72");
	ck_assert_str_eq(found(arm(0x414fd0b1)), "arm-cortex-a76");
	ck_assert_str_eq(found(arm(0x411fd411)), "arm-cortex-a78");
	ck_assert_str_eq(found(arm(0x511fd411)), "arm64-generic (generic)");
	ck_assert_str_eq(found(arm(0)), "arm64-generic (generic)");
}

TEST(x86_cores_are_found_by_vendor)
{
	ck_assert_str_eq(found(x86("GenuineIntel", 6, 85)), "intel-skylake");
	ck_assert_str_eq(found(x86("AuthenticAMD", 25, 1)), "x86-amd");
	ck_assert_str_eq(found(x86("AuthenticAMD", 25, 0xf)), "x86-amd");
	ck_assert_str_eq(found(x86("AuthenticAMD", 25, 0x10)), "amd-zen4");
	ck_assert_str_eq(found(x86("AuthenticAMD", 25, 0x1f)), "amd-zen4");
	ck_assert_str_eq(found(x86("AuthenticAMD", 25, 0x20)), "x86-amd");
	ck_assert_str_eq(found(x86("AuthenticAMD", 25, 0x61)), "amd-zen4");
	ck_assert_str_eq(found(x86("AuthenticAMD", 25, 0xb0)), "x86-amd");
	ck_assert_str_eq(found(x86("AuthenticAMD", 26, 0x44)), "amd-zen5");
	ck_assert_str_eq(found(x86("AuthenticAMD", 26, 0x50)), "x86-amd");
	ck_assert_str_eq(found(x86("GenuineIntel", 6, 0x3f)), "intel-haswell");
	ck_assert_str_eq(found(x86("GenuineIntel", 6, 0x6a)), "intel-icelake");
	ck_assert_str_eq(found(x86("GenuineIntel", 6, 0x8f)), "intel-sapphirerapids");
	ck_assert_str_eq(found(x86("GenuineIntel", 6, 0x97)), "x86-intel");
	ck_assert_str_eq(found(x86("GenuineIntel", 6, 0xbe)), "intel-gracemont");
	ck_assert_str_eq(found(x86("HygonGenuine", 24, 1)), "x86-generic (generic)");
	ck_assert_str_eq(found(x86("GenuineIntelX", 6, 85)), "x86-generic (generic)");
}

/* The model is the package's: what kind a hart is, its PMU says. */
TEST(kinds_of_one_package_are_found_by_their_pmu)
{
	static const struct {
		uint32_t model;
		const char *pmu, *platform;
	} harts[] = {
		{0x97, "cpu_core", "intel-goldencove"},
		{0x9a, "cpu_atom", "intel-gracemont"},
		{0xb7, "cpu_core", "intel-goldencove"},
		{0xba, "cpu_atom", "intel-gracemont"},
		{0xbf, "cpu_core", "intel-goldencove"},
		{0xaa, "cpu_core", "intel-redwoodcove"},
		{0xac, "cpu_atom", "intel-crestmont"},
		{0xb5, "cpu_core", "intel-redwoodcove"},
		{0xc6, "cpu_core", "intel-lioncove"},
		{0xc6, "cpu_atom", "intel-skymont"},
		{0xbd, "cpu_core", "intel-lioncove"},
		{0xbd, "cpu_atom", "intel-skymont"},
		{0xcc, "cpu_core", "x86-intel-p"},
		{0xcc, "cpu_atom", "x86-intel-e"},
		{0xc5, "cpu_lowpower", "x86-intel-lpe"},
		{0x97, "cpu_new", "x86-intel"},
	};
	for (size_t i = 0; i < sizeof(harts) / sizeof(harts[0]); i++) {
		struct platform_identity id = x86("GenuineIntel", 6, harts[i].model);
		snprintf(id.pmu, sizeof(id.pmu), "%s", harts[i].pmu);
		ck_assert_str_eq(found(id), harts[i].platform);
	}
}

TEST(nobody_knows_a_core_whose_registers_are_not_told)
{
	struct platform_identity id = riscv(0, 0, 0, "");
	id.read = false;
	ck_assert_str_eq(found(id), "riscv-generic (generic)");
	id.arch = PLATFORM_ARCH_UNKNOWN;
	ck_assert_str_eq(found(id), "unknown (generic)");
}

TEST(an_unknown_core_gets_a_line_that_says_how_to_add_it)
{
	char says[512];
	struct platform_identity id = riscv(0x123, 0x8000000000000456, 0, "");
	platform_unknown_says(&id, says, sizeof(says));
	ck_assert_ptr_nonnull(strstr(says, "\"mvendorid\": \"0x123\""));
	ck_assert_ptr_nonnull(strstr(says, "\"marchid\": \"0x8000000000000456\""));
	ck_assert_ptr_nonnull(strstr(says, PLATFORM_FOLDER_OVERRIDES));
	id = arm(0x123f4567);
	ck_assert_ptr_nonnull(
		strstr(platform_unknown_says(&id, says, sizeof(says)), "\"midr\": \"0x123f4567\""));
	id = x86("HygonGenuine", 24, 1);
	ck_assert_ptr_nonnull(strstr(
		platform_unknown_says(&id, says, sizeof(says)), "\"vendor\": \"HygonGenuine\""));
	snprintf(id.pmu, sizeof(id.pmu), "cpu_atom");
	platform_unknown_says(&id, says, sizeof(says));
	ck_assert_ptr_nonnull(strstr(says, "HygonGenuine-24-1-0 cpu_atom;"));
	ck_assert_ptr_nonnull(strstr(says, "\"model\": 1, \"pmu\": \"cpu_atom\"}"));
	id.read = false;
	ck_assert_ptr_nonnull(
		strstr(platform_unknown_says(&id, says, sizeof(says)), "does not identify"));
}

TEST(a_core_whose_registers_are_not_told_is_described_by_its_board)
{
	char says[512];
	struct platform_identity id = riscv(0, 0, 0, "maker,board maker,chip");
	id.read = false;
	platform_unknown_says(&id, says, sizeof(says));
	ck_assert_msg(
		strstr(says, "{\"arch\": \"riscv\", \"compatible\": \"maker,board\"}"), "%s", says);
	struct made_folder f = made_folder_new();
	made_file(&f, "mine.json",
		"{\"platform\": \"mine\", \"title\": \"Mine\", \"arch\": \"riscv\", \"source\": "
		"\"x\", \"verified\": \"no\", \"cpus\": [{\"arch\": \"riscv\", \"compatible\": "
		"\"maker,board\", \"source\": \"x\", \"verified\": \"no\"}]}\n");
	struct platform_db *own = made_load(PLATFORM_DATA, f.path);
	must_be_clean(own);
	ck_assert_str_eq(platform_match(own, &id)->name, "mine");
	platform_db_free(own);
	made_folder_remove(&f);
}

TEST(the_line_for_an_unknown_core_makes_it_known)
{
	char says[512], text[1024];
	struct platform_identity id = riscv(0x123, 0x456, 0, "");
	platform_unknown_says(&id, says, sizeof(says));
	char *open = strchr(says, '{'), *close = strchr(says, '}');
	ck_assert(open && close);
	snprintf(text, sizeof(text),
		"{\"platform\": \"mine\", \"title\": \"Mine\", \"arch\": \"riscv\", "
		"\"source\": \"me\", \"verified\": \"no\", \"cpus\": [%.*s, "
		"\"source\": \"me\", \"verified\": \"no\"}]}\n",
		(int)(close - open), open);
	struct made_folder f = made_folder_new();
	made_file(&f, "mine.json", text);
	_cleanup_(platform_db_freep) struct platform_db *db = made_load(PLATFORM_DATA, f.path);
	must_be_clean(db);
	ck_assert_str_eq(platform_match(db, &id)->name, "mine");
	ck_assert(!platform_match(db, &id)->generic);
	made_folder_remove(&f);
}

/* The indented lines of the README from a brace to its end. */
static void readme_file(char *text, size_t size)
{
	char line[1024];
	size_t n = 0;
	FILE *f = fopen("platform-db/README.md", "re");
	ck_assert_ptr_nonnull(f);
	while (fgets(line, sizeof(line), f)) {
		if (strncmp(line, "       ", 7) != 0 || (n == 0 && line[7] != '{'))
			continue;
		n += (size_t)snprintf(text + n, size - n, "%s", line + 7);
		ck_assert_uint_lt(n, size);
	}
	fclose(f);
}

TEST(the_readme_adds_a_core)
{
	char text[4096] = "";
	struct made_folder f = made_folder_new();
	readme_file(text, sizeof(text));
	made_file(&f, "sifive-p650.json", text);
	_cleanup_(platform_db_freep) struct platform_db *db = made_load(PLATFORM_DATA, f.path);
	must_be_clean(db);
	struct platform_identity id = riscv(0x489, 0x8000000000000108, 0x9210427, "");
	const struct platform *p = platform_match(db, &id);
	ck_assert_str_eq(p->name, "sifive-p650");
	ck_assert_uint_eq(platform_leader(p, PLATFORM_MODE_USER)->code, 0x165);
	made_folder_remove(&f);
}

TEST(the_same_identity_finds_the_same_platform)
{
	_cleanup_(platform_db_freep) struct platform_db *db = made_load_data();
	struct platform_identity unknown = riscv(0x123, 0x456, 0, ""), x60 = riscv(X60, 0, "");
	const struct platform *first = platform_match(db, &unknown);
	ck_assert_ptr_ne(platform_match(db, &x60), first);
	ck_assert_ptr_eq(platform_match(db, &unknown), first);
}

TEST(identities_read_as_people_write_them)
{
	char says[96];
	struct platform_identity id = riscv(X60, 0x1000000049772200, "");
	ck_assert_str_eq(platform_identity_says(&id, says, sizeof(says)),
		"riscv 0x710/0x8000000058000001/0x1000000049772200");
	id = arm(0x413fd0c1);
	ck_assert_str_eq(platform_identity_says(&id, says, sizeof(says)), "arm64 0x413fd0c1");
	id = x86("GenuineIntel", 6, 85);
	ck_assert_str_eq(
		platform_identity_says(&id, says, sizeof(says)), "x86 GenuineIntel-6-55-0");
	id.read = false;
	ck_assert_str_eq(platform_identity_says(&id, says, sizeof(says)), "unknown");
}

TEST(no_data_at_all_is_an_empty_platform_and_an_error)
{
	struct platform_identity id = riscv(X60, 0, "");
	_cleanup_(platform_db_freep) struct platform_db *db =
		made_load("/nowhere/that/is", "/nowhere/else");
	must_complain(db, "/nowhere/that/is: the folder cannot be read");
	const struct platform *p = platform_match(db, &id);
	ck_assert(p->generic);
	ck_assert_uint_eq(p->n_events, 0);
	ck_assert_ptr_null(platform_event_find(p, "cycles"));
	ck_assert_ptr_null(platform_leader(p, PLATFORM_MODES_ALL));
	ck_assert_uint_eq(platform_counters(p, 1), 0);
}
