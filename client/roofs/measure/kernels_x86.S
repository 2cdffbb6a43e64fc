/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Kernels of x86-64; kernel.h says what each does, kernels_x86.inc what each counts.
 *
 * Additions alternate with subtractions, and multiplications with their inverse, so that values
 * stay near 1 however long it runs: infinities and denormal numbers may take another time. The
 * chains outnumber latency times pipes of every core known to us (4 cycles, 2 pipes). Kernels of
 * three streams load for one or four vectors, then store these: if they alternate by eight, loads and
 * stores use their ports by turns. Zen 4, triad in L1: AVX2 354 GB/s by one, 334 by two, 270 by eight;
 * AVX-512 284, 284 and 277, but 299 by four.
 */
#if defined(__x86_64__)

	.text

.macro FUNCTION name
	.globl	\name
	.hidden	\name
	.type	\name, @function
	.p2align 6
\name:
.endm

.macro END name
	ret
	.size	\name, . - \name
.endm

/* Upper halves of registers that were used slow down SSE code later. */
.macro END_OF name, reg
	.ifnc	\reg, xmm
	vzeroupper
	.endif
END \name
.endm

/* --- computing: rdi passes, rsi operands x a b of 64 bytes each, rdx results ---------------------- */

#define CHAINS_12 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11

/* x = x OP1 a, x = x OP2 b; 12 chains in registers of 16 bytes. */
.macro COMPUTE_SSE name, op1, op2
FUNCTION \name
	movaps	64(%rsi), %xmm14
	movaps	128(%rsi), %xmm15
	.irp	i, CHAINS_12
	movaps	(%rsi), %xmm\i
	.endr
	mov	%rdi, %rax
	.p2align 5
1:
	.irp	i, CHAINS_12
	\op1	%xmm14, %xmm\i
	.endr
	.irp	i, CHAINS_12
	\op2	%xmm15, %xmm\i
	.endr
	dec	%rdi
	jnz	1b
	.irp	i, CHAINS_12
	movups	%xmm\i, \i*16(%rdx)
	.endr
END \name
.endm

/* With three operands: registers `reg` of `bytes` bytes; a and b are in those of number `na` and `nb`. */
.macro OPERANDS reg, bytes, na, nb, chains:vararg
	vmovups	64(%rsi), %\reg\na
	vmovups	128(%rsi), %\reg\nb
	.irp	i, \chains
	vmovups	(%rsi), %\reg\i
	.endr
	mov	%rdi, %rax
	.p2align 5
1:
.endm

.macro RESULTS reg, bytes, na, nb, chains:vararg
	dec	%rdi
	jnz	1b
	.irp	i, \chains
	vmovups	%\reg\i, \i*\bytes(%rdx)
	.endr
.endm

/* x = x OP1 a, x = x OP2 b */
.macro COMPUTE_AVX name, op1, op2, reg, bytes, na, nb, chains:vararg
FUNCTION \name
	OPERANDS \reg, \bytes, \na, \nb, \chains
	.irp	i, \chains
	\op1	%\reg\na, %\reg\i, %\reg\i
	.endr
	.irp	i, \chains
	\op2	%\reg\nb, %\reg\i, %\reg\i
	.endr
	RESULTS \reg, \bytes, \na, \nb, \chains
END_OF \name, \reg
.endm

/* x = x * a + b, twice. */
.macro COMPUTE_FMA name, op, reg, bytes, na, nb, chains:vararg
FUNCTION \name
	OPERANDS \reg, \bytes, \na, \nb, \chains
	.rept	2
	.irp	i, \chains
	\op	%\reg\nb, %\reg\na, %\reg\i
	.endr
	.endr
	RESULTS \reg, \bytes, \na, \nb, \chains
END_OF \name, \reg
.endm

#define XMM xmm, 16, 14, 15, CHAINS_12
#define YMM ymm, 32, 14, 15, CHAINS_12
#define ZMM zmm, 64, 30, 31, CHAINS_12, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23

/* Whole numbers in 8 general registers, 16 operations each. */
.macro COMPUTE_GPR name, op1, op2, bytes, a, b, r0, r1, r2, r3, r4, r5, r6, r7
FUNCTION \name
	push	%rbx
	push	%rbp
	push	%rdi
	push	%rdx
	mov	(%rsi), %rax
	.irp	r, rbx, rbp, r8, r9, r10, r11, rcx
	mov	%rax, %\r
	.endr
	mov	64(%rsi), %rdx
	mov	128(%rsi), %rsi
	.p2align 5
1:
	.rept	8
	.irp	r, \r0, \r1, \r2, \r3, \r4, \r5, \r6, \r7
	\op1	%\a, %\r
	.endr
	.irp	r, \r0, \r1, \r2, \r3, \r4, \r5, \r6, \r7
	\op2	%\b, %\r
	.endr
	.endr
	dec	%rdi
	jnz	1b
	pop	%rdx
	.irp	r, \r0, \r1, \r2, \r3, \r4, \r5, \r6, \r7
	mov	%\r, (%rdx)
	add	$\bytes, %rdx
	.endr
	pop	%rax
	pop	%rbp
	pop	%rbx
END \name
.endm

#define QUADS 8, rdx, rsi, rax, rbx, rbp, r8, r9, r10, r11, rcx
#define LONGS 4, edx, esi, eax, ebx, ebp, r8d, r9d, r10d, r11d, ecx
COMPUTE_GPR roof_scalar_i64_add, add, add, QUADS
COMPUTE_GPR roof_scalar_i64_mul, imul, imul, QUADS
COMPUTE_GPR roof_scalar_i64_mix, imul, add, QUADS
COMPUTE_GPR roof_scalar_i32_add, add, add, LONGS
COMPUTE_GPR roof_scalar_i32_mul, imul, imul, LONGS
COMPUTE_GPR roof_scalar_i32_mix, imul, add, LONGS

COMPUTE_SSE roof_scalar_f64_add, addsd, subsd
COMPUTE_SSE roof_scalar_f64_mul, mulsd, mulsd
COMPUTE_SSE roof_scalar_f64_mix, mulsd, addsd
COMPUTE_FMA roof_scalar_f64_fma, vfmadd213sd, XMM
COMPUTE_SSE roof_scalar_f32_add, addss, subss
COMPUTE_SSE roof_scalar_f32_mul, mulss, mulss
COMPUTE_SSE roof_scalar_f32_mix, mulss, addss
COMPUTE_FMA roof_scalar_f32_fma, vfmadd213ss, XMM

COMPUTE_SSE roof_sse2_f64_add, addpd, subpd
COMPUTE_SSE roof_sse2_f64_mul, mulpd, mulpd
COMPUTE_SSE roof_sse2_f64_mix, mulpd, addpd
COMPUTE_SSE roof_sse2_f32_add, addps, subps
COMPUTE_SSE roof_sse2_f32_mul, mulps, mulps
COMPUTE_SSE roof_sse2_f32_mix, mulps, addps
COMPUTE_SSE roof_sse2_i64_add, paddq, paddq
COMPUTE_SSE roof_sse2_i32_add, paddd, paddd
COMPUTE_SSE roof_sse2_i16_add, paddw, paddw
COMPUTE_SSE roof_sse2_i16_mul, pmullw, pmullw
COMPUTE_SSE roof_sse2_i16_mix, pmullw, paddw
COMPUTE_SSE roof_sse2_i8_add, paddb, paddb

COMPUTE_AVX roof_avx2_f64_add, vaddpd, vsubpd, YMM
COMPUTE_AVX roof_avx2_f64_mul, vmulpd, vmulpd, YMM
COMPUTE_AVX roof_avx2_f64_mix, vmulpd, vaddpd, YMM
COMPUTE_FMA roof_avx2_f64_fma, vfmadd213pd, YMM
COMPUTE_AVX roof_avx2_f32_add, vaddps, vsubps, YMM
COMPUTE_AVX roof_avx2_f32_mul, vmulps, vmulps, YMM
COMPUTE_AVX roof_avx2_f32_mix, vmulps, vaddps, YMM
COMPUTE_FMA roof_avx2_f32_fma, vfmadd213ps, YMM
COMPUTE_AVX roof_avx2_i64_add, vpaddq, vpaddq, YMM
COMPUTE_AVX roof_avx2_i32_add, vpaddd, vpaddd, YMM
COMPUTE_AVX roof_avx2_i32_mul, vpmulld, vpmulld, YMM
COMPUTE_AVX roof_avx2_i32_mix, vpmulld, vpaddd, YMM
COMPUTE_AVX roof_avx2_i16_add, vpaddw, vpaddw, YMM
COMPUTE_AVX roof_avx2_i16_mul, vpmullw, vpmullw, YMM
COMPUTE_AVX roof_avx2_i16_mix, vpmullw, vpaddw, YMM
COMPUTE_AVX roof_avx2_i8_add, vpaddb, vpaddb, YMM

COMPUTE_AVX roof_avx512_f64_add, vaddpd, vsubpd, ZMM
COMPUTE_AVX roof_avx512_f64_mul, vmulpd, vmulpd, ZMM
COMPUTE_AVX roof_avx512_f64_mix, vmulpd, vaddpd, ZMM
COMPUTE_FMA roof_avx512_f64_fma, vfmadd213pd, ZMM
COMPUTE_AVX roof_avx512_f32_add, vaddps, vsubps, ZMM
COMPUTE_AVX roof_avx512_f32_mul, vmulps, vmulps, ZMM
COMPUTE_AVX roof_avx512_f32_mix, vmulps, vaddps, ZMM
COMPUTE_FMA roof_avx512_f32_fma, vfmadd213ps, ZMM
COMPUTE_AVX roof_avx512_f16_add, vaddph, vsubph, ZMM
COMPUTE_AVX roof_avx512_f16_mul, vmulph, vmulph, ZMM
COMPUTE_AVX roof_avx512_f16_mix, vmulph, vaddph, ZMM
COMPUTE_FMA roof_avx512_f16_fma, vfmadd213ph, ZMM
COMPUTE_AVX roof_avx512_i64_add, vpaddq, vpaddq, ZMM
COMPUTE_AVX roof_avx512_i64_mul, vpmullq, vpmullq, ZMM
COMPUTE_AVX roof_avx512_i64_mix, vpmullq, vpaddq, ZMM
COMPUTE_AVX roof_avx512_i32_add, vpaddd, vpaddd, ZMM
COMPUTE_AVX roof_avx512_i32_mul, vpmulld, vpmulld, ZMM
COMPUTE_AVX roof_avx512_i32_mix, vpmulld, vpaddd, ZMM
COMPUTE_AVX roof_avx512_i16_add, vpaddw, vpaddw, ZMM
COMPUTE_AVX roof_avx512_i16_mul, vpmullw, vpmullw, ZMM
COMPUTE_AVX roof_avx512_i16_mix, vpmullw, vpaddw, ZMM
COMPUTE_AVX roof_avx512_i8_add, vpaddb, vpaddb, ZMM

/* The clock: additions of two registers, each of which waits for the one before. An immediate would
 * not do: Golden Cove adds small ones while renaming, in no time. Source: A. Fog, "The
 * microarchitecture of Intel, AMD and VIA CPUs", chapter on Alder Lake. */
FUNCTION roof_clock
	mov	$1, %ecx
	imul	$128, %rdi, %rax
	xor	%edx, %edx
	.p2align 5
1:
	.rept	128
	add	%rcx, %rdx
	.endr
	dec	%rdi
	jnz	1b
END roof_clock

/* --- memory: rdi passes, rsi bytes of each stream, rdx a, rcx b, r8 c ------------------------------ */

.macro MEMORY_BEGIN
	mov	%rdi, %rax
	imul	%rsi, %rax
1:
	xor	%r9d, %r9d
	.p2align 5
2:
.endm

.macro MEMORY_END block
	add	$\block, %r9
	cmp	%rsi, %r9
	jb	2b
	dec	%rdi
	jnz	1b
.endm

#define BLOCK_8 0, 1, 2, 3, 4, 5, 6, 7

/* `load` and `store` move a register `reg` of `bytes` bytes. */
.macro LOAD name, load, reg, bytes
FUNCTION \name
	MEMORY_BEGIN
	.irp	i, BLOCK_8
	\load	\i*\bytes(%rdx,%r9), %\reg\i
	.endr
MEMORY_END 8*\bytes
END_OF \name, \reg
.endm

.macro STORE name, load, store, reg, bytes
FUNCTION \name
	\load	(%rdx), %\reg\()0
	MEMORY_BEGIN
	.irp	i, BLOCK_8
	\store	%\reg\()0, \i*\bytes(%rdx,%r9)
	.endr
MEMORY_END 8*\bytes
	sfence
END_OF \name, \reg
.endm

.macro COPY name, load, store, reg, bytes
FUNCTION \name
	MEMORY_BEGIN
	.irp	i, BLOCK_8
	\load	\i*\bytes(%rcx,%r9), %\reg\i
	.endr
	.irp	i, BLOCK_8
	\store	%\reg\i, \i*\bytes(%rdx,%r9)
	.endr
MEMORY_END 8*\bytes
	sfence
END_OF \name, \reg
.endm

/* A block of 8 vectors: `load` of one or four, then `store` of these. */
.macro BLOCK_BY_1 load, store, args:vararg
	.irp	i, BLOCK_8
	\load	\i, \args
	\store	\i, \args
	.endr
.endm
.macro BLOCK_BY_4 load, store, args:vararg
	.irp	i, 0, 1, 2, 3
	\load	\i, \args
	.endr
	.irp	i, 0, 1, 2, 3
	\store	\i, \args
	.endr
	.irp	i, 4, 5, 6, 7
	\load	\i, \args
	.endr
	.irp	i, 4, 5, 6, 7
	\store	\i, \args
	.endr
.endm

/* With args: reg, bytes, store, and what loads. */
.macro STORE_A i, reg, bytes, store, rest:vararg
	\store	%\reg\i, \i*\bytes(%rdx,%r9)
.endm
.macro LOAD_C_B i, reg, bytes, store, load
	\load	\i*\bytes(%r8,%r9), %\reg\()8
	\load	\i*\bytes(%rcx,%r9), %\reg\i
.endm
.macro LOAD_SUM_SSE i, reg, bytes, store, load, mul, add
	\load	\i*\bytes(%r8,%r9), %xmm\i
	\mul	%xmm15, %xmm\i
	\add	\i*\bytes(%rcx,%r9), %xmm\i
.endm
.macro LOAD_SUM_FMA i, reg, bytes, store
	vmovapd	\i*\bytes(%r8,%r9), %\reg\i
	vfmadd213pd \i*\bytes(%rcx,%r9), %\reg\()15, %\reg\i
.endm

.macro TWO_TO_ONE name, block, load, store, reg, bytes
FUNCTION \name
	MEMORY_BEGIN
	\block	LOAD_C_B, STORE_A, \reg, \bytes, \store, \load
MEMORY_END 8*\bytes
END_OF \name, \reg
.endm

/* a = b + 3 c */
.macro TRIAD_SSE name, load, mul, add, store, bytes
FUNCTION \name
	movapd	three(%rip), %xmm15
	MEMORY_BEGIN
	BLOCK_BY_1 LOAD_SUM_SSE, STORE_A, xmm, \bytes, \store, \load, \mul, \add
MEMORY_END 8*\bytes
	sfence
END \name
.endm

.macro TRIAD_FMA name, block, store, reg, bytes
FUNCTION \name
	vbroadcastsd three(%rip), %\reg\()15
	MEMORY_BEGIN
	\block	LOAD_SUM_FMA, STORE_A, \reg, \bytes, \store
MEMORY_END 8*\bytes
	sfence
END_OF \name, ymm
.endm

.macro SCALAR_END name
MEMORY_END 16*8
END \name
.endm

#define BLOCK_16 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15

FUNCTION roof_scalar_load
	MEMORY_BEGIN
	.irp	i, BLOCK_16
	mov	\i*8(%rdx,%r9), %r10
	.endr
SCALAR_END roof_scalar_load

FUNCTION roof_scalar_store
	mov	(%rdx), %r10
	MEMORY_BEGIN
	.irp	i, BLOCK_16
	mov	%r10, \i*8(%rdx,%r9)
	.endr
SCALAR_END roof_scalar_store

FUNCTION roof_scalar_copy
	MEMORY_BEGIN
	.irp	i, BLOCK_16
	mov	\i*8(%rcx,%r9), %r10
	mov	%r10, \i*8(%rdx,%r9)
	.endr
SCALAR_END roof_scalar_copy

FUNCTION roof_scalar_two
	MEMORY_BEGIN
	.irp	i, BLOCK_16
	mov	\i*8(%r8,%r9), %r11
	mov	\i*8(%rcx,%r9), %r10
	mov	%r10, \i*8(%rdx,%r9)
	.endr
SCALAR_END roof_scalar_two

TRIAD_SSE roof_scalar_triad, movsd, mulsd, addsd, movsd, 8

LOAD roof_sse2_load, movaps, xmm, 16
STORE roof_sse2_store, movaps, movaps, xmm, 16
STORE roof_sse2_nt_store, movaps, movntps, xmm, 16
COPY roof_sse2_copy, movaps, movaps, xmm, 16
COPY roof_sse2_nt_copy, movaps, movntps, xmm, 16
TWO_TO_ONE roof_sse2_two, BLOCK_BY_1, movaps, movaps, xmm, 16
TRIAD_SSE roof_sse2_triad, movapd, mulpd, addpd, movapd, 16
TRIAD_SSE roof_sse2_nt_triad, movapd, mulpd, addpd, movntpd, 16

LOAD roof_avx2_load, vmovaps, ymm, 32
STORE roof_avx2_store, vmovaps, vmovaps, ymm, 32
STORE roof_avx2_nt_store, vmovaps, vmovntps, ymm, 32
COPY roof_avx2_copy, vmovaps, vmovaps, ymm, 32
COPY roof_avx2_nt_copy, vmovaps, vmovntps, ymm, 32
TWO_TO_ONE roof_avx2_two, BLOCK_BY_1, vmovaps, vmovaps, ymm, 32
TRIAD_FMA roof_avx2_triad, BLOCK_BY_1, vmovapd, ymm, 32
TRIAD_FMA roof_avx2_nt_triad, BLOCK_BY_1, vmovntpd, ymm, 32

LOAD roof_avx512_load, vmovaps, zmm, 64
STORE roof_avx512_store, vmovaps, vmovaps, zmm, 64
STORE roof_avx512_nt_store, vmovaps, vmovntps, zmm, 64
COPY roof_avx512_copy, vmovaps, vmovaps, zmm, 64
COPY roof_avx512_nt_copy, vmovaps, vmovntps, zmm, 64
TWO_TO_ONE roof_avx512_two, BLOCK_BY_4, vmovaps, vmovaps, zmm, 64
TRIAD_FMA roof_avx512_triad, BLOCK_BY_4, vmovapd, zmm, 64
TRIAD_FMA roof_avx512_nt_triad, BLOCK_BY_4, vmovntpd, zmm, 64

	.section .rodata
	.p2align 4
three:
	.double	3.0, 3.0

#endif
	.section .note.GNU-stack, "", %progbits
