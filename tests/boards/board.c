/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * A program for a board, of which everything is known.
 *
 *      board loop N     N turns of a loop of four instructions, in loop_of_four()
 *      board two N      the same in fast() and, of ten times as many turns, in slow()
 *      board calls N    the turns in loop_of_four(), and N / 100 system calls in call_kernel()
 *      board vector 0   prints how many bits a vector register has
 *      board spin MS    keeps a hart busy for MS ms of its own time
 *      board time N     prints how many ns N turns took
 *      board nobpf CMD  runs CMD on a kernel that does not know bpf(2)
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "turns.h"

__attribute__((noinline)) void loop_of_four(unsigned long n)
{
	turns(n);
}

__attribute__((noinline)) void fast(unsigned long n)
{
	turns(n);
}

__attribute__((noinline)) void slow(unsigned long n)
{
	turns(10 * n);
}

__attribute__((noinline)) void call_kernel(unsigned long n)
{
	while (n--)
		syscall(SYS_getppid);
}

static int print_vector_bits(void)
{
#if defined(__riscv)
	unsigned long bytes; /* vlenb; where there are no vectors, an illegal instruction */
	__asm__ volatile("csrr %0, 0xc22" : "=r"(bytes));
	return printf("%lu\n", 8 * bytes) < 0;
#else
	return 2;
#endif
}

static long used_ms(void)
{
	struct timespec t;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void print_time(unsigned long n)
{
	struct timespec begin, end;
	clock_gettime(CLOCK_MONOTONIC, &begin);
	loop_of_four(n);
	clock_gettime(CLOCK_MONOTONIC, &end);
	printf("%ld\n", (end.tv_sec - begin.tv_sec) * 1000000000l + end.tv_nsec - begin.tv_nsec);
}

static int run_without_bpf(char **command)
{
	struct sock_filter refuse[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_bpf, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {.len = sizeof(refuse) / sizeof(*refuse), .filter = refuse};
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0)
		return 3;
	execvp(command[0], command);
	return 3;
}

int main(int argc, char **argv)
{
	if (argc > 2 && strcmp(argv[1], "nobpf") == 0)
		return run_without_bpf(argv + 2);
	if (argc != 3)
		return 2;
	unsigned long n = strtoul(argv[2], NULL, 10);
	if (strcmp(argv[1], "loop") == 0) {
		loop_of_four(n);
	} else if (strcmp(argv[1], "two") == 0) {
		fast(n);
		slow(n);
	} else if (strcmp(argv[1], "calls") == 0) {
		loop_of_four(n);
		call_kernel(n / 100);
	} else if (strcmp(argv[1], "vector") == 0) {
		return print_vector_bits();
	} else if (strcmp(argv[1], "time") == 0) {
		print_time(n);
	} else if (strcmp(argv[1], "spin") == 0) {
		for (long until = used_ms() + (long)n; used_ms() < until;)
			loop_of_four(100000);
	} else {
		return 2;
	}
	return 0;
}
