/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* A program that sleeps with its stack pointer in a file that it has not read: who copies that stack, reads it. */

#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define BYTES 65536

int main(int argc, char *argv[])
{
	int fd = argc == 2 ? open(argv[1], O_RDONLY) : -1;
	char *memory = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);

	if (memory == MAP_FAILED) {
		perror("hanging_stack");
		return 77;
	}
	puts("ready");
	fflush(stdout);
#ifdef __x86_64__
	__asm__ volatile("mov %0, %%rsp\n\t"
			 "1: mov %1, %%eax\n\t"
			 "syscall\n\t"
			 "jmp 1b" ::"r"(memory + BYTES / 2),
		"i"(SYS_pause)
		: "memory", "rax", "rcx", "r11");
#endif
	return 77;
}
