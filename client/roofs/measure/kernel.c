/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * The table of kernels. A check runs each with operands that change x by a whole number each time,
 * exact in every precision. So the results show how many operations a chain did, and the bytes
 * written show how many chains there are. Neither is taken from the table, which is what is checked.
 */
#include "client/roofs/measure/kernel.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/memory.h"

#define CHECK_PASSES 3
#define CHECK_BYTES (16 * KERNEL_BLOCK_BYTES) /* of a stream */
#define UNTOUCHED 0x5a                        /* fills what a kernel has not written */

#if defined(__x86_64__)
#define TABLE "client/roofs/measure/kernels_x86.inc"
#elif defined(__aarch64__)
#define TABLE "client/roofs/measure/kernels_arm.inc"
#else /* other architectures have no kernels, and do not link */
#define TABLE "client/roofs/measure/kernels_riscv.inc"
#endif

#define COMPUTE(unit_, lmul_, symbol, precision_, operation_, per_, need_)                         \
	kernel_compute roof_##symbol;
#define MEMORY(unit_, lmul_, symbol, pattern_, per_, need_) kernel_memory roof_##symbol;
#include TABLE
#undef COMPUTE
#undef MEMORY

#define COMPUTE(unit_, lmul_, symbol, precision_, operation_, per_, need_)                         \
	{.name = #symbol,                                                                          \
		.limit = ROOF_COMPUTE,                                                             \
		.unit = unit_,                                                                     \
		.lmul = lmul_,                                                                     \
		.need = need_,                                                                     \
		.compute = roof_##symbol,                                                          \
		.precision = precision_,                                                           \
		.operation = operation_,                                                           \
		.per = per_},
#define MEMORY(unit_, lmul_, symbol, pattern_, per_, need_)                                        \
	{.name = #symbol,                                                                          \
		.limit = ROOF_MEMORY,                                                              \
		.unit = unit_,                                                                     \
		.lmul = lmul_,                                                                     \
		.need = need_,                                                                     \
		.memory = roof_##symbol,                                                           \
		.precision = "",                                                                   \
		.operation = pattern_,                                                             \
		.per = per_,                                                                       \
		.nontemporal = (pattern_)[0] == 'n'},
const struct kernel kernels[] = {
#include TABLE
};
const size_t n_kernels = sizeof(kernels) / sizeof(*kernels);

/* A fused multiplication and addition: two operations. */
static bool is_fused(const struct kernel *k)
{
	return strcmp(k->operation, "fma") == 0 || strcmp(k->operation, "mac") == 0;
}

/* --- operands --------------------------------------------------------------------------------- */

/* Bytes of an element: of "f64" 8, of "i8" 1. */
static size_t element_bytes(const char *precision)
{
	return (size_t)atoi(precision + 1) / 8;
}

/* A small normal number as IEEE 754's binary16, cut off, not rounded. */
static uint16_t half(double value)
{
	uint64_t bits;
	memcpy(&bits, &value, sizeof(bits));
	uint64_t exponent = (bits >> 52 & 0x7ff) - 1023 + 15;
	return value == 0 ? 0
			  : (uint16_t)(bits >> 63 << 15 | exponent << 10 | (bits >> 42 & 0x3ff));
}

static void encode(const char *precision, double value, void *ret_element)
{
	float single = (float)value;
	uint16_t binary16 = half(value);
	int64_t whole = (int64_t)value; /* little-endian: its first bytes are the shorter ones */

	if (*precision == 'i')
		memcpy(ret_element, &whole, element_bytes(precision));
	else if (strcmp(precision, "f64") == 0)
		memcpy(ret_element, &value, sizeof(value));
	else if (strcmp(precision, "f32") == 0)
		memcpy(ret_element, &single, sizeof(single));
	else
		memcpy(ret_element, &binary16, sizeof(binary16));
}

static void fill(const char *precision, const double value[3], unsigned char *ret_in)
{
	size_t bytes = element_bytes(precision);
	for (size_t i = 0; i < 3; i++)
		for (size_t at = 0; at < KERNEL_OPERAND_BYTES; at += bytes)
			encode(precision, value[i], ret_in + i * KERNEL_OPERAND_BYTES + at);
}

void kernel_operands(const struct kernel *k, void *ret_in)
{
	/* x * a + b has its fixed point at 1.37; changing digits need more power than zeros, as in
	 * real programs */
	static const double sum[3] = {1.37, 0.7, 0.7}, product[3] = {1.37, 2, 0.5},
			    fused[3] = {1.37, 0.7, 0.41}, whole[3] = {91, 37, 53};
	bool neon_fma = strcmp(k->unit, "neon") == 0 && is_fused(k);
	fill(k->precision,
		*k->precision == 'i'                           ? whole
		: strcmp(k->operation, "mul") == 0             ? product
		: strcmp(k->operation, "add") == 0 || neon_fma ? sum
							       : fused,
		ret_in);
}

/* --- check: computing ------------------------------------------------------------------------- */

/* The value of a chain after CHECK_PASSES, as kernel.h describes it; `n` pairs of operations a pass.
 * Values of floats are small whole numbers; those of integers wrap. */
static uint64_t expected(const struct kernel *k, const double v[3], size_t n)
{
	uint64_t x = (uint64_t)v[0], a = (uint64_t)v[1], b = (uint64_t)v[2];
	for (size_t i = 0; i < n * CHECK_PASSES; i++) {
		if (is_fused(k))
			x = strcmp(k->unit, "neon") == 0 ? x + a * b - a * a : (x * a + b) * a + b;
		else if (strcmp(k->operation, "mul") == 0)
			x = x * a * b;
		else if (strcmp(k->operation, "mul+add") == 0)
			x = x * a + b;
		else
			x = *k->precision == 'i' ? x + a + b : x + a - b;
	}
	return x;
}

static void encode_expected(const char *precision, uint64_t x, unsigned char ret_element[static 8])
{
	if (*precision == 'i') /* little-endian, as above */
		memcpy(ret_element, &x, sizeof(x));
	else
		encode(precision, (double)(int64_t)x, ret_element);
}

/* Does a scalar kernel keep one value in a 16-byte register? Then only the lowest element counts.
 * */
static size_t stride_of(const struct kernel *k, size_t bytes)
{
#if defined(__riscv)
	(void)k;
	return bytes;
#else
	return strcmp(k->unit, "scalar") == 0 && *k->precision == 'f' ? 16 : bytes;
#endif
}

static int check_compute(const struct kernel *k, char fault[static ROOF_NOTE_BYTES])
{
	/* RVV at m8 has one register for both */
	static const double different[3] = {1, 3, 1}, doubling[3] = {1, 2, 1}, same[3] = {1, 2, 2},
			    twice[3] = {1, 2, 4}, odd[3] = {1, 3, 5}, same_odd[3] = {1, 3, 3};
	bool whole = *k->precision == 'i', fused = is_fused(k);
	const double *v = k->lmul == 8 && fused              ? whole ? same_odd : same
			  : whole                            ? odd /* even factors would end as zero
								    * */
			  : strcmp(k->operation, "mul") == 0 ? twice
			  : strcmp(k->operation, "add") == 0 || strcmp(k->unit, "neon") == 0
				  ? different
				  : doubling;
	size_t bytes = element_bytes(k->precision), stride = stride_of(k, bytes);
	/* general registers are changed more often per pass, so that the loop's own instructions
	 * hardly matter */
	size_t pairs = strcmp(k->unit, "scalar") != 0 || !whole ? 1 : k->per == 8 * 16 ? 8 : 4;
	unsigned char wanted[8];
	_cleanup_(freep) unsigned char *in =
		aligned_alloc(KERNEL_OPERAND_BYTES, 3 * KERNEL_OPERAND_BYTES);
	_cleanup_(freep) unsigned char *out =
		aligned_alloc(KERNEL_OPERAND_BYTES, KERNEL_RESULT_BYTES);
	if (!in || !out)
		return -ENOMEM;

	encode_expected(k->precision, expected(k, v, pairs), wanted);
	fill(k->precision, v, in);
	memset(out, UNTOUCHED, KERNEL_RESULT_BYTES);
	uint64_t returned = k->compute(CHECK_PASSES, in, out);

	size_t n = 0;
	while ((n + 1) * stride <= KERNEL_RESULT_BYTES &&
		memcmp(out + n * stride, wanted, bytes) == 0)
		n++;
	for (size_t i = n * stride; i < KERNEL_RESULT_BYTES; i++)
		if (out[i] != UNTOUCHED) {
			snprintf(fault, ROOF_NOTE_BYTES, "value %zu differs from C's result", n);
			return 1;
		}
	uint64_t did = n * pairs * 2 * (fused ? 2 : 1) * CHECK_PASSES;
	if (did == 0 || did != returned * k->per) {
		snprintf(fault, ROOF_NOTE_BYTES, "it did %llu operations and reports %llu",
			(unsigned long long)did, (unsigned long long)(returned * k->per));
		return 1;
	}
	return 0;
}

/* --- check: memory ---------------------------------------------------------------------------- */

static int check_memory(const struct kernel *k, char fault[static ROOF_NOTE_BYTES])
{
	const size_t n = CHECK_BYTES / sizeof(double);
	_cleanup_(freep) double *space = aligned_alloc(KERNEL_BLOCK_BYTES, 4 * CHECK_BYTES);
	if (!space)
		return -ENOMEM;
	double *a = space, *b = a + n, *c = b + n, *behind = c + n;
	for (size_t i = 0; i < n; i++) {
		a[i] = (double)i + 0.5;
		b[i] = (double)i + 0.25;
		c[i] = (double)i * 2;
		behind[i] = -1;
	}
	const double first = a[0];
	uint64_t returned = k->memory(CHECK_PASSES, CHECK_BYTES, a, b, c);
	if (returned != CHECK_PASSES * CHECK_BYTES) {
		snprintf(fault, ROOF_NOTE_BYTES, "it walked over %llu bytes of %d",
			(unsigned long long)returned, CHECK_PASSES * CHECK_BYTES);
		return 1;
	}
	const char *p = k->operation + (k->nontemporal ? 3 : 0);
	/* elements of the register that was stored; n: nothing was stored */
	size_t period = 1;
	while (period < n && a[period] != first)
		period++;
	if (strcmp(p, "store") == 0 && period == n) {
		snprintf(fault, ROOF_NOTE_BYTES, "it stored nothing");
		return 1;
	}
	for (size_t i = 0; i < n; i++) {
		double is = a[i], want = strcmp(p, "load") == 0    ? (double)i + 0.5
					 : strcmp(p, "store") == 0 ? (double)(i % period) + 0.5
					 : strcmp(p, "triad") == 0 ? b[i] + 3 * c[i]
								   : b[i];
		if (is != want || b[i] != (double)i + 0.25 || c[i] != (double)i * 2 ||
			behind[i] != -1) {
			snprintf(fault, ROOF_NOTE_BYTES, "element %zu is %g, not %g", i, is, want);
			return 1;
		}
	}
	return 0;
}

int kernel_check(const struct kernel *k, char fault[static ROOF_NOTE_BYTES])
{
	return k->limit == ROOF_COMPUTE ? check_compute(k, fault) : check_memory(k, fault);
}
