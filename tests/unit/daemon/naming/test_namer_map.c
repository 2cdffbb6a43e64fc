/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Naming generated code through the real workers: maps that are not there yet, that grow, that are
 * somebody else's, and the last look at them when all has run.
 */
#include <signal.h>
#include <unistd.h>

#include "daemon/naming/namer_private.h"
#include "proto/base/clock.h"
#include "tests/unit/namer_rig.h"
#include "tests/unit/test.h"

static struct namer_rig rig;

static void setup(void)
{
	namer_rig_begin(&rig, &(struct namer_options){0});
}

static void teardown(void)
{
	namer_rig_end(&rig);
}

EACH_TEST(.begin = setup, .end = teardown, .seconds = 60);

static void skip(const char *test, const char *reason)
{
	printf("SKIP %s: %s\n", test, reason);
	fflush(stdout);
}

TEST(perf_map_is_named_and_read_again_when_it_grew)
{
	char path[64];
	struct file *f = namer_rig_file(&rig, FILE_PERF_MAP, "[jit]");

	snprintf(path, sizeof(path), "/tmp/perf-%d.map", getpid());
	ck_assert_int_eq(namer_rig_shell("echo '500000 40 first()' > %s", path), 0);
	struct frame *first = namer_rig_name(&rig, f, 0x500010);
	ck_assert_str_eq(namer_rig_symbol(first), "first()");
	struct frame *none = namer_rig_name(&rig, f, 0x700000);
	ck_assert_int_eq(none->state, FRAME_ASKED); /* its line may still come */
	ck_assert_int_eq(namer_rig_shell("echo '600000 40 second()' >> %s", path), 0);
	ck_assert_str_eq(namer_rig_symbol(namer_rig_name(&rig, f, 0x600001)), "second()");
	ck_assert_uint_eq(namer_waiting(rig.namer), 0);
	ck_assert_int_eq(namer_ask_again(rig.namer), 0);
	ck_assert_uint_eq(namer_waiting(rig.namer), 1);
	ck_assert(namer_rig_run(&rig));
	ck_assert_int_eq(none->state, FRAME_OUT_OF_SYMBOL);
	ck_assert_uint_eq(f->symbols_out, 1);
	unlink(path);
}

/* What runs at an address at that time. */
static struct frame *frame_at(struct file *f, uint64_t addr, uint64_t time_ns)
{
	struct frame *frame;

	ck_assert_int_eq(frame_get_for(&rig.files, f, addr, time_ns, f->uid, &frame), 0);
	namer_sampled(rig.namer, f);
	ck_assert_int_eq(namer_name(rig.namer, frame, f->uid), 0);
	ck_assert(namer_rig_run(&rig));
	return frame;
}

static void look(void)
{
	ck_assert_int_eq(namer_look(rig.namer, clock_ns(CLOCK_MONOTONIC)), 0);
	ck_assert(!namer_has_sampled(rig.namer));
	ck_assert(namer_rig_run(&rig));
}

TEST(address_that_is_used_again_has_a_frame_for_each_name)
{
	char path[64];
	struct file *f = namer_rig_file(&rig, FILE_PERF_MAP, "[jit]");

	snprintf(path, sizeof(path), "/tmp/perf-%d.map", getpid());
	ck_assert_int_eq(namer_rig_shell("echo '500000 40 first()' > %s", path), 0);
	struct frame *first = frame_at(f, 0x500010, clock_ns(CLOCK_MONOTONIC));
	ck_assert_str_eq(namer_rig_symbol(first), "first()");
	uint64_t before_ns = clock_ns(CLOCK_MONOTONIC);
	look();
	namer_sampled(rig.namer, f);
	/* the kernel's times of files are a tick late */
	ck_assert_int_eq(namer_rig_shell("sleep 0.02; echo '500000 40 second()' >> %s", path), 0);
	uint64_t after_ns = clock_ns(CLOCK_MONOTONIC);
	look();
	ck_assert_ptr_eq(frame_at(f, 0x500010, before_ns), first);
	/* not seen before, and named only now: what it was then */
	ck_assert_str_eq(namer_rig_symbol(frame_at(f, 0x500018, before_ns)), "first()");
	ck_assert_str_eq(namer_rig_symbol(frame_at(f, 0x500010, after_ns)), "second()");
	ck_assert_str_eq(namer_rig_symbol(frame_at(f, 0x500018, after_ns)), "second()");
	ck_assert_str_eq(namer_rig_symbol(first), "first()");
	unlink(path);
}

/* One write, as of a compiler that fills a buffer; one function without code behind it. */
static void dump_load(FILE *dump, uint64_t time_ns, uint64_t addr, const char *name)
{
	struct {
		uint32_t id, bytes;
		uint64_t time_ns;
		uint32_t pid, tid;
		uint64_t vma, addr, size, index;
	} load = {.time_ns = time_ns, .vma = addr, .addr = addr, .size = 64};
	static const char code[64];

	load.bytes = (uint32_t)(sizeof(load) + strlen(name) + 1 + sizeof(code));
	fwrite(&load, sizeof(load), 1, dump);
	fwrite(name, strlen(name) + 1, 1, dump);
	fwrite(code, sizeof(code), 1, dump);
}

/* The reading was late: the first function had another in its place by then. */
TEST(jitdump_is_named_by_its_times_from_the_first_sample_on)
{
	char path[64];
	struct {
		uint32_t magic, version, bytes, machine, pad, pid;
		uint64_t time_ns, flags;
	} head = {0x4A695444, 1, sizeof(head), 62, 0, (uint32_t)getpid(), 1, 0};
	uint64_t now_ns = clock_ns(CLOCK_MONOTONIC), at_ns[4];

	snprintf(path, sizeof(path), "/tmp/jit-%d.dump", getpid());
	FILE *dump = fopen(path, "we");
	ck_assert_ptr_nonnull(dump);
	fwrite(&head, sizeof(head), 1, dump);
	for (int i = 0; i < 4; i++) {
		char name[24];
		snprintf(name, sizeof(name), "code_%d", i);
		at_ns[i] = now_ns - (uint64_t)(4 - i) * 1000000;
		dump_load(dump, at_ns[i], 0x500000, name);
	}
	dump_load(dump, at_ns[1], 0x600000, "alone");
	ck_assert_int_eq(fclose(dump), 0);
	struct file *f = namer_rig_file(&rig, FILE_JITDUMP, path);
	ck_assert_ptr_nonnull(f);
	/* the first sample: code_1 had replaced code_0 before */
	struct frame *first = frame_at(f, 0x500010, at_ns[1] + 1000);
	ck_assert_str_eq(namer_rig_symbol(first), "code_1");
	ck_assert_str_eq(namer_rig_symbol(frame_at(f, 0x600010, at_ns[1] + 2000)), "alone");
	ck_assert_ptr_eq(frame_at(f, 0x500010, at_ns[2] - 1000), first);
	ck_assert_str_eq(namer_rig_symbol(frame_at(f, 0x500010, at_ns[2] + 1000)), "code_2");
	ck_assert_str_eq(namer_rig_symbol(frame_at(f, 0x500020, at_ns[3] + 1000)), "code_3");
	ck_assert_str_eq(namer_rig_symbol(frame_at(f, 0x600020, at_ns[3] + 2000)), "alone");
	unlink(path);
}

TEST(perf_map_that_grows_at_each_step_is_named_all_the_same)
{
	char path[64];
	struct file *f = namer_rig_file(&rig, FILE_PERF_MAP, "[jit]");

	snprintf(path, sizeof(path), "/tmp/perf-%d.map", getpid());
	ck_assert_int_eq(namer_rig_shell("echo '500000 40 first()' > %s", path), 0);
	FILE *map = fopen(path, "ae");
	ck_assert_ptr_nonnull(map);
	struct frame *first = namer_rig_frame(&rig, f, 0x500010);
	pid_t parser = 0;
	for (int i = 0; i < 1000 && first->state == FRAME_ASKED; i++) {
		parser = namer_rig_one_answer(&rig);
		fprintf(map, "600000 40 more_%d\n", i);
		ck_assert_int_eq(fflush(map), 0);
		namer_rig_step(&rig, 0);
	}
	if (parser > 0)
		kill(parser, SIGCONT);
	ck_assert_str_eq(namer_rig_symbol(first), "first()");
	fclose(map);
	unlink(path);
}

/* One that came after it had the last descriptor. */
TEST(perf_map_that_was_closed_is_opened_again_when_it_is_sampled)
{
	char path[64];
	struct file *f = namer_rig_file(&rig, FILE_PERF_MAP, "[jit]");

	snprintf(path, sizeof(path), "/tmp/perf-%d.map", getpid());
	ck_assert_int_eq(namer_rig_shell("echo '500000 40 first()' > %s", path), 0);
	struct frame *first = frame_at(f, 0x500010, clock_ns(CLOCK_MONOTONIC));
	look();
	ck_assert(slot_evict(rig.namer, rig.namer->users.user[0]));
	ck_assert_int_eq(namer_rig_shell("sleep 0.02; echo '500000 40 second()' >> %s", path), 0);
	namer_sampled(rig.namer, f);
	look();
	struct frame *second = frame_at(f, 0x500010, clock_ns(CLOCK_MONOTONIC));
	ck_assert_str_eq(namer_rig_symbol(first), "first()");
	ck_assert_str_eq(namer_rig_symbol(second), "second()");
	unlink(path);
}

TEST(name_that_comes_later_is_given_to_what_ran_before)
{
	char path[64];
	struct file *f = namer_rig_file(&rig, FILE_PERF_MAP, "[jit]");

	snprintf(path, sizeof(path), "/tmp/perf-%d.map", getpid());
	ck_assert_int_eq(namer_rig_shell("echo '500000 40 first()' > %s", path), 0);
	struct frame *none = frame_at(f, 0x600010, clock_ns(CLOCK_MONOTONIC));
	ck_assert_int_eq(none->state, FRAME_ASKED);
	ck_assert_int_eq(namer_rig_shell("echo '600000 40 late()' >> %s", path), 0);
	namer_sampled(rig.namer, f);
	look();
	ck_assert_str_eq(namer_rig_symbol(none), "late()");
	ck_assert_ptr_eq(frame_at(f, 0x600010, clock_ns(CLOCK_MONOTONIC)), none);
	unlink(path);
}

TEST(parser_that_was_killed_does_not_forget_what_was_named)
{
	char path[64];
	struct namer_status status;
	struct file *f = namer_rig_file(&rig, FILE_PERF_MAP, "[jit]");

	snprintf(path, sizeof(path), "/tmp/perf-%d.map", getpid());
	ck_assert_int_eq(namer_rig_shell("echo '500000 40 first()' > %s", path), 0);
	struct frame *first = frame_at(f, 0x500010, clock_ns(CLOCK_MONOTONIC));
	/* written anew: the next parser knows nothing of the first */
	ck_assert_int_eq(namer_rig_shell("echo '500000 40 second()' > %s", path), 0);
	namer_sampled(rig.namer, f);
	look();
	struct frame *second = frame_at(f, 0x500010, clock_ns(CLOCK_MONOTONIC));
	namer_status(rig.namer, &status);
	kill(status.parser.pid, SIGKILL);
	ck_assert_int_eq(namer_rig_shell("echo '500000 40 third()' >> %s", path), 0);
	for (int i = 0; i < 2; i++) {
		namer_sampled(rig.namer, f);
		look();
	}
	struct frame *third = frame_at(f, 0x500010, clock_ns(CLOCK_MONOTONIC));
	ck_assert_str_eq(namer_rig_symbol(first), "first()");
	ck_assert_str_eq(namer_rig_symbol(second), "second()");
	ck_assert_str_eq(namer_rig_symbol(third), "third()");
	unlink(path);
}

TEST(map_that_was_written_anew_while_no_parser_had_it_has_other_code)
{
	char path[64];
	struct namer_status status;
	struct file *f = namer_rig_file(&rig, FILE_PERF_MAP, "[jit]");

	snprintf(path, sizeof(path), "/tmp/perf-%d.map", getpid());
	ck_assert_int_eq(namer_rig_shell("echo '500000 40 first()' > %s", path), 0);
	struct frame *first = frame_at(f, 0x500010, clock_ns(CLOCK_MONOTONIC));
	namer_sampled(rig.namer, f);
	look();
	namer_status(rig.namer, &status);
	kill(status.parser.pid, SIGKILL);
	/* as many lines, as long: nothing else tells them apart */
	ck_assert_int_eq(namer_rig_shell("sleep 0.02; echo '500000 40 other()' > %s", path), 0);
	for (int i = 0; i < 2; i++) {
		namer_sampled(rig.namer, f);
		look();
	}
	struct frame *other = frame_at(f, 0x500010, clock_ns(CLOCK_MONOTONIC));
	ck_assert_str_eq(namer_rig_symbol(first), "first()");
	ck_assert_str_eq(namer_rig_symbol(other), "other()");
	unlink(path);
}

/* Asks for a frame before there is a line for it, has it written by a shell command, and asks again
 * at the end. */
static struct frame *name_late(const char *before, const char *after)
{
	char path[64];
	struct file *f = namer_rig_file(&rig, FILE_PERF_MAP, "[jit]");

	snprintf(path, sizeof(path), "/tmp/perf-%d.map", getpid());
	unlink(path);
	ck_assert_int_eq(namer_rig_shell("P=%s; %s", path, before), 0);
	struct frame *frame = namer_rig_name(&rig, f, 0x500010);
	ck_assert_int_eq(frame->state, FRAME_ASKED);
	ck_assert_int_eq(namer_rig_shell("P=%s; %s", path, after), 0);
	ck_assert(namer_idle(rig.namer));
	ck_assert_int_eq(namer_ask_again(rig.namer), 0);
	ck_assert(namer_rig_run(&rig));
	ck_assert_uint_eq(rig.n_named, 1);
	ck_assert_uint_eq(namer_waiting(rig.namer), 0);
	unlink(path);
	return frame;
}

TEST(perf_map_that_is_written_at_the_end_names_what_ran_before)
{
	ck_assert_str_eq(
		namer_rig_symbol(name_late(":", "echo '500000 40 late()' > $P")), "late()");
}

TEST(perf_map_that_grows_at_the_end_names_what_ran_before)
{
	ck_assert_str_eq(namer_rig_symbol(name_late(
				 "echo '1000 40 x' > $P", "echo '500000 40 grown()' >> $P")),
		"grown()");
}

/* Of the same length: only who opens and reads it anew sees the difference. */
TEST(perf_map_that_is_exchanged_at_the_end_names_what_ran_before)
{
	ck_assert_str_eq(namer_rig_symbol(name_late("echo '100000 40 x()' > $P",
				 "echo '500000 40 y()' > $P.new && mv $P.new $P")),
		"y()");
}

TEST(perf_map_half_written_is_read_again_at_the_end)
{
	ck_assert_str_eq(
		namer_rig_symbol(name_late("printf 50 > $P", "printf '0000 40 z()\\n' >> $P")),
		"z()");
}

TEST(perf_map_that_is_gone_at_the_end_leaves_what_was_open)
{
	ck_assert_str_eq(namer_rig_symbol(name_late("echo '1000 40 x' > $P",
				 "echo '500000 40 last()' >> $P && rm $P")),
		"last()");
}

TEST(perf_map_that_never_comes_ends_unnamed)
{
	ck_assert_int_eq(name_late(":", ":")->state, FRAME_UNNAMED);
}

TEST(perf_map_of_a_former_program_is_not_asked_again)
{
	char path[64];
	struct file *f = namer_rig_file(&rig, FILE_PERF_MAP, "[jit]");

	snprintf(path, sizeof(path), "/tmp/perf-%d.map", getpid());
	unlink(path);
	struct frame *frame = namer_rig_name(&rig, f, 0x500010);
	f->replaced = true; /* exec */
	ck_assert_int_eq(namer_rig_shell("echo '500000 40 next()' > %s", path), 0);
	ck_assert_int_eq(namer_ask_again(rig.namer), 0);
	ck_assert(namer_rig_run(&rig));
	ck_assert_int_eq(frame->state, FRAME_UNNAMED);
	ck_assert_uint_eq(namer_waiting(rig.namer), 0);
	unlink(path);
}

/* A recording that waits for names must not wait for these. */
static void check_late(const char *command, enum file_state state)
{
	char path[64];
	struct file *f = namer_rig_file(&rig, FILE_PERF_MAP, "[jit]");

	snprintf(path, sizeof(path), "/tmp/perf-%d.map", getpid());
	unlink(path);
	ck_assert_int_eq(namer_rig_shell("P=%s; %s", path, command), 0);
	struct frame *frame = namer_rig_frame(&rig, f, 0x500010);
	ck_assert(frame_is_awaited(frame));
	ck_assert(namer_rig_run(&rig));
	ck_assert_int_eq(f->state, state);
	ck_assert_int_eq(frame->state, FRAME_ASKED);
	ck_assert(!frame_is_awaited(frame));
	ck_assert_int_eq(namer_ask_again(rig.namer), 0);
	ck_assert(frame_is_awaited(frame));
	ck_assert(namer_rig_run(&rig));
	ck_assert(!frame_is_awaited(frame));
	unlink(path);
}

TEST(frame_of_a_perf_map_that_is_missing_is_not_awaited)
{
	check_late(":", FILE_VANISHED);
}

TEST(frame_of_a_perf_map_that_is_refused_is_not_awaited)
{
	if (geteuid() != 0) {
		skip("frame_of_a_perf_map_that_is_refused_is_not_awaited", "chown needs root");
		return;
	}
	check_late("echo '500000 40 forged()' > $P; chown 12345 $P", FILE_REFUSED);
}

TEST(perf_map_of_another_user_is_refused)
{
	char path[64];
	struct file *f = namer_rig_file(&rig, FILE_PERF_MAP, "[jit]");

	if (geteuid() != 0) {
		skip("perf_map_of_another_user_is_refused", "chown needs root");
		return;
	}
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", getpid());
	ck_assert_int_eq(
		namer_rig_shell("echo '500000 40 forged()' > %s; chown 12345 %s", path, path), 0);
	ck_assert_int_eq(namer_ask_again(rig.namer), 0);
	ck_assert_int_eq(namer_rig_name(&rig, f, 0x500010)->state, FRAME_UNNAMED);
	ck_assert_int_eq(f->state, FILE_REFUSED);
	unlink(path);
}

TEST(perf_map_that_is_a_link_is_refused)
{
	char path[64];
	struct file *f = namer_rig_file(&rig, FILE_PERF_MAP, "[jit]");

	snprintf(path, sizeof(path), "/tmp/perf-%d.map", getpid());
	ck_assert_int_eq(namer_rig_shell("echo '500000 40 linked()' > '%s/m'; ln -s '%s/m' %s",
				 rig.dir, rig.dir, path),
		0);
	ck_assert_int_eq(namer_ask_again(rig.namer), 0);
	ck_assert_int_eq(namer_rig_name(&rig, f, 0x500010)->state, FRAME_UNNAMED);
	unlink(path);
}
