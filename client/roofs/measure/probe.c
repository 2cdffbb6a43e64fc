/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * First what the hart and the kernel claim: CPUID and XCR0, HWCAP, hwprobe. Claims are not enough:
 * vendors' kernels announce the vectors of RVV 0.7.1 as V, and hwprobe of older kernels knows
 * neither Zvfh nor Zfh. So each kernel runs in a child with its results checked. If an illegal
 * instruction ends the child, another one goes on with the next kernel.
 */
#include "client/roofs/measure/probe.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#define CHILD_SECONDS 10 /* all checks take some 50 ms, under emulation a second */

/* --- claims: false if the hart certainly lacks it --------------------------------------------- */

#if defined(__x86_64__)
/* XCR0: which registers the kernel saves. Source: Intel SDM volume 1, 13.3: bits 1-2 for AVX, 5-7
 * for AVX-512. */
static bool saves(uint32_t mask)
{
	uint32_t low, high;
	__asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
	return (low & mask) == mask;
}

/* Source: Intel SDM volume 2A, CPUID, leaf 1 and leaf 7. */
static bool claims(enum need need, uint32_t number)
{
	unsigned a, b, c, d, b7, c7, d7;
	(void)number;
	if (need == NEED_NOTHING)
		return true;
	if (!__get_cpuid(1, &a, &b, &c, &d) || !__get_cpuid_count(7, 0, &a, &b7, &c7, &d7))
		return false;
	if (!(c & bit_OSXSAVE) || !(c & bit_AVX) || !(c & bit_FMA) || !saves(0x6))
		return false;
	const unsigned avx512 = bit_AVX512F | bit_AVX512DQ | bit_AVX512BW | bit_AVX512VL;
	switch (need) {
	case NEED_FMA:
		return true;
	case NEED_AVX2:
		return b7 & bit_AVX2;
	case NEED_AVX512:
		return (b7 & avx512) == avx512 && saves(0xe6);
	case NEED_AVX512_FP16:
		return (b7 & avx512) == avx512 && (d7 & 1u << 23) && saves(0xe6);
	default:
		return false;
	}
}
#elif defined(__aarch64__)
/* Source: arch/arm64/include/uapi/asm/hwcap.h of Linux 6.12. */
static bool claims(enum need need, uint32_t number)
{
	const unsigned long fphp = 1 << 9, asimdhp = 1 << 10, sve = 1 << 22;
	const unsigned long has = getauxval(AT_HWCAP);
	(void)number;
	return need == NEED_FP16  ? (has & (fphp | asimdhp)) == (fphp | asimdhp)
	       : need == NEED_SVE ? (has & sve) != 0
				  : true;
}
#else
/* Source: Documentation/arch/riscv/hwprobe.rst of Linux 6.12: key 4, bit 2 is V. Extensions unknown
 * to hwprobe are tried. */
static bool claims(enum need need, uint32_t number)
{
	struct {
		int64_t key;
		uint64_t value;
	} pair = {4, 0};
	cpu_set_t set;
	CPU_ZERO(&set);
	CPU_SET(number, &set);
	if (need != NEED_RVV && need != NEED_ZVFH)
		return true;
	long r = syscall(258 /* riscv_hwprobe */, &pair, 1ul, sizeof(set), &set, 0u);
	return r != 0 || pair.key != 4 || (pair.value & 1 << 2);
}
#endif

/* --- trying ----------------------------------------------------------------------------------- */

struct shared {
	_Atomic size_t next; /* the kernel that the child is about to run */
	struct probe probe[];
};

static void check_all(struct shared *s, uint32_t number)
{
	cpu_set_t set;
	struct rlimit none = {0, 0};
	CPU_ZERO(&set);
	CPU_SET(number, &set);
	sched_setaffinity(0, sizeof(set), &set);
	setrlimit(RLIMIT_CORE, &none);
	alarm(CHILD_SECONDS);
	for (; s->next < n_kernels; s->next++) {
		struct probe *p = &s->probe[s->next];
		if (!claims(kernels[s->next].need, number))
			continue;
		int r = kernel_check(&kernels[s->next], p->fault);
		p->verdict = r == 0 ? PROBE_RIGHT : PROBE_WRONG;
		if (r < 0)
			strcpy(p->fault, "out of memory");
	}
	_exit(0);
}

/* Kernels with the same need are illegal, too. */
static void mark_illegal(struct shared *s)
{
	enum need need = kernels[s->next].need;
	s->probe[s->next++].verdict = PROBE_ILLEGAL;
	while (s->next < n_kernels && kernels[s->next].need == need && need != NEED_NOTHING)
		s->probe[s->next++].verdict = PROBE_ILLEGAL;
}

int probe_kernels(uint32_t number, struct probe *ret_probe)
{
	size_t bytes = sizeof(struct shared) + n_kernels * sizeof(struct probe);
	struct shared *s =
		mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (s == MAP_FAILED)
		return -errno;
	int r = 0;
	while (r == 0 && s->next < n_kernels) {
		pid_t pid = fork();
		if (pid == 0)
			check_all(s, number);
		int status;
		if (pid < 0 || waitpid(pid, &status, 0) < 0)
			r = -errno;
		else if (!WIFEXITED(status))
			mark_illegal(s);
	}
	if (r == 0)
		memcpy(ret_probe, s->probe, n_kernels * sizeof(*ret_probe));
	munmap(s, bytes);
	return r;
}
