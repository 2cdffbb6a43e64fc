/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * A program that runs code which is in no file: it copies the bytes of one of its own functions
 * into anonymous executable memory and runs them there. `map` says so in /tmp/perf-PID.map, `dump`
 * in a jitdump file, `quiet` nowhere, `late` in a map that it writes at its end. `again-map`,
 * `again-dump` and `again-anew` (the whole map is written anew each time) put three functions there one
 * after the other, `again-move` also moves the first one away and runs it there. The second argument
 * is the time to run, in milliseconds; each of the three has as much of CPU time. Source of both formats: Linux
 * tools/perf/Documentation/jit-interface.txt and jitdump-specification.txt.
 */
#include <elf.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define CODE_BYTES 4096u

/* Position-independent, calls nothing: its bytes run anywhere. Bytes behind it are copied too and
 * never reached. */
__attribute__((noinline, aligned(64))) static uint64_t spin(uint64_t x, uint64_t n)
{
	for (uint64_t i = 0; i < n; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
	}
	return x;
}

static uint64_t clock_now_ns(clockid_t clock)
{
	struct timespec t;
	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static uint64_t now_ns(void)
{
	return clock_now_ns(CLOCK_MONOTONIC);
}

static void write_map(const void *code, const char *mode, const char *name)
{
	char path[64];
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)getpid());
	FILE *f = fopen(path, mode);
	if (!f)
		exit(3);
	fprintf(f, "%llx %x %s\n", (unsigned long long)(uintptr_t)code, CODE_BYTES, name);
	fclose(f);
}

struct dump_header {
	uint32_t magic, version, total_size, elf_mach, pad1, pid;
	uint64_t timestamp, flags;
};
struct dump_load {
	uint32_t id, total_size;
	uint64_t timestamp;
	uint32_t pid, tid;
	uint64_t vma, code_addr, code_size, code_index;
};

struct dump_move {
	uint32_t id, total_size;
	uint64_t timestamp;
	uint32_t pid, tid;
	uint64_t vma, old_code_addr, new_code_addr, code_size, code_index;
};

static void put(int fd, const void *bytes, size_t n)
{
	if (write(fd, bytes, n) != (ssize_t)n)
		exit(3);
}

static int open_dump(void)
{
	char path[64];
	snprintf(path, sizeof(path), "/tmp/jit-%d.dump", (int)getpid());
	int fd = open(path, O_CREAT | O_TRUNC | O_RDWR | O_CLOEXEC, 0644);
	if (fd < 0)
		exit(3);
	struct dump_header header = {
		0x4A695444, 1, sizeof(header), EM_X86_64, 0, (uint32_t)getpid(), now_ns(), 0};
	put(fd, &header, sizeof(header));
	return fd;
}

/* The mapping is the sign by which a profiler finds the file. */
static void show_dump(int fd)
{
	if (mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) == MAP_FAILED)
		exit(3);
}

static void put_load(int fd, const void *code, const char *name, uint64_t index)
{
	struct dump_load load = {0, (uint32_t)(sizeof(load) + strlen(name) + 1 + CODE_BYTES),
		now_ns(), (uint32_t)getpid(), (uint32_t)syscall(SYS_gettid), (uintptr_t)code,
		(uintptr_t)code, CODE_BYTES, index};
	put(fd, &load, sizeof(load));
	put(fd, name, strlen(name) + 1);
	put(fd, code, CODE_BYTES);
}

static void put_move(int fd, const void *from, const void *to, uint64_t index)
{
	struct dump_move move = {1, sizeof(move), now_ns(), (uint32_t)getpid(),
		(uint32_t)syscall(SYS_gettid), (uintptr_t)to, (uintptr_t)from, (uintptr_t)to,
		CODE_BYTES, index};
	put(fd, &move, sizeof(move));
}

static void write_dump(const void *code)
{
	int fd = open_dump();
	put_load(fd, code, "jitted_by_dump", 1);
	show_dump(fd);
}

static void *make_code(void)
{
	void *code =
		mmap(NULL, CODE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (code == MAP_FAILED)
		exit(3);
	memcpy(code, (const void *)(uintptr_t)spin, 256);
	if (mprotect(code, CODE_BYTES, PROT_READ | PROT_EXEC) < 0)
		exit(3);
	__builtin___clear_cache((char *)code, (char *)code + CODE_BYTES);
	return code;
}

static uint64_t run_code(const void *code, uint64_t ms, clockid_t clock)
{
	uint64_t (*jitted)(uint64_t, uint64_t);
	uint64_t x = 88172645463325252u, end = clock_now_ns(clock) + ms * 1000000u;

	memcpy(&jitted, &code, sizeof(jitted));
	while (clock_now_ns(clock) < end)
		x = jitted(x, 100000);
	return x;
}

static uint64_t run_again(const char *how, uint64_t ms)
{
	static const char *const name[] = {"generation_a", "generation_b", "generation_c"};
	const void *code = make_code(), *other = make_code();
	bool dumps = !strcmp(how, "dump") || !strcmp(how, "move");
	uint64_t x = 0;
	int fd = dumps ? open_dump() : -1;

	if (dumps)
		show_dump(fd);
	for (uint64_t i = 0; i < 3; i++) {
		if (!strcmp(how, "move") && i == 1) {
			put_move(fd, code, other, 0);
			x ^= run_code(other, ms, CLOCK_THREAD_CPUTIME_ID);
		}
		if (dumps)
			put_load(fd, code, name[i], i);
		else
			write_map(code, strcmp(how, "anew") ? "a" : "w", name[i]);
		x ^= run_code(code, ms, CLOCK_THREAD_CPUTIME_ID);
	}
	return x;
}

int main(int argc, char **argv)
{
	if (argc < 3)
		return 2;
	uint64_t ms = strtoull(argv[2], NULL, 10);
	if (!strncmp(argv[1], "again-", 6))
		return run_again(argv[1] + 6, ms) == 0;

	const void *code = make_code();
	if (strcmp(argv[1], "map") == 0)
		write_map(code, "w", "jitted_by_map");
	if (strcmp(argv[1], "dump") == 0)
		write_dump(code);
	uint64_t x = run_code(code, ms, CLOCK_MONOTONIC);
	if (strcmp(argv[1], "late") == 0)
		write_map(code, "w", "jitted_by_map");
	return x == 0;
}
