/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Kernels of RV64GC, and of vectors (RVV 1.0) at any length and m1 to m8; kernel.h says what each
 * does, kernels_riscv.inc what each counts.
 *
 * vsetvli stands before the loop, and what a kernel returns follows from the vl that it gave. How
 * many chains there are depends on how many groups of registers LMUL leaves: 24, 12, 6, and at m8
 * two, or three for the fused multiplication, which then takes one group for both a and b.
 */
#if defined(__riscv) && __riscv_xlen == 64

/* Assemblers that do not know .option arch take the extensions from -march (Makefile). */
#if !defined(__clang__)
	.option arch, +v, +zfh
#endif
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

/* --- computing: a0 passes, a1 operands x a b, 64 bytes apart, a2 results -------------------------- */

#define CHAINS ft0, ft1, ft2, ft3, ft4, ft5, ft6, ft7, fa2, fa3, fa4, fa5, fa6, fa7, ft8, ft9
/* `l` loads and `s` stores a value of `bytes` bytes. */
.macro SCALAR_OPERANDS l
	\l	fa0, 64(a1)
	\l	fa1, 128(a1)
	.irp	r, CHAINS
	\l	\r, 0(a1)
	.endr
	mv	a3, a0
	.p2align 4
1:
.endm

.macro SCALAR_RESULTS s, bytes
	addi	a0, a0, -1
	bnez	a0, 1b
	.irp	r, CHAINS
	\s	\r, 0(a2)
	addi	a2, a2, \bytes
	.endr
	mv	a0, a3
.endm

.macro COMPUTE_SCALAR name, t, l, s, bytes, op1, op2
FUNCTION \name
	SCALAR_OPERANDS \l
	.irp	r, CHAINS
	\op1\().\t	\r, \r, fa0
	.endr
	.irp	r, CHAINS
	\op2\().\t	\r, \r, fa1
	.endr
	SCALAR_RESULTS \s, \bytes
END \name
.endm

.macro COMPUTE_SCALAR_FMA name, t, l, s, bytes
FUNCTION \name
	SCALAR_OPERANDS \l
	.rept	2
	.irp	r, CHAINS
	fmadd.\t	\r, \r, fa0, fa1
	.endr
	.endr
	SCALAR_RESULTS \s, \bytes
END \name
.endm

.macro SCALAR_OF precision, t, l, s, bytes
COMPUTE_SCALAR roof_scalar_\precision\()_add, \t, \l, \s, \bytes, fadd, fsub
COMPUTE_SCALAR roof_scalar_\precision\()_mul, \t, \l, \s, \bytes, fmul, fmul
COMPUTE_SCALAR roof_scalar_\precision\()_mix, \t, \l, \s, \bytes, fmul, fadd
COMPUTE_SCALAR_FMA roof_scalar_\precision\()_fma, \t, \l, \s, \bytes
.endm
SCALAR_OF f64, d, fld, fsd, 8
SCALAR_OF f32, s, flw, fsw, 4
SCALAR_OF f16, h, flh, fsh, 2

#define GENERAL t0, t1, t2, t3, t4, t5, t6, a3, a4, a5, a6, a7

/* Whole numbers in 12 general registers, 8 operations each. */
.macro COMPUTE_GPR name, op1, op2, l, s, bytes
FUNCTION \name
	addi	sp, sp, -16
	sd	s0, 0(sp)
	sd	s1, 8(sp)
	.irp	r, GENERAL
	\l	\r, 0(a1)
	.endr
	\l	s0, 64(a1)
	\l	s1, 128(a1)
	mv	a1, a0
	.p2align 4
1:
	.rept	4
	.irp	r, GENERAL
	\op1	\r, \r, s0
	.endr
	.irp	r, GENERAL
	\op2	\r, \r, s1
	.endr
	.endr
	addi	a0, a0, -1
	bnez	a0, 1b
	.irp	r, GENERAL
	\s	\r, 0(a2)
	addi	a2, a2, \bytes
	.endr
	ld	s0, 0(sp)
	ld	s1, 8(sp)
	addi	sp, sp, 16
	mv	a0, a1
END \name
.endm
COMPUTE_GPR roof_scalar_i64_add, add, add, ld, sd, 8
COMPUTE_GPR roof_scalar_i64_mul, mul, mul, ld, sd, 8
COMPUTE_GPR roof_scalar_i64_mix, mul, add, ld, sd, 8
COMPUTE_GPR roof_scalar_i32_add, addw, addw, lw, sw, 4
COMPUTE_GPR roof_scalar_i32_mul, mulw, mulw, lw, sw, 4
COMPUTE_GPR roof_scalar_i32_mix, mulw, addw, lw, sw, 4

/* Vectors. `chains` names the groups of x; a and b are in the groups `ra` and `rb`. Operands are
 * spread by a stride of zero. */
.macro VECTOR_OPERANDS sew, lmul, ra, rb, chains:vararg
	vsetvli	a4, zero, e\sew, m\lmul, ta, ma
	addi	a5, a1, 64
	addi	a6, a1, 128
	vlse\sew\().v	\ra, (a5), zero
	.ifnc	\ra, \rb
	vlse\sew\().v	\rb, (a6), zero
	.endif
	.irp	r, \chains
	vlse\sew\().v	\r, (a1), zero
	.endr
	mul	a3, a0, a4
	.p2align 4
1:
.endm

.macro VECTOR_RESULTS sew, chains:vararg
	addi	a0, a0, -1
	bnez	a0, 1b
	slli	a4, a4, 3
	.if	\sew < 64
	srli	a4, a4, 1
	.endif
	.if	\sew < 32
	srli	a4, a4, 1
	.endif
	.if	\sew < 16
	srli	a4, a4, 1
	.endif
	.irp	r, \chains
	vse\sew\().v	\r, (a2)
	add	a2, a2, a4
	.endr
	mv	a0, a3
.endm

/* x = x OP1 a, x = x OP2 b */
.macro COMPUTE_VECTOR name, sew, lmul, op1, op2, ra, rb, chains:vararg
FUNCTION \name
	VECTOR_OPERANDS \sew, \lmul, \ra, \rb, \chains
	.irp	r, \chains
	\op1\().vv	\r, \r, \ra
	.endr
	.irp	r, \chains
	\op2\().vv	\r, \r, \rb
	.endr
	VECTOR_RESULTS \sew, \chains
END \name
.endm

/* x = x * a + b, twice */
.macro COMPUTE_VECTOR_FMA name, sew, lmul, op, ra, rb, chains:vararg
FUNCTION \name
	VECTOR_OPERANDS \sew, \lmul, \ra, \rb, \chains
	.rept	2
	.irp	r, \chains
	\op\().vv	\r, \ra, \rb
	.endr
	.endr
	VECTOR_RESULTS \sew, \chains
END \name
.endm

#define M1 v24, v25, v0, v1, v2, v3, v4, v5, v6, v7, v8, v9, v10, v11, v12, v13, v14, v15, v16, v17, v18, v19, v20, v21, v22, v23
#define M2 v24, v26, v0, v2, v4, v6, v8, v10, v12, v14, v16, v18, v20, v22
#define M4 v24, v28, v0, v4, v8, v12, v16, v20
#define M8 v16, v24, v0, v8
#define M8_FMA v24, v24, v0, v8, v16

#define FLOAT(precision, sew, lmul, registers, for_fma)                                            \
	COMPUTE_VECTOR roof_rvv_m##lmul##_##precision##_add, sew, lmul, vfadd, vfsub, registers;   \
	COMPUTE_VECTOR roof_rvv_m##lmul##_##precision##_mul, sew, lmul, vfmul, vfmul, registers;   \
	COMPUTE_VECTOR roof_rvv_m##lmul##_##precision##_mix, sew, lmul, vfmul, vfadd, registers;   \
	COMPUTE_VECTOR_FMA roof_rvv_m##lmul##_##precision##_fma, sew, lmul, vfmadd, for_fma

#define WHOLE(precision, sew, lmul, registers, for_mac)                                            \
	COMPUTE_VECTOR roof_rvv_m##lmul##_##precision##_add, sew, lmul, vadd, vadd, registers;     \
	COMPUTE_VECTOR roof_rvv_m##lmul##_##precision##_mul, sew, lmul, vmul, vmul, registers;     \
	COMPUTE_VECTOR_FMA roof_rvv_m##lmul##_##precision##_mac, sew, lmul, vmadd, for_mac

FLOAT(f64, 64, 1, M1, M1)
FLOAT(f64, 64, 2, M2, M2)
FLOAT(f64, 64, 4, M4, M4)
FLOAT(f64, 64, 8, M8, M8_FMA)
FLOAT(f32, 32, 1, M1, M1)
FLOAT(f32, 32, 2, M2, M2)
FLOAT(f32, 32, 4, M4, M4)
FLOAT(f32, 32, 8, M8, M8_FMA)
FLOAT(f16, 16, 1, M1, M1)
FLOAT(f16, 16, 2, M2, M2)
FLOAT(f16, 16, 4, M4, M4)
FLOAT(f16, 16, 8, M8, M8_FMA)
WHOLE(i64, 64, 1, M1, M1)
WHOLE(i64, 64, 2, M2, M2)
WHOLE(i64, 64, 4, M4, M4)
WHOLE(i64, 64, 8, M8, M8_FMA)
WHOLE(i32, 32, 1, M1, M1)
WHOLE(i32, 32, 2, M2, M2)
WHOLE(i32, 32, 4, M4, M4)
WHOLE(i32, 32, 8, M8, M8_FMA)
WHOLE(i16, 16, 1, M1, M1)
WHOLE(i16, 16, 2, M2, M2)
WHOLE(i16, 16, 4, M4, M4)
WHOLE(i16, 16, 8, M8, M8_FMA)
WHOLE(i8, 8, 1, M1, M1)
WHOLE(i8, 8, 2, M2, M2)
WHOLE(i8, 8, 4, M4, M4)
WHOLE(i8, 8, 8, M8, M8_FMA)

/* The clock: additions of registers, each of which waits for the one before. */
FUNCTION roof_clock
	slli	a3, a0, 7
	li	a1, 1
	li	a2, 0
	.p2align 4
1:
	.rept	128
	add	a2, a2, a1
	.endr
	addi	a0, a0, -1
	bnez	a0, 1b
	mv	a0, a3
END roof_clock

/* Bytes of a vector register. */
FUNCTION roof_vlenb
	csrr	a0, vlenb
END roof_vlenb

/* --- memory: a0 passes, a1 bytes of each stream, a2 a, a3 b, a4 c --------------------------------- */

.macro MEMORY_BEGIN
	mul	t6, a0, a1
1:
	mv	t0, a2
	mv	t1, a3
	mv	t2, a4
	add	t3, a2, a1
	.p2align 4
2:
.endm

.macro MEMORY_END name, n_streams, bytes
	addi	t0, t0, \bytes
	.if	\n_streams > 1
	addi	t1, t1, \bytes
	.endif
	.if	\n_streams > 2
	addi	t2, t2, \bytes
	.endif
	bltu	t0, t3, 2b
	addi	a0, a0, -1
	bnez	a0, 1b
	mv	a0, t6
END \name
.endm

#define EIGHT 0, 8, 16, 24, 32, 40, 48, 56

FUNCTION roof_scalar_load
	MEMORY_BEGIN
	.irp	at, EIGHT
	ld	t4, \at(t0)
	ld	t5, \at + 64(t0)
	.endr
MEMORY_END roof_scalar_load, 1, 128

FUNCTION roof_scalar_store
	ld	t4, 0(a2)
	MEMORY_BEGIN
	.irp	at, EIGHT
	sd	t4, \at(t0)
	sd	t4, \at + 64(t0)
	.endr
MEMORY_END roof_scalar_store, 1, 128

/* Four values at a time: cores that work in order wait for what was just loaded. */
.macro QUADS at, c
	.if	\c
	ld	t4, \at(t2)
	ld	t4, \at + 8(t2)
	ld	t4, \at + 16(t2)
	ld	t4, \at + 24(t2)
	.endif
	ld	t4, \at(t1)
	ld	t5, \at + 8(t1)
	ld	a5, \at + 16(t1)
	ld	a6, \at + 24(t1)
	sd	t4, \at(t0)
	sd	t5, \at + 8(t0)
	sd	a5, \at + 16(t0)
	sd	a6, \at + 24(t0)
.endm

FUNCTION roof_scalar_copy
	MEMORY_BEGIN
	.irp	at, 0, 32, 64, 96
	QUADS \at, 0
	.endr
MEMORY_END roof_scalar_copy, 2, 128

FUNCTION roof_scalar_two
	MEMORY_BEGIN
	.irp	at, 0, 32, 64, 96
	QUADS \at, 1
	.endr
MEMORY_END roof_scalar_two, 3, 128

/* a = b + 3 c */
FUNCTION roof_scalar_triad
	li	a7, 3
	fcvt.d.l fa0, a7
	MEMORY_BEGIN
	.irp	at, 0, 64
	fld	ft0, \at(t2)
	fld	ft1, \at + 8(t2)
	fld	ft2, \at + 16(t2)
	fld	ft3, \at + 24(t2)
	fld	ft4, \at + 32(t2)
	fld	ft5, \at + 40(t2)
	fld	ft6, \at + 48(t2)
	fld	ft7, \at + 56(t2)
	fld	fa1, \at(t1)
	fld	fa2, \at + 8(t1)
	fld	fa3, \at + 16(t1)
	fld	fa4, \at + 24(t1)
	fld	fa5, \at + 32(t1)
	fld	fa6, \at + 40(t1)
	fld	fa7, \at + 48(t1)
	fld	ft8, \at + 56(t1)
	fmadd.d	ft0, ft0, fa0, fa1
	fmadd.d	ft1, ft1, fa0, fa2
	fmadd.d	ft2, ft2, fa0, fa3
	fmadd.d	ft3, ft3, fa0, fa4
	fmadd.d	ft4, ft4, fa0, fa5
	fmadd.d	ft5, ft5, fa0, fa6
	fmadd.d	ft6, ft6, fa0, fa7
	fmadd.d	ft7, ft7, fa0, ft8
	fsd	ft0, \at(t0)
	fsd	ft1, \at + 8(t0)
	fsd	ft2, \at + 16(t0)
	fsd	ft3, \at + 24(t0)
	fsd	ft4, \at + 32(t0)
	fsd	ft5, \at + 40(t0)
	fsd	ft6, \at + 48(t0)
	fsd	ft7, \at + 56(t0)
	.endr
MEMORY_END roof_scalar_triad, 3, 128

/* Vectors: a block is 8 registers, as groups of `lmul`; a stream is cut to whole blocks, and what is
 * returned counts these. t4 is the bytes of a group. */
.macro VECTOR_BEGIN lmul
	vsetvli	t4, zero, e64, m\lmul, ta, ma
	slli	t4, t4, 3
	slli	t5, t4, 3
	.if	\lmul > 1
	srli	t5, t5, 1
	.endif
	.if	\lmul > 2
	srli	t5, t5, 1
	.endif
	.if	\lmul > 4
	srli	t5, t5, 1
	.endif
	remu	t5, a1, t5
	sub	a1, a1, t5
	mul	t6, a0, a1
	beqz	t6, 9f
	vle64.v	v24, (a2)
1:
	mv	t0, a2
	mv	t1, a3
	mv	t2, a4
	add	t3, a2, a1
	.p2align 4
2:
.endm

.macro VECTOR_END name
	bltu	t0, t3, 2b
	addi	a0, a0, -1
	bnez	a0, 1b
9:
	mv	a0, t6
END \name
.endm

.macro VECTOR_LOAD lmul, groups:vararg
FUNCTION roof_rvv_m\lmul\()_load
	VECTOR_BEGIN \lmul
	.irp	r, \groups
	vle64.v	\r, (t0)
	add	t0, t0, t4
	.endr
VECTOR_END roof_rvv_m\lmul\()_load
.endm

.macro VECTOR_STORE lmul, groups:vararg
FUNCTION roof_rvv_m\lmul\()_store
	VECTOR_BEGIN \lmul
	.irp	r, \groups
	vse64.v	v24, (t0)
	add	t0, t0, t4
	.endr
VECTOR_END roof_rvv_m\lmul\()_store
.endm

.macro VECTOR_COPY lmul, groups:vararg
FUNCTION roof_rvv_m\lmul\()_copy
	VECTOR_BEGIN \lmul
	.irp	r, \groups
	vle64.v	\r, (t1)
	add	t1, t1, t4
	.endr
	.irp	r, \groups
	vse64.v	\r, (t0)
	add	t0, t0, t4
	.endr
VECTOR_END roof_rvv_m\lmul\()_copy
.endm

/* c is loaded to v8 alone, and nothing waits for it. */
.macro VECTOR_TWO lmul, groups:vararg
FUNCTION roof_rvv_m\lmul\()_two
	VECTOR_BEGIN \lmul
	.irp	r, \groups
	vle64.v	v8, (t2)
	add	t2, t2, t4
	vle64.v	\r, (t1)
	add	t1, t1, t4
	.endr
	.irp	r, \groups
	vse64.v	\r, (t0)
	add	t0, t0, t4
	.endr
VECTOR_END roof_rvv_m\lmul\()_two
.endm

/* a = b + 3 c; b in `groups`, c in v8. */
.macro VECTOR_TRIAD lmul, groups:vararg
FUNCTION roof_rvv_m\lmul\()_triad
	li	a7, 3
	fcvt.d.l fa0, a7
	VECTOR_BEGIN \lmul
	.irp	r, \groups
	vle64.v	v8, (t2)
	add	t2, t2, t4
	vle64.v	\r, (t1)
	add	t1, t1, t4
	vfmacc.vf \r, fa0, v8
	.endr
	.irp	r, \groups
	vse64.v	\r, (t0)
	add	t0, t0, t4
	.endr
VECTOR_END roof_rvv_m\lmul\()_triad
.endm

#define OF_LMUL(lmul, ...)                                                                         \
	VECTOR_LOAD lmul, __VA_ARGS__;                                                             \
	VECTOR_STORE lmul, __VA_ARGS__;                                                            \
	VECTOR_COPY lmul, __VA_ARGS__;                                                             \
	VECTOR_TWO lmul, __VA_ARGS__;                                                              \
	VECTOR_TRIAD lmul, __VA_ARGS__
OF_LMUL(1, v0, v1, v2, v3, v4, v5, v6, v7)
OF_LMUL(2, v0, v2, v4, v6)
OF_LMUL(4, v0, v4)
OF_LMUL(8, v0)

#endif
	.section .note.GNU-stack, "", %progbits
