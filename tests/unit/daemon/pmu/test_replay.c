/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* The replayed kernel is what the pmu tests stand on, so it is tested itself: that it reads only
 * machines that are well-formed, refuses what a kernel refuses, and writes records that the
 * station's own decoder reads.
 */

#include <dirent.h>
#include <errno.h>
#include <time.h>
#include <unistd.h>

#include "daemon/decode/record.h"
#include "daemon/kernel/ring.h"
#include "tests/unit/replay.h"
#include "tests/unit/test.h"

#define HEAD                                                                                       \
	"{\"source\":\"s\",\"verified\":\"no\",\"files\":{\"/sys/devices/system/cpu/online\":"     \
	"\"0-1\\n\",\"/proc/7/task/8/comm\":\"x\",\"/proc/7/task/9/comm\":\"y\","                  \
	"\"/proc/sys/kernel/perf_event_max_sample_rate\":\"500\\n\"}"
#define CLOCK_RULE "{\"type\":\"software\",\"config\":0,\"per_us\":1000,\"fires\":true}"

static struct replay *parse(const char *json)
{
	struct replay *r = NULL;
	struct replay_error error = {""};
	int outcome = replay_parse(json, &r, &error);
	ck_assert_msg(outcome == 0, "%s", error.text);
	return r;
}

static struct perf_event_attr clock_attr(void)
{
	return (struct perf_event_attr){
		.size = sizeof(struct perf_event_attr),
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_period = 1000000,
		.sample_type = STREAM_SAMPLE_ID | PERF_SAMPLE_IP,
		.sample_id_all = 1,
	};
}

static int open_attr(struct replay *r, struct perf_event_attr a, pid_t pid, int hart, int group)
{
	const struct kernel *k = replay_kernel(r);
	return k->event_open(k->userdata, &a, pid, hart, group, PERF_FLAG_FD_CLOEXEC);
}

/* --- reading machines ------------------------------------------------------------------------- */

TEST(every_machine_of_the_platforms_is_read)
{
	DIR *dir = opendir("tests/platforms");
	int n = 0;
	ck_assert_msg(dir != NULL, "run from the project's top folder");
	for (struct dirent *d = readdir(dir); d; d = readdir(dir)) {
		char path[512];
		if (!strstr(d->d_name, ".json"))
			continue;
		struct replay *r = NULL;
		struct replay_error error = {""};
		snprintf(path, sizeof(path), "tests/platforms/%s", d->d_name);
		ck_assert_msg(replay_load(path, &r, &error) == 0, "%s", error.text);
		ck_assert_uint_gt(strlen(replay_source(r)), 2);
		ck_assert_uint_gt(strlen(replay_verified(r)), 1);
		replay_free(r);
		n++;
	}
	closedir(dir);
	ck_assert_int_ge(n, 9);
}

static const struct {
	const char *json, *says;
} malformed[] = {
	{"", "text:1"},
	{"[]", "object"},
	{"{", "text:1"},
	{"{\"source\":\"a\",\"source\":\"b\"}", "text:1"},
	{"{\"source\":\"a\",\"verified\":\"no\"}", "online"},
	{"{\"verified\":\"no\"}", "source"},
	{"{\"source\":\"\"}", "source"},
	{"{\"source\":7}", "source"},
	{HEAD ",\"ruels\":[]}", "ruels"},
	{HEAD ",\"rules\":{}}", "array"},
	{HEAD ",\"rules\":[7]}", "object"},
	{HEAD ",\"rules\":[{}]}", "either"},
	{HEAD ",\"rules\":[{\"errno\":\"EINVAL\",\"fires\":true}]}", "either"},
	{HEAD ",\"rules\":[{\"errno\":\"EWHAT\"}]}", "EWHAT"},
	{HEAD ",\"rules\":[{\"type\":\"hard\",\"per_us\":1}]}", "hard"},
	{HEAD ",\"rules\":[{\"type\":4,\"per_us\":1}]}", "unknown type"},
	{HEAD ",\"rules\":[{\"type\":99999999999,\"per_us\":1}]}", "unknown type"},
	{HEAD ",\"rules\":[{\"typ\":\"raw\",\"per_us\":1}]}", "typ"},
	{HEAD ",\"rules\":[{\"config\":\"0xzz\",\"per_us\":1}]}", "0xzz"},
	{HEAD ",\"rules\":[{\"config\":-1,\"per_us\":1}]}", "config"},
	{HEAD ",\"rules\":[{\"harts\":\"3-1\",\"per_us\":1}]}", "harts"},
	{HEAD ",\"rules\":[{\"per_us\":-2}]}", "per_us"},
	{HEAD ",\"rules\":[{\"per_us\":\"2\"}]}", "per_us"},
	{HEAD ",\"rules\":[{\"fires\":1}]}", "fires"},
	{HEAD ",\"rules\":[{\"sampling\":\"yes\",\"per_us\":1}]}", "sampling"},
	{HEAD ",\"descriptors\":99999999999}", "descriptors"},
	{"{\"files\":{\"proc\":\"x\"}}", "proc"},
	{"{\"files\":{\"/proc\":7}}", "/proc"},
};

TEST(malformed_machines_are_refused_by_key, .times = sizeof(malformed) / sizeof(malformed[0]))
{
	struct replay *r = NULL;
	struct replay_error error = {""};
	ck_assert_int_eq(replay_parse(malformed[_i].json, &r, &error), -EINVAL);
	ck_assert_ptr_null(r);
	ck_assert_msg(strstr(error.text, malformed[_i].says) != NULL, "says: %s", error.text);
}

TEST(missing_file_is_named)
{
	struct replay *r = NULL;
	struct replay_error error = {""};
	ck_assert_int_eq(replay_load("tests/platforms/none.json", &r, &error), -EINVAL);
	ck_assert_ptr_nonnull(strstr(error.text, "none.json"));
}

/* --- refusing like a kernel ------------------------------------------------------------------- */

TEST(first_rule_that_fits_decides)
{
	struct replay *r =
		parse(HEAD ",\"rules\":[{\"harts\":\"1\",\"errno\":\"EBUSY\"}," CLOCK_RULE "]}");
	ck_assert_int_ge(open_attr(r, clock_attr(), -1, 0, -1), 0);
	ck_assert_int_eq(open_attr(r, clock_attr(), -1, 1, -1), -EBUSY);
	struct perf_event_attr a = clock_attr();
	a.type = PERF_TYPE_HARDWARE;
	ck_assert_int_eq(open_attr(r, a, -1, 0, -1), -ENOENT);
	replay_free(r);
}

TEST(what_every_kernel_refuses_is_refused)
{
	struct replay *r = parse(HEAD ",\"descriptors\":2,\"rules\":[" CLOCK_RULE "]}");
	struct perf_event_attr a = clock_attr();
	ck_assert_int_eq(open_attr(r, a, -1, 2, -1), -ENODEV);
	ck_assert_int_eq(open_attr(r, a, -1, -1, -1), -EINVAL);
	ck_assert_int_eq(open_attr(r, a, 4711, 0, -1), -ESRCH);
	a.freq = 1;
	a.sample_freq = 501;
	ck_assert_int_eq(open_attr(r, a, -1, 0, -1), -EINVAL);
	a.sample_freq = 500;
	int leader = open_attr(r, a, -1, 0, -1);
	ck_assert_int_ge(leader, 0);
	ck_assert_int_eq(open_attr(r, a, -1, 1, leader), -EINVAL);
	ck_assert_int_eq(open_attr(r, a, -1, 0, leader + 9), -EBADF);
	ck_assert_int_ge(open_attr(r, a, 8, 0, -1), 0);
	ck_assert_int_eq(open_attr(r, a, -1, 0, -1), -EMFILE);
	ck_assert_uint_eq(replay_n_events(r), 2);
	replay_free(r);
}

TEST(stray_calls_are_counted)
{
	struct replay *r = parse(HEAD ",\"rules\":[" CLOCK_RULE "]}");
	const struct kernel *k = replay_kernel(r);
	int fd = open_attr(r, clock_attr(), -1, 0, -1), error, page;
	k->event_close(k->userdata, fd);
	ck_assert_uint_eq(replay_n_stray(r), 0);
	k->event_close(k->userdata, fd);
	ck_assert_int_eq(k->event_ioctl(k->userdata, fd, PERF_EVENT_IOC_ENABLE, 0), -EBADF);
	ck_assert_ptr_null(k->ring_map(k->userdata, fd, 8192, &error));
	k->ring_unmap(k->userdata, &page, 8192);
	ck_assert_uint_eq(replay_n_stray(r), 4);
	replay_free(r);
}

TEST(failure_comes_at_the_position_asked_for)
{
	struct replay *r = parse(HEAD ",\"rules\":[" CLOCK_RULE "]}");
	replay_fail_open(r, 2, EMFILE);
	ck_assert_int_ge(open_attr(r, clock_attr(), -1, 0, -1), 0);
	ck_assert_int_eq(open_attr(r, clock_attr(), -1, 0, -1), -EMFILE);
	ck_assert_int_ge(open_attr(r, clock_attr(), -1, 0, -1), 0);
	ck_assert_uint_eq(replay_n_opens(r), 3);
	replay_free(r);
}

TEST(ring_memory_is_limited)
{
	struct replay *r = parse(HEAD ",\"locked_kb\":70,\"rules\":[" CLOCK_RULE "]}");
	const struct kernel *k = replay_kernel(r);
	int fd = open_attr(r, clock_attr(), -1, 0, -1), error = 0;
	ck_assert_ptr_null(k->ring_map(k->userdata, fd, 128 << 10, &error));
	ck_assert_int_eq(error, -EPERM);
	ck_assert_ptr_null(k->ring_map(k->userdata, fd, 12 << 10, &error));
	ck_assert_int_eq(error, -EINVAL);
	void *map = k->ring_map(k->userdata, fd, 64 << 10, &error);
	ck_assert_ptr_nonnull(map);
	ck_assert_uint_eq(replay_n_maps(r), 1);
	k->event_close(k->userdata, fd);
	ck_assert_uint_eq(replay_n_maps(r), 1); /* as a kernel's: until unmapped */
	k->ring_unmap(k->userdata, map, 64 << 10);
	ck_assert_uint_eq(replay_n_maps(r), 0);
	replay_free(r);
}

static void note_name(void *userdata, const char *name)
{
	strcat(userdata, name);
	strcat(userdata, " ");
}

TEST(folders_follow_from_files)
{
	struct replay *r = parse(HEAD "}");
	const struct kernel *k = replay_kernel(r);
	char names[256] = "", text[4];
	ck_assert_int_eq(k->list(k->userdata, "/proc/7/task", note_name, names), 0);
	ck_assert_str_eq(names, "8 9 ");
	names[0] = '\0';
	ck_assert_int_eq(k->list(k->userdata, "/proc/", note_name, names), 0);
	ck_assert_str_eq(names, "7 sys ");
	ck_assert_int_eq(k->list(k->userdata, "/proc/6", note_name, names), -ENOENT);
	ck_assert_int_eq(k->read_text(k->userdata, "/proc/7/task/8/comm", text, sizeof(text)), 1);
	ck_assert_int_eq(k->read_text(k->userdata, "/proc/sys/kernel/perf_event_max_sample_rate",
				 text, sizeof(text)),
		-E2BIG);
	replay_set_text(r, "/proc/7/task/8/comm", NULL);
	ck_assert_int_eq(
		k->read_text(k->userdata, "/proc/7/task/8/comm", text, sizeof(text)), -ENOENT);
	replay_free(r);
}

/* --- time and records ------------------------------------------------------------------------- */

static struct ring ring_of(struct replay *r, int fd, size_t data_bytes)
{
	const struct kernel *k = replay_kernel(r);
	int error;
	struct ring ring = {.data_bytes = data_bytes, .fd = fd};
	ring.map = k->ring_map(k->userdata, fd, data_bytes, &error);
	ck_assert_ptr_nonnull(ring.map);
	return ring;
}

static unsigned count_records(struct ring *ring, uint32_t type)
{
	const uint8_t *bytes;
	size_t n;
	unsigned found = 0;
	ring_snapshot(ring);
	while (ring_peek(ring, &bytes, &n) == 0) {
		found += ((const struct perf_event_header *)bytes)->type == type;
		ring_advance(ring);
	}
	ring_release(ring);
	return found;
}

#define MAX_SAMPLE_RATE "/proc/sys/kernel/perf_event_max_sample_rate"

/* At 1,000 a second under a limit of two per tick of 4 ms: samples of 40 ms. */
TEST(what_fires_too_often_in_a_tick_is_throttled, .times = 4)
{
	static const struct {
		enum replay_throttling how;
		unsigned n_samples, n_throttles;
	} kinds[] = {{REPLAY_THROTTLING_NOT_FIRST, 20, 10}, {REPLAY_THROTTLING_BEYOND, 30, 10},
		{REPLAY_THROTTLING_EVENTS, 20, 10}, {REPLAY_THROTTLING_GROUPS, 20, 10}};
	struct replay *r = parse(HEAD ",\"rules\":[" CLOCK_RULE "]}");
	replay_set_throttling(r, kinds[_i].how);
	int fd = open_attr(r, clock_attr(), -1, 0, -1);
	struct ring ring = ring_of(r, fd, 64 << 10);
	replay_run(r, 0, 8, 40000000);
	unsigned n[3] = {0};
	const uint8_t *bytes;
	size_t size;
	for (ring_snapshot(&ring); ring_peek(&ring, &bytes, &size) == 0; ring_advance(&ring)) {
		uint32_t type = ((const struct perf_event_header *)bytes)->type;
		n[0] += type == PERF_RECORD_SAMPLE;
		n[1] += type == PERF_RECORD_THROTTLE;
		n[2] += type == PERF_RECORD_UNTHROTTLE;
	}
	ck_assert_uint_eq(n[0], kinds[_i].n_samples);
	ck_assert_uint_eq(n[1], kinds[_i].n_throttles);
	ck_assert_uint_eq(n[2], kinds[_i].n_throttles);
	ring_clear(&ring);
	replay_free(r);
}

TEST(periods_come_out_as_set)
{
	struct replay *r = parse(HEAD ",\"rules\":[" CLOCK_RULE "]}");
	const struct kernel *k = replay_kernel(r);
	replay_set_text(r, MAX_SAMPLE_RATE, "100000\n");
	int fd = open_attr(r, clock_attr(), -1, 0, -1);
	struct ring ring = ring_of(r, fd, 64 << 10);
	replay_run(r, 0, 8, 20000000);
	replay_run(r, 1, 8, 20000000); /* another hart */
	ck_assert_uint_eq(count_records(&ring, PERF_RECORD_SAMPLE), 20);
	k->event_ioctl(k->userdata, fd, PERF_EVENT_IOC_DISABLE, 0);
	replay_run(r, 0, 8, 20000000);
	ck_assert_uint_eq(count_records(&ring, PERF_RECORD_SAMPLE), 0);
	ring_clear(&ring);
	replay_free(r);
}

TEST(silent_event_counts_and_never_fires)
{
	struct replay *r = parse(HEAD ",\"rules\":[{\"per_us\":1000}]}");
	const struct kernel *k = replay_kernel(r);
	int fd = open_attr(r, clock_attr(), -1, 0, -1);
	struct ring ring = ring_of(r, fd, 8192);
	uint64_t value = 0;
	k->spin(k->userdata, 0, 5000000);
	ck_assert_uint_eq(count_records(&ring, PERF_RECORD_SAMPLE), 0);
	ck_assert_int_eq(k->event_read(k->userdata, fd, &value, sizeof(value)), 8);
	ck_assert_uint_eq(value, 5000000);
	ring_clear(&ring);
	replay_free(r);
}

TEST(starving_sibling_stops_its_group)
{
	struct replay *r =
		parse(HEAD ",\"rules\":[{\"type\":\"hardware\",\"starves\":true}," CLOCK_RULE "]}");
	struct perf_event_attr a = clock_attr();
	int fd = open_attr(r, a, -1, 0, -1);
	struct ring ring = ring_of(r, fd, 8192);
	a.type = PERF_TYPE_HARDWARE;
	a.sample_period = 0;
	ck_assert_int_ge(open_attr(r, a, -1, 0, fd), 0);
	replay_run(r, 0, 0, 20000000);
	ck_assert_uint_eq(count_records(&ring, PERF_RECORD_SAMPLE), 0);
	ring_clear(&ring);
	replay_free(r);
}

TEST(full_ring_loses_and_tells)
{
	struct replay *r = parse(HEAD ",\"rules\":[" CLOCK_RULE "]}");
	int fd = open_attr(r, clock_attr(), -1, 0, -1);
	struct ring ring = ring_of(r, fd, (size_t)sysconf(_SC_PAGESIZE));
	replay_run(r, 0, 8, 1000000000);
	unsigned n = count_records(&ring, PERF_RECORD_SAMPLE);
	ck_assert_uint_lt(n, 1000);
	replay_run(r, 0, 8, 2000000);
	ck_assert_uint_eq(count_records(&ring, PERF_RECORD_LOST), 1);
	ck_assert_int_eq(replay_queue(r, 1, "x", 1), -ENOENT);
	ring_clear(&ring);
	replay_free(r);
}

TEST(samples_of_every_layout_decode, .times = 6)
{
	static const uint64_t layouts[] = {0, PERF_SAMPLE_READ, PERF_SAMPLE_CALLCHAIN,
		PERF_SAMPLE_CGROUP, PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_CGROUP,
		PERF_SAMPLE_READ | PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_REGS_USER |
			PERF_SAMPLE_STACK_USER | PERF_SAMPLE_CGROUP};
	struct replay *r = parse(HEAD ",\"rules\":[" CLOCK_RULE "]}");
	const struct kernel *k = replay_kernel(r);
	struct perf_event_attr a = clock_attr();
	a.sample_type |= PERF_SAMPLE_PERIOD | layouts[_i];
	a.read_format = PERF_FORMAT_GROUP | PERF_FORMAT_ID | PERF_FORMAT_TOTAL_TIME_ENABLED |
			PERF_FORMAT_TOTAL_TIME_RUNNING;
	a.sample_regs_user = 0xff0fff;
	a.sample_stack_user = 1024;
	int fd = open_attr(r, a, -1, 0, -1);
	struct ring ring = ring_of(r, fd, 64 << 10);
	replay_run(r, 0, 8, 1000000);

	struct stream stream = {.sample_type = a.sample_type,
		.read_format = a.read_format,
		.regs_user = a.sample_regs_user,
		.hart = 0,
		.role = STREAM_SAMPLER};
	struct stream_table table = {0};
	struct record record;
	const uint8_t *bytes;
	size_t n;
	k->event_ioctl(k->userdata, fd, PERF_EVENT_IOC_ID, (uintptr_t)&stream.id);
	ck_assert_int_eq(stream_table_add(&table, &stream), 0);
	ring_snapshot(&ring);
	ck_assert_int_eq(ring_peek(&ring, &bytes, &n), 0);
	ck_assert_int_eq(record_decode(bytes, n, &table, &record), 0);
	ck_assert_int_eq(record.kind, RECORD_SAMPLE);
	ck_assert_uint_eq(record.tid, 8);
	ck_assert_uint_eq(record.sample.period, 1000000);
	ck_assert_uint_eq(record.sample.n_read, layouts[_i] & PERF_SAMPLE_READ ? 1 : 0);
	ck_assert_uint_eq(record.sample.n_callchain, layouts[_i] & PERF_SAMPLE_CALLCHAIN ? 4 : 0);
	ck_assert_uint_eq(record.sample.n_stack, layouts[_i] & PERF_SAMPLE_STACK_USER ? 1024 : 0);
	ck_assert_uint_eq(record.sample.cgroup, layouts[_i] & PERF_SAMPLE_CGROUP ? 1 : 0);
	ring_clear(&ring);
	stream_table_clear(&table);
	replay_free(r);
}
