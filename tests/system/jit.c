/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * A program that runs code which is in no file: it copies the bytes of one of its own functions
 * into anonymous executable memory and runs them there. `map` says so in /tmp/perf-PID.map, `dump`
 * in a jitdump file, `quiet` nowhere, `late` in a map that it writes at its end. The second
 * argument is the time to run, in milliseconds. Source of both formats: Linux
 * tools/perf/Documentation/jit-interface.txt and jitdump-specification.txt.
 */
#include <elf.h>
#include <fcntl.h>
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

static uint64_t now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void write_map(const void *code)
{
	char path[64];
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)getpid());
	FILE *f = fopen(path, "w");
	if (!f)
		exit(3);
	fprintf(f, "%llx %x jitted_by_map\n", (unsigned long long)(uintptr_t)code, CODE_BYTES);
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

static void write_dump(const void *code)
{
	static const char name[] = "jitted_by_dump";
	char path[64];
	snprintf(path, sizeof(path), "/tmp/jit-%d.dump", (int)getpid());
	int fd = open(path, O_CREAT | O_TRUNC | O_RDWR | O_CLOEXEC, 0644);
	if (fd < 0)
		exit(3);
	struct dump_header header = {
		0x4A695444, 1, sizeof(header), EM_X86_64, 0, (uint32_t)getpid(), now_ns(), 0};
	struct dump_load load = {0, sizeof(load) + sizeof(name) + CODE_BYTES, now_ns(),
		(uint32_t)getpid(), (uint32_t)syscall(SYS_gettid), (uintptr_t)code, (uintptr_t)code,
		CODE_BYTES, 1};
	if (write(fd, &header, sizeof(header)) < 0 || write(fd, &load, sizeof(load)) < 0 ||
		write(fd, name, sizeof(name)) < 0 || write(fd, code, CODE_BYTES) < 0)
		exit(3);
	/* The mapping is the sign by which a profiler finds the file. */
	if (mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) == MAP_FAILED)
		exit(3);
}

int main(int argc, char **argv)
{
	if (argc < 3)
		return 2;
	void *code =
		mmap(NULL, CODE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (code == MAP_FAILED)
		return 3;
	memcpy(code, (const void *)(uintptr_t)spin, 256);
	if (mprotect(code, CODE_BYTES, PROT_READ | PROT_EXEC) < 0)
		return 3;
	__builtin___clear_cache((char *)code, (char *)code + CODE_BYTES);
	if (strcmp(argv[1], "map") == 0)
		write_map(code);
	if (strcmp(argv[1], "dump") == 0)
		write_dump(code);

	uint64_t (*jitted)(uint64_t, uint64_t);
	memcpy(&jitted, &code, sizeof(jitted));
	uint64_t x = 88172645463325252u, end = now_ns() + strtoull(argv[2], NULL, 10) * 1000000u;
	while (now_ns() < end)
		x = jitted(x, 100000);
	if (strcmp(argv[1], "late") == 0)
		write_map(code);
	return x == 0;
}
