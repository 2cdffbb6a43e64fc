/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* A 32-bit program of known depth, as depth.c, which needs no C library of that width
 *
 *      narrow N TICKS   N calls of descend() lie between begin() and spin(), which runs so many
 *                       hundredths of a second
 *
 * Built by cc -m32 -ffreestanding -fno-stack-protector -nostdlib -static. From spin() to _start() lie N + 3 frames.
 */

#ifdef __i386__

#define NOT_INLINED __attribute__((noinline))

/* Source: arch/x86/entry/syscalls/syscall_32.tbl of Linux 6.12. */
enum { CALL_EXIT = 1, CALL_WRITE = 4, CALL_TIMES = 43 };

static volatile unsigned long sink;

static long call(long number, long first, const void *second, long third)
{
	long result;

	__asm__ volatile("int $0x80"
		: "=a"(result)
		: "0"(number), "b"(first), "c"(second), "d"(third)
		: "memory");
	return result;
}

static NOT_INLINED void spin(long ticks)
{
	call(CALL_WRITE, 1, "x", 1);
	const long from = call(CALL_TIMES, 0, 0, 0);
	while (call(CALL_TIMES, 0, 0, 0) - from < ticks)
		for (int i = 0; i < 100000; i++)
			sink += (unsigned long)i;
}

/* What follows the call keeps it from being a jump. */
static NOT_INLINED void descend(int depth, long ticks)
{
	volatile char room[40];

	room[depth % 40] = (char)depth;
	if (depth > 1)
		descend(depth - 1, ticks);
	else
		spin(ticks);
	sink += (unsigned long)room[depth % 40];
}

static long number(const char *text)
{
	long n = 0;

	while (*text >= '0' && *text <= '9')
		n = 10 * n + *text++ - '0';
	return n;
}

__attribute__((used, noreturn)) void begin(long *stack);
void begin(long *stack)
{
	const char *const *argument = (const char *const *)(stack + 1);

	descend(stack[0] > 1 ? (int)number(argument[1]) : 20,
		stack[0] > 2 ? number(argument[2]) : 6000);
	for (;;)
		call(CALL_EXIT, 0, 0, 0);
}

/* A start that has no caller, as that of a C library. Register 8 is the return address. */
__asm__(".globl _start\n"
	"_start:\n"
	".cfi_startproc\n"
	".cfi_undefined 8\n"
	"	xorl %ebp, %ebp\n"
	"	movl %esp, %eax\n"
	"	andl $-16, %esp\n"
	"	subl $12, %esp\n"
	"	pushl %eax\n"
	"	call begin\n"
	"	hlt\n"
	".cfi_endproc\n");

#endif
