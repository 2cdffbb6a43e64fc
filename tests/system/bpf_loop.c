/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* A BPF program that takes time
 *
 *      bpf_loop NAME MS   loads a socket filter of that name, a bounded loop, and runs it for so long by
 *                         BPF_PROG_TEST_RUN; says "x" once it runs. Exit status 77: the kernel does not load it.
 */

#include <linux/bpf.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define INSTRUCTION(op, to, jump, value)                                                           \
	{.code = (op), .dst_reg = (to), .off = (jump), .imm = (value)}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int load(const char *name)
{
	const struct bpf_insn program[] = {
		INSTRUCTION(BPF_ALU64 | BPF_MOV | BPF_K, 0, 0, 0),
		INSTRUCTION(BPF_ALU64 | BPF_MOV | BPF_K, 1, 0, 500),
		INSTRUCTION(BPF_ALU64 | BPF_ADD | BPF_K, 0, 0, 3),
		INSTRUCTION(BPF_ALU64 | BPF_ADD | BPF_K, 1, 0, -1),
		INSTRUCTION(BPF_JMP | BPF_JNE | BPF_K, 1, -3, 0),
		INSTRUCTION(BPF_ALU64 | BPF_MOV | BPF_K, 0, 0, 0),
		INSTRUCTION(BPF_JMP | BPF_EXIT, 0, 0, 0),
	};
	union bpf_attr a = {
		.prog_type = BPF_PROG_TYPE_SOCKET_FILTER,
		.insns = (uint64_t)(uintptr_t)program,
		.insn_cnt = sizeof(program) / sizeof(program[0]),
		.license = (uint64_t)(uintptr_t)"GPL",
	};

	strncpy(a.prog_name, name, sizeof(a.prog_name) - 1);
	return (int)syscall(SYS_bpf, BPF_PROG_LOAD, &a, sizeof(a));
}

int main(int argc, char *argv[])
{
	static char packet[64];
	const char *name = argc > 1 ? argv[1] : "my_bpf_loop";
	const double end = now() + (argc > 2 ? atof(argv[2]) : 500) * 1e-3;
	const int fd = load(name);

	if (fd < 0) {
		perror("bpf_loop");
		return 77;
	}
	if (write(STDOUT_FILENO, "x", 1) != 1)
		return 1;
	while (now() < end) {
		union bpf_attr a = {.test = {
					    .prog_fd = (uint32_t)fd,
					    .data_in = (uint64_t)(uintptr_t)packet,
					    .data_size_in = sizeof(packet),
					    .repeat = 2000,
				    }};
		if (syscall(SYS_bpf, BPF_PROG_TEST_RUN, &a, sizeof(a)) < 0)
			return 77;
	}
	return 0;
}
