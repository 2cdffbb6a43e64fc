// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/*
 * Two threads whose stacks are never the same: noise FOLDER SECONDS
 *
 * Their frame pointers lead along made-up frames, whose return addresses are random ones in files
 * with long names, mapped from below FOLDER. So each sample is a hundred call sites that nobody has
 * seen before.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define FILES 16
#define FILE_BYTES (64u << 20) /* sparse */
#define FOLDERS 12             /* one in the other, each with a name of NAME_BYTES */
#define NAME_BYTES 240
#define FRAMES 120
#define ROUNDS 100000 /* of an empty loop, some 0.1 ms, between two chains */

struct frame {
	struct frame *next;
	uintptr_t back;
};

static char *code[FILES];
static time_t until;

static void die(const char *what)
{
	perror(what);
	exit(2);
}

static void map_files(const char *folder)
{
	char name[NAME_BYTES + 1];
	if (chdir(folder) < 0)
		die(folder);
	for (int i = 0; i < FOLDERS; i++) {
		memset(name, 'a' + i, NAME_BYTES);
		name[NAME_BYTES] = '\0';
		if ((mkdir(name, 0700) < 0) || chdir(name) < 0)
			die("folder");
	}
	for (int i = 0; i < FILES; i++) {
		snprintf(name, sizeof(name), "%0*d", NAME_BYTES, i);
		int fd = open(name, O_RDWR | O_CREAT, 0700);
		if (fd < 0 || ftruncate(fd, FILE_BYTES) < 0)
			die("file");
		code[i] = mmap(NULL, FILE_BYTES, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
		if (code[i] == MAP_FAILED)
			die("mmap");
		close(fd);
	}
}

/* Spin with the frame pointer at `frame`. The kernel finds its caller's at the place that the
 * architecture has for it. */
static void __attribute__((noinline)) spin(struct frame *frame)
{
	uintptr_t n = ROUNDS;
#if defined(__x86_64__)
	__asm__ volatile("push %%rbp\n mov %1, %%rbp\n 1: dec %0\n jnz 1b\n pop %%rbp"
			 : "+r"(n)
			 : "r"(frame)
			 : "cc", "memory");
#elif defined(__aarch64__)
	__asm__ volatile("mov x9, x29\n mov x29, %1\n 1: subs %0, %0, #1\n b.ne 1b\n mov x29, x9"
			 : "+r"(n)
			 : "r"(frame)
			 : "cc", "x9", "memory");
#elif defined(__riscv)
	__asm__ volatile("mv t0, s0\n addi s0, %1, 16\n 1: addi %0, %0, -1\n bnez %0, 1b\n mv s0, t0"
			 : "+r"(n)
			 : "r"(frame)
			 : "t0", "memory");
#else
#error "no frame pointer is known here"
#endif
}

static void *make_noise(void *seed)
{
	struct frame frame[FRAMES];
	unsigned state = (unsigned)(uintptr_t)seed;
	while (time(NULL) < until) {
		for (int i = 0; i < FRAMES; i++) {
			uint64_t at = (uint64_t)rand_r(&state) << 12 ^ (uint64_t)rand_r(&state);
			frame[i].next = i + 1 < FRAMES ? &frame[i + 1] : NULL;
			frame[i].back = (uintptr_t)code[at % FILES] + at / FILES % FILE_BYTES;
		}
		spin(frame);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	if (argc != 3)
		return 2;
	map_files(argv[1]);
	until = time(NULL) + atoi(argv[2]);
	puts("ready");
	fflush(stdout);
	pthread_t other;
	if (pthread_create(&other, NULL, make_noise, (void *)7) != 0)
		return 2;
	make_noise((void *)3);
	pthread_join(other, NULL);
	return 0;
}
