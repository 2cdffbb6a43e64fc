/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Kernels of AArch64; kernel.h says what each does, kernels_arm.inc what each counts.
 *
 * NEON's fused multiplications add to x, so they alternate with those that subtract: with b = a,
 * values stay near 1 however long they run. 24 chains: 4 cycles of latency times 4 pipes, and some
 * more. The Makefile names FP16 and SVE to the assembler; probe.c keeps harts without them away.
 */
#if defined(__aarch64__)

	.text

.macro FUNCTION name
	.globl	\name
	.hidden	\name
	.type	\name, %function
	.p2align 6
\name:
.endm

.macro END name
	ret
	.size	\name, . - \name
.endm

#define CHAINS 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31

/* An instruction on register number i; a list of numbers cannot stand before a dot itself, since to
 * the assembler the dot is part of the name. */
.macro NEON op, t, i, from
	\op	v\i\t, v\i\t, v\from\t
.endm
.macro NEON_AB op, t, i, a, b
	\op	v\i\t, v\a\t, v\b\t
.endm
.macro SVE op, t, i, from
	\op	z\i\().\t, z\i\().\t, z\from\().\t
.endm
.macro SVE_PREDICATED op, t, i, a, b
	\op	z\i\().\t, p0/m, z\a\().\t, z\b\().\t
.endm
.macro SVE_SPREAD w, t, i, base
	ld1r\w	{z\i\().\t}, p0/z, [\base]
.endm
.macro SVE_LOAD i, base, at
	ld1d	{z\i\().d}, p0/z, [\base, #\at, mul vl]
.endm
.macro SVE_SAVE op, i, base, at
	\op	{z\i\().d}, p0, [\base, #\at, mul vl]
.endm

/* --- computing: x0 passes, x1 operands x a b, 64 bytes apart, x2 results -------------------------- */

/* v0-v7, v16-v31 are ours; of v8-v15 the lower halves are the caller's. Source: Arm IHI 0055. */
.macro OPERANDS
	stp	d8, d9, [sp, #-16]!
	ldr	q8, [x1, #64]
	ldr	q9, [x1, #128]
	.irp	i, CHAINS
	ldr	q\i, [x1]
	.endr
	mov	x3, x0
	.p2align 5
1:
.endm

.macro RESULTS
	subs	x0, x0, #1
	b.ne	1b
	.irp	i, CHAINS
	str	q\i, [x2], #16
	.endr
	ldp	d8, d9, [sp], #16
	mov	x0, x3
.endm

/* x = x OP1 a, x = x OP2 b; `t` is the arrangement: .2d for vectors. */
.macro COMPUTE_NEON name, t, op1, op2
FUNCTION \name
	OPERANDS
	.irp	i, CHAINS
	NEON	\op1, \t, \i, 8
	.endr
	.irp	i, CHAINS
	NEON	\op2, \t, \i, 9
	.endr
	RESULTS
END \name
.endm

/* x = x + a * b, x = x - a * a */
.macro COMPUTE_NEON_FMA name, t, plus, minus
FUNCTION \name
	OPERANDS
	.irp	i, CHAINS
	NEON_AB	\plus, \t, \i, 8, 9
	.endr
	.irp	i, CHAINS
	NEON_AB	\minus, \t, \i, 8, 8
	.endr
	RESULTS
END \name
.endm

/* One value a register; `r` is d, s or h. */
.macro COMPUTE_SCALAR name, r, op1, op2
FUNCTION \name
	OPERANDS
	.irp	i, CHAINS
	\op1	\r\i, \r\i, \r\()8
	.endr
	.irp	i, CHAINS
	\op2	\r\i, \r\i, \r\()9
	.endr
	RESULTS
END \name
.endm

/* x = x * a + b, twice */
.macro COMPUTE_SCALAR_FMA name, r
FUNCTION \name
	OPERANDS
	.rept	2
	.irp	i, CHAINS
	fmadd	\r\i, \r\i, \r\()8, \r\()9
	.endr
	.endr
	RESULTS
END \name
.endm

#define GENERAL 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15

/* Whole numbers in 12 general registers, 8 instructions each; `r` is x or w. */
.macro GPR_OPERANDS
	mov	x3, x0
	.irp	i, GENERAL
	ldr	x\i, [x1]
	.endr
	ldr	x16, [x1, #64]
	ldr	x17, [x1, #128]
	.p2align 5
1:
.endm

.macro GPR_RESULTS r, bytes
	subs	x0, x0, #1
	b.ne	1b
	.irp	i, GENERAL
	str	\r\i, [x2], #\bytes
	.endr
	mov	x0, x3
.endm

.macro COMPUTE_GPR name, r, bytes, op
FUNCTION \name
	GPR_OPERANDS
	.rept	4
	.irp	i, GENERAL
	\op	\r\i, \r\i, \r\()16
	.endr
	.irp	i, GENERAL
	\op	\r\i, \r\i, \r\()17
	.endr
	.endr
	GPR_RESULTS \r, \bytes
END \name
.endm

/* x = x * a + b */
.macro COMPUTE_GPR_MAC name, r, bytes
FUNCTION \name
	GPR_OPERANDS
	.rept	8
	.irp	i, GENERAL
	madd	\r\i, \r\i, \r\()16, \r\()17
	.endr
	.endr
	GPR_RESULTS \r, \bytes
END \name
.endm

COMPUTE_GPR roof_scalar_i64_add, x, 8, add
COMPUTE_GPR roof_scalar_i64_mul, x, 8, mul
COMPUTE_GPR_MAC roof_scalar_i64_mac, x, 8
COMPUTE_GPR roof_scalar_i32_add, w, 4, add
COMPUTE_GPR roof_scalar_i32_mul, w, 4, mul
COMPUTE_GPR_MAC roof_scalar_i32_mac, w, 4

.macro SCALAR_OF precision, r
COMPUTE_SCALAR roof_scalar_\precision\()_add, \r, fadd, fsub
COMPUTE_SCALAR roof_scalar_\precision\()_mul, \r, fmul, fmul
COMPUTE_SCALAR roof_scalar_\precision\()_mix, \r, fmul, fadd
COMPUTE_SCALAR_FMA roof_scalar_\precision\()_fma, \r
.endm
SCALAR_OF f64, d
SCALAR_OF f32, s
SCALAR_OF f16, h

.macro NEON_OF precision, t
COMPUTE_NEON roof_neon_\precision\()_add, \t, fadd, fsub
COMPUTE_NEON roof_neon_\precision\()_mul, \t, fmul, fmul
COMPUTE_NEON roof_neon_\precision\()_mix, \t, fmul, fadd
COMPUTE_NEON_FMA roof_neon_\precision\()_fma, \t, fmla, fmls
.endm
NEON_OF f64, .2d
NEON_OF f32, .4s
NEON_OF f16, .8h

COMPUTE_NEON roof_neon_i64_add, .2d, add, add
COMPUTE_NEON roof_neon_i32_add, .4s, add, add
COMPUTE_NEON roof_neon_i16_add, .8h, add, add
COMPUTE_NEON roof_neon_i8_add, .16b, add, add

.macro NEON_PRODUCTS precision, t
COMPUTE_NEON roof_neon_\precision\()_mul, \t, mul, mul
COMPUTE_NEON_FMA roof_neon_\precision\()_mac, \t, mla, mls
.endm
NEON_PRODUCTS i32, .4s
NEON_PRODUCTS i16, .8h
NEON_PRODUCTS i8, .16b

/* --- SVE, at any length of its registers --- */

/* `t` is d, s, h or b, and `w` its name in loads, d, w, h or b; returns passes times elements of a register. Elements are predicated by
 * p0, all true; z8 and z9 are saved as v8 and v9 are. */
.macro SVE_OPERANDS t, w
	stp	d8, d9, [sp, #-16]!
	ptrue	p0.\t
	add	x4, x1, #64
	add	x5, x1, #128
	SVE_SPREAD \w, \t, 8, x4
	SVE_SPREAD \w, \t, 9, x5
	.irp	i, CHAINS
	SVE_SPREAD \w, \t, \i, x1
	.endr
	cnt\w	x3
	mul	x3, x3, x0
	.p2align 5
1:
.endm

.macro SVE_RESULTS
	subs	x0, x0, #1
	b.ne	1b
	.irp	i, CHAINS
	str	z\i, [x2]
	addvl	x2, x2, #1
	.endr
	ldp	d8, d9, [sp], #16
	mov	x0, x3
.endm

.macro COMPUTE_SVE name, t, w, op1, op2
FUNCTION \name
	SVE_OPERANDS \t, \w
	.irp	i, CHAINS
	SVE	\op1, \t, \i, 8
	.endr
	.irp	i, CHAINS
	SVE	\op2, \t, \i, 9
	.endr
	SVE_RESULTS
END \name
.endm

.macro COMPUTE_SVE_FMA name, t, w, op
FUNCTION \name
	SVE_OPERANDS \t, \w
	.rept	2
	.irp	i, CHAINS
	SVE_PREDICATED \op, \t, \i, 8, 9
	.endr
	.endr
	SVE_RESULTS
END \name
.endm

.macro SVE_OF precision, t, w
COMPUTE_SVE roof_sve_\precision\()_add, \t, \w, fadd, fsub
COMPUTE_SVE roof_sve_\precision\()_mul, \t, \w, fmul, fmul
COMPUTE_SVE roof_sve_\precision\()_mix, \t, \w, fmul, fadd
COMPUTE_SVE_FMA roof_sve_\precision\()_fma, \t, \w, fmad
.endm
SVE_OF f64, d, d
SVE_OF f32, s, w
SVE_OF f16, h, h

COMPUTE_SVE roof_sve_i64_add, d, d, add, add
COMPUTE_SVE roof_sve_i32_add, s, w, add, add
COMPUTE_SVE roof_sve_i16_add, h, h, add, add
COMPUTE_SVE roof_sve_i8_add, b, b, add, add

/* SVE multiplies whole numbers only below a predicate; SVE2 needs none. */
.macro SVE_PRODUCTS precision, t, w
FUNCTION roof_sve_\precision\()_mul
	SVE_OPERANDS \t, \w
	.irp	i, CHAINS
	SVE_PREDICATED mul, \t, \i, \i, 8
	.endr
	.irp	i, CHAINS
	SVE_PREDICATED mul, \t, \i, \i, 9
	.endr
	SVE_RESULTS
END roof_sve_\precision\()_mul
COMPUTE_SVE_FMA roof_sve_\precision\()_mac, \t, \w, mad
.endm
SVE_PRODUCTS i64, d, d
SVE_PRODUCTS i32, s, w
SVE_PRODUCTS i16, h, h
SVE_PRODUCTS i8, b, b

/* The clock: additions of registers, each of which waits for the one before. */
FUNCTION roof_clock
	lsl	x3, x0, #7
	mov	x4, #1
	.p2align 5
1:
	.rept	128
	add	x5, x5, x4
	.endr
	subs	x0, x0, #1
	b.ne	1b
	mov	x0, x3
END roof_clock

/* --- memory: x0 passes, x1 bytes of each stream, x2 a, x3 b, x4 c --------------------------------- */

.macro MEMORY_BEGIN
	mul	x9, x0, x1
1:
	mov	x5, x2
	mov	x6, x3
	mov	x7, x4
	add	x8, x2, x1
	.p2align 5
2:
.endm

.macro MEMORY_END name
	cmp	x5, x8
	b.lo	2b
	subs	x0, x0, #1
	b.ne	1b
	mov	x0, x9
END \name
.endm

/* Both of a pair of registers from 32 bytes on; a block is 256 bytes. */
.macro EACH_PAIR op, base
	\op	q0, q1, [\base]
	\op	q2, q3, [\base, #32]
	\op	q4, q5, [\base, #64]
	\op	q6, q7, [\base, #96]
	\op	q16, q17, [\base, #128]
	\op	q18, q19, [\base, #160]
	\op	q20, q21, [\base, #192]
	\op	q22, q23, [\base, #224]
.endm

.macro NEON_STORE name, op
FUNCTION \name
	ldr	q0, [x2]
	MEMORY_BEGIN
	.irp	at, 0, 32, 64, 96, 128, 160, 192, 224
	\op	q0, q0, [x5, #\at]
	.endr
	add	x5, x5, #256
MEMORY_END \name
.endm

.macro NEON_COPY name, op
FUNCTION \name
	MEMORY_BEGIN
	EACH_PAIR ldp, x6
	add	x6, x6, #256
	EACH_PAIR \op, x5
	add	x5, x5, #256
MEMORY_END \name
.endm

/* a = b + 3 c, four registers at a time */
.macro NEON_TRIAD name, op
FUNCTION \name
	fmov	v31.2d, #3.0
	MEMORY_BEGIN
	.irp	at, 0, 64, 128, 192
	ldp	q0, q1, [x6, #\at]
	ldp	q2, q3, [x6, #\at + 32]
	ldp	q4, q5, [x7, #\at]
	ldp	q6, q7, [x7, #\at + 32]
	fmla	v0.2d, v4.2d, v31.2d
	fmla	v1.2d, v5.2d, v31.2d
	fmla	v2.2d, v6.2d, v31.2d
	fmla	v3.2d, v7.2d, v31.2d
	\op	q0, q1, [x5, #\at]
	\op	q2, q3, [x5, #\at + 32]
	.endr
	add	x5, x5, #256
	add	x6, x6, #256
	add	x7, x7, #256
MEMORY_END \name
.endm

FUNCTION roof_neon_load
	MEMORY_BEGIN
	EACH_PAIR ldp, x5
	add	x5, x5, #256
MEMORY_END roof_neon_load

NEON_STORE roof_neon_store, stp
NEON_STORE roof_neon_nt_store, stnp
NEON_COPY roof_neon_copy, stp
NEON_COPY roof_neon_nt_copy, stnp
NEON_TRIAD roof_neon_triad, stp
NEON_TRIAD roof_neon_nt_triad, stnp

FUNCTION roof_neon_two
	MEMORY_BEGIN
	.irp	at, 0, 64, 128, 192
	ldp	q4, q5, [x7, #\at]
	ldp	q6, q7, [x7, #\at + 32]
	ldp	q0, q1, [x6, #\at]
	ldp	q2, q3, [x6, #\at + 32]
	stp	q0, q1, [x5, #\at]
	stp	q2, q3, [x5, #\at + 32]
	.endr
	add	x5, x5, #256
	add	x6, x6, #256
	add	x7, x7, #256
MEMORY_END roof_neon_two

/* General registers: 8 pairs, 128 bytes a block. */
#define EIGHT 0, 16, 32, 48, 64, 80, 96, 112

FUNCTION roof_scalar_load
	MEMORY_BEGIN
	.irp	at, EIGHT
	ldp	x10, x11, [x5, #\at]
	.endr
	add	x5, x5, #128
MEMORY_END roof_scalar_load

FUNCTION roof_scalar_store
	ldr	x10, [x2]
	MEMORY_BEGIN
	.irp	at, EIGHT
	stp	x10, x10, [x5, #\at]
	.endr
	add	x5, x5, #128
MEMORY_END roof_scalar_store

FUNCTION roof_scalar_copy
	MEMORY_BEGIN
	.irp	at, EIGHT
	ldp	x10, x11, [x6, #\at]
	stp	x10, x11, [x5, #\at]
	.endr
	add	x5, x5, #128
	add	x6, x6, #128
MEMORY_END roof_scalar_copy

FUNCTION roof_scalar_two
	MEMORY_BEGIN
	.irp	at, EIGHT
	ldp	x12, x13, [x7, #\at]
	ldp	x10, x11, [x6, #\at]
	stp	x10, x11, [x5, #\at]
	.endr
	add	x5, x5, #128
	add	x6, x6, #128
	add	x7, x7, #128
MEMORY_END roof_scalar_two

FUNCTION roof_scalar_triad
	fmov	d31, #3.0
	MEMORY_BEGIN
	.irp	at, EIGHT
	ldp	d0, d1, [x6, #\at]
	ldp	d2, d3, [x7, #\at]
	fmadd	d0, d2, d31, d0
	fmadd	d1, d3, d31, d1
	stp	d0, d1, [x5, #\at]
	.endr
	add	x5, x5, #128
	add	x6, x6, #128
	add	x7, x7, #128
MEMORY_END roof_scalar_triad

/* SVE: 8 registers a block; a stream is cut to whole blocks, and what is returned counts these. */
.macro SVE_BEGIN
	rdvl	x10, #8
	udiv	x11, x1, x10
	mul	x1, x11, x10
	mul	x9, x0, x1
	cbz	x9, 9f
	ptrue	p0.d
1:
	mov	x5, x2
	mov	x6, x3
	mov	x7, x4
	add	x8, x2, x1
	.p2align 5
2:
.endm

.macro SVE_END name
	addvl	x5, x5, #8
	cmp	x5, x8
	b.lo	2b
	subs	x0, x0, #1
	b.ne	1b
9:
	mov	x0, x9
END \name
.endm

#define BLOCK 0, 1, 2, 3, 4, 5, 6, 7

FUNCTION roof_sve_load
	SVE_BEGIN
	.irp	i, BLOCK
	SVE_LOAD \i, x5, \i
	.endr
SVE_END roof_sve_load

.macro SVE_STORE name, op
FUNCTION \name
	ptrue	p0.d
	ld1d	{z0.d}, p0/z, [x2]
	SVE_BEGIN
	.irp	i, BLOCK
	SVE_SAVE \op, 0, x5, \i
	.endr
SVE_END \name
.endm
SVE_STORE roof_sve_store, st1d
SVE_STORE roof_sve_nt_store, stnt1d

.macro SVE_COPY name, op
FUNCTION \name
	SVE_BEGIN
	.irp	i, BLOCK
	SVE_LOAD \i, x6, \i
	.endr
	.irp	i, BLOCK
	SVE_SAVE \op, \i, x5, \i
	.endr
	addvl	x6, x6, #8
SVE_END \name
.endm
SVE_COPY roof_sve_copy, st1d
SVE_COPY roof_sve_nt_copy, stnt1d

.macro SVE_BLOCK base, i0, i1, i2, i3, i4, i5, i6, i7
	SVE_LOAD \i0, \base, 0
	SVE_LOAD \i1, \base, 1
	SVE_LOAD \i2, \base, 2
	SVE_LOAD \i3, \base, 3
	SVE_LOAD \i4, \base, 4
	SVE_LOAD \i5, \base, 5
	SVE_LOAD \i6, \base, 6
	SVE_LOAD \i7, \base, 7
.endm

.macro SVE_STREAMS_OF_THREE name, op, triad
FUNCTION \name
	fmov	z31.d, #3.0
	SVE_BEGIN
	SVE_BLOCK x7, 16, 17, 18, 19, 20, 21, 22, 23
	SVE_BLOCK x6, 0, 1, 2, 3, 4, 5, 6, 7
	.if	\triad
	fmla	z0.d, p0/m, z16.d, z31.d
	fmla	z1.d, p0/m, z17.d, z31.d
	fmla	z2.d, p0/m, z18.d, z31.d
	fmla	z3.d, p0/m, z19.d, z31.d
	fmla	z4.d, p0/m, z20.d, z31.d
	fmla	z5.d, p0/m, z21.d, z31.d
	fmla	z6.d, p0/m, z22.d, z31.d
	fmla	z7.d, p0/m, z23.d, z31.d
	.endif
	.irp	i, BLOCK
	SVE_SAVE \op, \i, x5, \i
	.endr
	addvl	x6, x6, #8
	addvl	x7, x7, #8
SVE_END \name
.endm
SVE_STREAMS_OF_THREE roof_sve_two, st1d, 0
SVE_STREAMS_OF_THREE roof_sve_triad, st1d, 1
SVE_STREAMS_OF_THREE roof_sve_nt_triad, stnt1d, 1

#endif
	.section .note.GNU-stack, "", %progbits
