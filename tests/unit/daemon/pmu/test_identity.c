/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Who the harts of machines as data are, and what machines that tell little or nonsense leave.
 */
#include <errno.h>
#include <sys/utsname.h>

#include "daemon/pmu/identity.h"
#include "proto/base/memory.h"
#include "tests/unit/replay.h"
#include "tests/unit/test.h"

#define N_HARTS 4
#define CPUS(n)                                                                                    \
	"\"/sys/devices/system/cpu/possible\": \"0-" n "\\n\", "                                   \
	"\"/sys/devices/system/cpu/online\": \"0-" n "\\n\", "
#define MACHINE(arch, more)                                                                        \
	"{\"source\": \"made\", \"verified\": \"no\", \"files\": {" CPUS("3") more                 \
		"\"/proc/sys/kernel/arch\": \"" arch "\\n\"}, \"rules\": []"

DEFINE_CLEANUP(struct replay *, replay_free)

static struct platform_identity ids[HARTS_MAX];

static int read_of(struct replay *r)
{
	struct machine m;
	memset(ids, 0x5a, sizeof(ids));
	ck_assert_int_eq(machine_read(replay_kernel(r), &m), 0);
	ck_assert_int_eq(identity_read(replay_kernel(r), &m, ids), 0);
	return m.n_harts;
}

static void read_text(const char *json)
{
	struct replay_error e = {""};
	_cleanup_(replay_freep) struct replay *r = NULL;
	ck_assert_msg(replay_parse(json, &r, &e) == 0, "%s", e.text);
	ck_assert_int_eq(read_of(r), N_HARTS);
}

static int read_machine(const char *name)
{
	char path[128];
	struct replay_error e = {""};
	_cleanup_(replay_freep) struct replay *r = NULL;
	snprintf(path, sizeof(path), "tests/platforms/%s.json", name);
	ck_assert_msg(replay_load(path, &r, &e) == 0, "%s", e.text);
	return read_of(r);
}

static const char *platform_of(int hart)
{
	static char name[64];
	const char *const folders[] = {"platform-db/platforms"};
	_cleanup_(platform_db_freep) struct platform_db *db = NULL;
	ck_assert_int_eq(platform_db_load(folders, 1, &db), 0);
	snprintf(name, sizeof(name), "%s", platform_match(db, &ids[hart])->name);
	return name;
}

static const char *says(int hart)
{
	static char text[96];
	return platform_identity_says(&ids[hart], text, sizeof(text));
}

/* --- RISC-V ----------------------------------------------------------------------------------- */

#define X60_HWPROBE                                                                                \
	", \"hwprobe\": [{\"harts\": \"0-2\", \"mvendorid\": \"0x710\", \"marchid\": "             \
	"\"0x8000000058000001\", \"mimpid\": \"0x1000000049772200\"}]}"

TEST(riscv_harts_are_asked_one_by_one)
{
	read_text(MACHINE("riscv64", "") X60_HWPROBE);
	ck_assert_str_eq(says(0), "riscv 0x710/0x8000000058000001/0x1000000049772200");
	ck_assert_str_eq(says(2), says(0));
	/* Hart 3's kernel knows the call and not the keys. */
	ck_assert(!ids[3].read);
	ck_assert_int_eq(ids[3].arch, PLATFORM_ARCH_RISCV);
}

#define RISCV_HART(n, marchid)                                                                     \
	"processor\\t: " n "\\nhart\\t\\t: 7\\nisa\\t\\t: rv64imafdc\\nmmu\\t\\t: sv39\\n"         \
	"mvendorid\\t: 0x489\\nmarchid\\t\\t: " marchid "\\nmimpid\\t\\t: 0x4210427\\n\\n"

TEST(without_the_call_riscv_harts_are_in_cpuinfo)
{
	read_text(MACHINE("riscv64", "\"/proc/cpuinfo\": \"" RISCV_HART("1", "0x8000000000000007")
					     RISCV_HART("2", "0x8000000000000008") "\", ") "}");
	ck_assert(!ids[0].read && !ids[3].read);
	ck_assert_str_eq(says(1), "riscv 0x489/0x8000000000000007/0x4210427");
	ck_assert_str_eq(says(2), "riscv 0x489/0x8000000000000008/0x4210427");
}

TEST(the_call_is_believed_before_cpuinfo)
{
	read_text(MACHINE("riscv64", "\"/proc/cpuinfo\": \"" RISCV_HART("0", "0x7")
					     RISCV_HART("3", "0x7") "\", ") X60_HWPROBE);
	ck_assert_uint_eq(ids[0].mvendorid, 0x710);
	ck_assert_uint_eq(ids[3].mvendorid, 0x489);
}

TEST(registers_that_nobody_agrees_on_are_not_read)
{
	read_text(MACHINE("riscv64",
		"") ", \"hwprobe\": [{\"harts\": \"0-3\", \"mvendorid\": \"0xffffffffffffffff\", "
		    "\"marchid\": 1, \"mimpid\": 1}]}");
	for (int hart = 0; hart < N_HARTS; hart++)
		ck_assert(!ids[hart].read);
}

TEST(nonsense_in_cpuinfo_is_no_identity)
{
	static const char *const texts[] = {
		"",
		"\\n\\n\\n",
		":",
		"processor\\t: \\nmvendorid\\t: 0x1\\nmarchid\\t: 1\\nmimpid\\t: 1\\n",
		"processor\\t: -1\\nmvendorid\\t: 0x1\\nmarchid\\t: 1\\nmimpid\\t: 1\\n",
		"processor\\t: 4\\nmvendorid\\t: 0x1\\nmarchid\\t: 1\\nmimpid\\t: 1\\n",
		"processor\\t: 99999999999999999999\\nmvendorid\\t: 0x1\\nmarchid\\t: "
		"1\\nmimpid\\t: 1\\n",
		"processor\\t: 0\\nmvendorid\\t: 0x1\\nmarchid\\t: 1\\n",
		"processor\\t: 0\\nmvendorid\\t: zz\\nmarchid\\t: 1\\nmimpid\\t: 1\\n",
		"processor\\t: 0\\nmvendorid\\t: 0x11111111111111111\\nmarchid\\t: 1\\nmimpid\\t: "
		"1\\n",
		"processor\\t: 0\\nmvendorid\\t: 0x1 2\\nmarchid\\t: 1\\nmimpid\\t: 1\\n",
		"mvendorid\\t: 0x1\\nmarchid\\t: 1\\nmimpid\\t: 1\\n",
	};
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		char json[1024];
		snprintf(json, sizeof(json), MACHINE("riscv64", "\"/proc/cpuinfo\": \"%s\", ") "}",
			texts[i]);
		read_text(json);
		for (int hart = 0; hart < N_HARTS; hart++)
			ck_assert_msg(!ids[hart].read, "%s", texts[i]);
	}
}

/* --- Arm -------------------------------------------------------------------------------------- */

#define MIDR(hart, text)                                                                           \
	"\"/sys/devices/system/cpu/cpu" hart "/regs/identification/midr_el1\": \"" text "\", "

TEST(arm_harts_tell_their_register)
{
	read_text(MACHINE(
		"aarch64", MIDR("0", "0x00000000413fd0c1\\n") MIDR("3", "0x410fd034\\n")) "}");
	ck_assert_str_eq(says(0), "arm64 0x413fd0c1");
	ck_assert_str_eq(says(3), "arm64 0x410fd034");
	ck_assert(!ids[1].read);
}

TEST(without_sysfs_the_register_is_put_together_from_cpuinfo)
{
	read_text(MACHINE("aarch64",
		"\"/proc/cpuinfo\": \"processor\\t: 2\\nBogoMIPS\\t: 50.00\\nFeatures\\t: fp\\n"
		"CPU implementer\\t: 0x41\\nCPU architecture: 8\\nCPU variant\\t: 0x3\\n"
		"CPU part\\t: 0xd0c\\nCPU revision\\t: 1\\n\\n\", ") "}");
	ck_assert_str_eq(says(2), "arm64 0x413fd0c1");
	ck_assert(!ids[0].read);
}

TEST(a_register_that_is_no_number_is_not_read)
{
	read_text(MACHINE("aarch64", MIDR("0", "\\n") MIDR("1", "0x41zz\\n") MIDR("2", "-1\\n")
					     MIDR("3", "0x111111111111111111111\\n")) "}");
	for (int hart = 0; hart < N_HARTS; hart++)
		ck_assert(!ids[hart].read);
}

/* --- x86, and all ----------------------------------------------------------------------------- */

TEST(x86_harts_are_in_cpuinfo)
{
	read_text(MACHINE("x86_64",
		"\"/proc/cpuinfo\": \"processor\\t: 1\\nvendor_id\\t: GenuineIntel\\n"
		"cpu family\\t: 6\\nmodel\\t\\t: 85\\nmodel name\\t: Some CPU: fast\\n"
		"stepping\\t: 7\\n\\n\", ") "}");
	ck_assert_str_eq(says(1), "x86 GenuineIntel-6-55-7");
	ck_assert(!ids[0].read);
}

#define INTEL(hart)                                                                                \
	"processor\\t: " hart "\\nvendor_id\\t: GenuineIntel\\ncpu family\\t: 6\\n"                \
	"model\\t\\t: 151\\nstepping\\t: 2\\n\\n"
#define PMU(name, file, text) "\"/sys/bus/event_source/devices/" name "/" file "\": \"" text "\", "
#define HYBRID(pmus)                                                                               \
	MACHINE("x86_64",                                                                          \
		"\"/proc/cpuinfo\": \"" INTEL("0") INTEL("1") INTEL("2") INTEL("3") "\", " pmus)   \
	"}"

TEST(kinds_of_x86_harts_are_told_apart_by_their_pmu)
{
	read_text(HYBRID(PMU("cpu_core", "type", "4\\n") PMU("cpu_core", "cpus", "0-1\\n")
			PMU("cpu_atom", "type", "10\\n") PMU("cpu_atom", "cpus", "2\\n") PMU(
				"uncore_imc", "type", "11\\n") PMU("uncore_imc", "cpus", "3\\n")));
	ck_assert_str_eq(says(0), "x86 GenuineIntel-6-97-2 cpu_core");
	ck_assert_str_eq(says(2), "x86 GenuineIntel-6-97-2 cpu_atom");
	ck_assert_str_eq(says(3), "x86 GenuineIntel-6-97-2");
}

TEST(a_pmu_of_cores_that_cannot_be_read_is_none)
{
	static const char *const wrong[] = {
		HYBRID(PMU("cpu_core", "cpus", "0-3\\n")),
		HYBRID(PMU("cpu_core", "type", "4\\n")),
		HYBRID(PMU("cpu_core", "type", "4\\n") PMU("cpu_core", "cpus", "3-0\\n")),
		HYBRID(PMU("cpu_core", "type", "\\n") PMU("cpu_core", "cpus", "0-3\\n")),
		HYBRID(PMU("cpu_core", "type", "4x\\n") PMU("cpu_core", "cpus", "0-3\\n")),
		HYBRID(PMU("cpu_core", "type", "4294967296\\n") PMU("cpu_core", "cpus", "0-3\\n")),
		HYBRID(PMU("cpu_whose_name_is_far_too_long", "type", "4\\n")
				PMU("cpu_whose_name_is_far_too_long", "cpus", "0-3\\n")),
		HYBRID(PMU("cpu", "type", "4\\n") PMU("cpu", "cpus", "0-3\\n")),
	};
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		read_text(wrong[i]);
		ck_assert_str_eq(says(0), "x86 GenuineIntel-6-97-2");
	}
}

TEST(a_vendor_too_long_for_cpuid_is_none)
{
	read_text(MACHINE("x86_64",
		"\"/proc/cpuinfo\": \"processor\\t: 1\\nvendor_id\\t: GenuineIntelAndMore\\n"
		"cpu family\\t: 6\\nmodel\\t\\t: 85\\nstepping\\t: 7\\n\\n\", ") "}");
	ck_assert(!ids[1].read);
}

TEST(the_device_tree_is_told_to_every_hart)
{
	read_text(MACHINE("riscv64",
		"\"/proc/device-tree/compatible\": \"sipeed,lichee-pi-4a thead,th1520\", ") "}");
	for (int hart = 0; hart < N_HARTS; hart++)
		ck_assert_str_eq(ids[hart].compatible, "sipeed,lichee-pi-4a thead,th1520");
	read_text(MACHINE(
		"riscv64", "\"/sys/firmware/devicetree/base/compatible\": \"riscv-virtio\", ") "}");
	ck_assert_str_eq(ids[3].compatible, "riscv-virtio");
	read_text(MACHINE("riscv64", "") "}");
	ck_assert_str_eq(ids[0].compatible, "");
}

static ssize_t nul_text(void *u, const char *path, char *buffer, size_t size)
{
	static const char tree[] = "a,board\0b,chip\0";
	(void)u;
	if (!strstr(path, "compatible") || size < sizeof(tree))
		return -ENOENT;
	memcpy(buffer, tree, sizeof(tree));
	return sizeof(tree) - 1;
}

TEST(names_that_the_device_tree_ends_by_nul_are_set_apart_by_blanks)
{
	struct kernel k = {.read_text = nul_text};
	struct machine m = {.n_harts = 1, .arch = "riscv64"};
	hart_set_add(&m.online, 0);
	ck_assert_int_eq(identity_read(&k, &m, ids), 0);
	ck_assert_str_eq(ids[0].compatible, "a,board b,chip");
	ck_assert(!ids[0].read);
}

TEST(harts_that_are_offline_are_not_asked)
{
	read_text("{\"source\": \"made\", \"verified\": \"no\", \"files\": {"
		  "\"/sys/devices/system/cpu/possible\": \"0-3\\n\", "
		  "\"/sys/devices/system/cpu/online\": \"1\\n\", "
		  "\"/proc/sys/kernel/arch\": \"riscv64\\n\"}, \"rules\": [], "
		  "\"hwprobe\": [{\"harts\": \"0-3\", \"mvendorid\": 1, \"marchid\": 1, "
		  "\"mimpid\": 1}]}");
	ck_assert(!ids[0].read && ids[1].read && !ids[2].read && !ids[3].read);
}

TEST(an_architecture_that_we_do_not_know_has_no_identities)
{
	read_text(
		MACHINE("s390x", "\"/proc/cpuinfo\": \"processor\\t: 0\\nversion: FF\\n\", ") "}");
	ck_assert_int_eq(ids[0].arch, PLATFORM_ARCH_UNKNOWN);
	ck_assert(!ids[0].read);
}

TEST(boards_find_their_platforms)
{
	static const struct {
		const char *machine;
		int hart;
		const char *platform;
	} boards[] = {
		{"x60", 0, "spacemit-x60"},
		{"x60", 7, "spacemit-x60"},
		{"x60-mainline", 3, "spacemit-x60"},
		{"u74", 0, "sifive-u74"},
		{"c910", 0, "thead-c910"},
		{"k3-mixed", 0, "spacemit-x100"},
		{"k3-mixed", 15, "spacemit-a100"},
		{"alderlake", 0, "intel-goldencove"},
		{"alderlake", 3, "intel-goldencove"},
		{"alderlake", 4, "intel-gracemont"},
		{"alderlake", 5, "intel-gracemont"},
	};
	for (size_t i = 0; i < sizeof(boards) / sizeof(boards[0]); i++) {
		int n_harts = read_machine(boards[i].machine);
		ck_assert_int_gt(n_harts, boards[i].hart);
		ck_assert_msg(strcmp(platform_of(boards[i].hart), boards[i].platform) == 0,
			"hart %d of %s is %s", boards[i].hart, boards[i].machine,
			platform_of(boards[i].hart));
	}
}

TEST(this_machine_has_an_identity_for_each_hart_that_is_online)
{
	struct machine m;
	struct utsname u;
	ck_assert_int_eq(machine_read(&kernel_real, &m), 0);
	ck_assert_int_eq(identity_read(&kernel_real, &m, ids), 0);
	ck_assert_int_eq(uname(&u), 0);
	for (int hart = 0; hart < m.n_harts; hart++)
		if (hart_set_has(&m.online, hart) && strcmp(u.machine, "x86_64") == 0) {
			ck_assert(ids[hart].read);
			ck_assert_uint_eq(strlen(ids[hart].vendor), 12);
		}
}
