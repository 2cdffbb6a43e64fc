/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 */
#include "tests/unit/core_case.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

static struct core_case begin(struct replay *r, const char *platforms)
{
	struct core_case c = {.replay = r, .kernel = replay_kernel(r)};
	ck_assert_int_eq(cores_new(platforms ? platforms : PLATFORM_DATA, "", &c.cores), 0);
	ck_assert_int_eq(machine_read(c.kernel, &c.machine), 0);
	ck_assert_int_eq(cores_read(c.cores, c.kernel, &c.machine), 0);
	const char *error = cores_error(c.cores, 0);
	ck_assert_msg(!error, "%s", error);
	return c;
}

struct core_case core_case_of(const char *name)
{
	char path[128];
	struct replay *r = NULL;
	struct replay_error error = {""};
	snprintf(path, sizeof(path), "tests/platforms/%s.json", name);
	ck_assert_msg(replay_load(path, &r, &error) == 0, "%s", error.text);
	return begin(r, NULL);
}

struct core_case core_case_made(const char *json, const char *platforms)
{
	struct replay *r = NULL;
	struct replay_error error = {""};
	ck_assert_msg(replay_parse(json, &r, &error) == 0, "%s", error.text);
	return begin(r, platforms);
}

struct core_case core_case_riscv(const char *identity)
{
	char json[1024];
	snprintf(json, sizeof(json),
		"{\"source\":\"made\",\"verified\":\"no\",\"files\":{"
		"\"/sys/devices/system/cpu/online\":\"0-1\\n\","
		"\"/proc/sys/kernel/arch\":\"riscv64\\n\"},\"hwprobe\":[{\"harts\":\"0-1\",%s}],"
		"\"rules\":[{\"type\":\"hardware\",\"per_us\":1000},{\"type\":\"raw\",\"per_us\":1}"
		"]}",
		identity);
	return core_case_made(json, NULL);
}

void core_case_end(struct core_case *c)
{
	ck_assert_uint_eq(replay_n_events(c->replay), 0);
	ck_assert_uint_eq(replay_n_maps(c->replay), 0);
	ck_assert_uint_eq(replay_n_stray(c->replay), 0);
	cores_free(c->cores);
	replay_free(c->replay);
}

struct plan core_case_plan(const struct core_case *c, int hart, bool user_only)
{
	const struct ladder_options o = {
		.platform = cores_platform(c->cores, hart),
		.hz = 99,
		.user_only = user_only,
	};
	struct plan p;
	memset(&p, 0xa5, sizeof(p)); /* what is not set shows */
	ck_assert_int_eq(ladder_probe(c->kernel, &c->machine, hart, &o, &p), 0);
	ck_assert_uint_eq(replay_n_events(c->replay), 0);
	return p;
}

struct event_list core_case_events(const struct core_case *c, const char *text)
{
	struct event_list list = {0};
	struct event_error error = {""};
	int r = event_parse_for(c->kernel, c->cores, text, &list, &error);
	ck_assert_msg(r == 0, "%s", error.text);
	return list;
}

static void kind(const struct made_folder *f, const char *name, const char *title, int marchid,
	int code, const char *more)
{
	char file[64], json[2048];
	snprintf(file, sizeof(file), "%s.json", name);
	snprintf(json, sizeof(json),
		"{\"platform\":\"%s\",\"title\":\"%s\",\"arch\":\"riscv\",\"source\":\"made\","
		"\"verified\":\"no\",\"cpus\":[{\"arch\":\"riscv\",\"mvendorid\":\"0x9\","
		"\"marchid\":\"0x%x\",\"source\":\"made\",\"verified\":\"no\"}],\"events\":["
		"{\"code\":\"0x%x\",\"name\":\"own_cycles\",\"says\":\"cycles\","
		"\"topic\":\"cycles\",\"source\":\"made\",\"verified\":\"no\"}%s],\"quirks\":["
		"{\"quirk\":\"leader\",\"user\":\"own_cycles\",\"source\":\"made\","
		"\"verified\":\"no\"}]}\n",
		name, title, marchid, code, more);
	made_file(f, file, json);
}

struct core_case core_case_two_kinds(struct made_folder *folder)
{
	static const char machine[] =
		"{\"source\":\"made\",\"verified\":\"no\",\"files\":{"
		"\"/sys/devices/system/cpu/possible\":\"0-1\\n\","
		"\"/sys/devices/system/cpu/online\":\"0-1\\n\","
		"\"/proc/sys/kernel/perf_event_paranoid\":\"-1\\n\","
		"\"/proc/sys/kernel/perf_event_max_sample_rate\":\"100000\\n\","
		"\"/proc/sys/kernel/arch\":\"riscv64\\n\","
		"\"/proc/100/task/100/comm\":\"main\\n\"},"
		"\"hwprobe\":[{\"harts\":\"0\",\"mvendorid\":\"0x9\",\"marchid\":\"0x1\","
		"\"mimpid\":\"0x0\"},{\"harts\":\"1\",\"mvendorid\":\"0x9\","
		"\"marchid\":\"0x2\",\"mimpid\":\"0x0\"}],\"rules\":["
		"{\"type\":\"hardware\",\"sampling\":true,\"errno\":\"EOPNOTSUPP\"},"
		"{\"type\":\"hardware\",\"config\":0,\"per_us\":1000},"
		"{\"type\":\"hardware\",\"config\":1,\"per_us\":500},"
		"{\"type\":\"raw\",\"config\":\"0x22\",\"harts\":\"0\",\"per_us\":1000,"
		"\"fires\":true},"
		"{\"type\":\"raw\",\"config\":\"0x33\",\"harts\":\"1\",\"per_us\":800,"
		"\"fires\":true},"
		"{\"type\":\"raw\",\"config\":\"0x44\",\"harts\":\"0\",\"per_us\":7},"
		"{\"type\":\"raw\",\"config\":\"0x55\",\"harts\":\"0\",\"per_us\":50,"
		"\"fires\":true},"
		"{\"type\":\"raw\",\"config\":\"0x66\",\"harts\":\"1\",\"per_us\":60,"
		"\"fires\":true},"
		"{\"type\":\"software\",\"config\":0,\"per_us\":1000,\"fires\":true},"
		"{\"type\":\"software\",\"config\":3,\"per_us\":0.001,\"fires\":true},"
		"{\"type\":\"software\",\"config\":9,\"per_us\":0}]}";
	*folder = made_folder_new();
	kind(folder, "big", "Big", 1, 0x22,
		",{\"code\":\"0x44\",\"name\":\"big_only\",\"says\":\"x\",\"topic\":\"memory\","
		"\"source\":\"made\",\"verified\":\"no\"},{\"code\":\"0x55\",\"name\":\"loads\","
		"\"generic\":[\"L1-dcache-loads\"],\"says\":\"x\",\"topic\":\"memory\","
		"\"source\":\"made\",\"verified\":\"no\"}");
	kind(folder, "little", "Little", 2, 0x33,
		",{\"code\":\"0x66\",\"name\":\"loads\",\"generic\":[\"L1-dcache-loads\"],"
		"\"says\":\"x\",\"topic\":\"memory\",\"source\":\"made\",\"verified\":\"no\"}");
	return core_case_made(machine, folder->path);
}
