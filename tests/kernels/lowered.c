/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Loads that a code generator makes: entries of jump tables, constants that no instruction holds,
 * and words of which but a part is looked at. What is expected here is that of -O2 on
 * x86-64; what really happens is held against the access by access truth of a benchmark.
 *
 * Each switch runs 12,000 times. Of `dense`, 2,000 are beyond its table; of `holes`, 4,000 are
 * between its cases, where the table has entries too; one of few cases has no table, and one that
 * looks an answer up loads that, by the program's own text.
 *
 * expect: dense bytes_loaded.modelled 40000
 * expect: dense loads.modelled 10000
 * expect: dense bytes_loaded 12000
 * expect: holes bytes_loaded.modelled 48000
 * expect: few bytes_loaded.modelled 0
 * expect: looked_up bytes_loaded.modelled 0
 * expect: looked_up bytes_loaded 52000
 * expect: polynomial bytes_loaded.modelled 16
 * expect: polynomial bytes_loaded 8000
 * expect: behind_calls bytes_loaded.modelled 8008
 * expect: flagged bytes_loaded 1000
 * expect: truncated bytes_loaded 2000
 * expect: upper bytes_loaded 4000
 * expect: table bytes_loaded 15000
 * expect: rotated bytes_loaded 5000
 * expect: shifted bytes_loaded 1000
 * expect: masked bytes_loaded 1000
 * expect: both_halves bytes_loaded 8000
 * expect: word_sum bytes_loaded 8000
 */

#include <stdint.h>

#include "kernels.h"

#define N 12000
#define FEW 1000

/* So that a compiler keeps the ways of a switch apart. */
#define WAY(n) __asm__ volatile("" : "+r"(sum) : "r"(n))

static uint8_t codes[N];
static uint64_t words[FEW];
static double values[FEW];

KERNEL int dense(const uint8_t *code, int n)
{
	int sum = 0;
	for (int i = 0; i < n; i++) {
		switch (code[i]) {
		case 0:
			WAY(7);
			break;
		case 1:
			WAY(11);
			break;
		case 2:
			WAY(13);
			break;
		case 3:
			WAY(17);
			break;
		case 4:
			WAY(19);
			break;
		default:
			WAY(23);
		}
	}
	return sum;
}

KERNEL int holes(const uint8_t *code, int n)
{
	int sum = 0;
	for (int i = 0; i < n; i++) {
		switch (code[i]) {
		case 0:
			WAY(7);
			break;
		case 2:
			WAY(11);
			break;
		case 3:
			WAY(13);
			break;
		case 5:
			WAY(17);
			break;
		case 7:
			WAY(19);
			break;
		default:
			WAY(23);
		}
	}
	return sum;
}

KERNEL int few(const uint8_t *code, int n)
{
	int sum = 0;
	for (int i = 0; i < n; i++) {
		switch (code[i]) {
		case 0:
			WAY(7);
			break;
		case 1:
			WAY(11);
			break;
		default:
			WAY(23);
		}
	}
	return sum;
}

KERNEL int looked_up(const uint8_t *code, int n)
{
	int sum = 0;
	for (int i = 0; i < n; i++) {
		int value = 0;
		switch (code[i]) {
		case 0:
			value = 711;
			break;
		case 1:
			value = 1100;
			break;
		case 2:
			value = 13;
			break;
		case 3:
			value = 170000;
			break;
		case 4:
			value = 1900;
			break;
		}
		sum ^= value;
	}
	return sum;
}

/* Both constants are loaded before the loop. */
KERNEL double polynomial(const double *from, int n)
{
	double sum = 0;
	for (int i = 0; i < n; i++)
		sum = (sum + from[i]) * 0.3 - 1.7;
	return sum;
}

/* Weak, so that nobody knows what it returns. */
KERNEL __attribute__((weak)) double next(double x)
{
	return x;
}

/* One that is needed behind each call, and one before. */
KERNEL double behind_calls(int n)
{
	double sum = 1.3;
	for (int i = 0; i < n; i++)
		sum = next(sum) * 0.7;
	return sum;
}

KERNEL int flagged(const uint64_t *from, int n)
{
	int sum = 0;
	for (int i = 0; i < n; i++)
		if (from[i] & 0x200) {
			__asm__ volatile("" : "+r"(sum));
			sum += 3;
		}
	return sum;
}

KERNEL int truncated(const uint64_t *from, int n)
{
	int sum = 0;
	for (int i = 0; i < n; i++) {
		sum ^= (uint16_t)from[i];
		__asm__ volatile("" : "+r"(sum));
	}
	return sum;
}

KERNEL uint64_t upper(const uint64_t *from, int n)
{
	uint64_t sum = 0;
	for (int i = 0; i < n; i++) {
		sum ^= from[i] >> 32;
		__asm__ volatile("" : "+r"(sum));
	}
	return sum;
}

/* As JPEG's conversion of colours has it: sums of words, and then one byte of them. */
KERNEL void table(uint8_t *restrict to, const uint8_t *restrict from, int n)
{
#pragma clang loop vectorize(disable) unroll(disable)
	for (int i = 0; i < n; i++)
		to[i] = (uint8_t)((words[from[3 * i]] + words[from[3 * i + 1] + 256] +
					  words[from[3 * i + 2] + 512]) >>
				  16);
}

/* As MD5's rounds. */
KERNEL uint32_t rotated(const uint32_t *by, const uint32_t *from, int n)
{
	uint32_t x = 1;
#pragma clang loop vectorize(disable) unroll(disable)
	for (int i = 0; i < n; i++) {
		x += from[i];
		x = x << by[i] | x >> (32 - by[i]);
	}
	return x;
}

KERNEL uint64_t shifted(const uint32_t *by, int n)
{
	uint64_t sum = 1;
#pragma clang loop vectorize(disable) unroll(disable)
	for (int i = 0; i < n; i++)
		sum = (sum << by[i]) + 3;
	return sum;
}

/* Two that need the same byte. */
KERNEL uint32_t masked(uint8_t *restrict to, const uint32_t *restrict from, int n)
{
	uint32_t sum = 0;
#pragma clang loop vectorize(disable) unroll(disable)
	for (int i = 0; i < n; i++) {
		to[i] = (uint8_t)from[i];
		sum += (from[i] & 0xff) * 3;
	}
	return sum;
}

/* Whole words, because all is used. */
KERNEL uint64_t both_halves(const uint64_t *from, int n)
{
	uint64_t sum = 0;
#pragma clang loop vectorize(disable) unroll(disable)
	for (int i = 0; i < n; i++) {
		sum += (from[i] + 7) >> 20;
		__asm__ volatile("" : "+r"(sum));
	}
	return sum;
}

KERNEL uint64_t word_sum(const uint64_t *from, int n)
{
	uint64_t sum = 0;
#pragma clang loop vectorize(disable) unroll(disable)
	for (int i = 0; i < n; i++)
		sum += from[i];
	return sum & 0xff;
}

static double run_dense(void)
{
	return dense(codes, N);
}

static double run_holes(void)
{
	return holes(codes, N);
}

static double run_few(void)
{
	return few(codes, N);
}

static double run_looked_up(void)
{
	return looked_up(codes, N);
}

static double run_polynomial(void)
{
	return polynomial(values, FEW);
}

static double run_behind_calls(void)
{
	return behind_calls(FEW);
}

static double run_flagged(void)
{
	return flagged(words, FEW);
}

static double run_truncated(void)
{
	return truncated(words, FEW);
}

static double run_upper(void)
{
	return (int)upper(words, FEW);
}

static uint8_t bytes[3 * FEW], out[FEW];
static uint32_t amounts[FEW], halves[FEW];

static double run_table(void)
{
	table(out, bytes, FEW);
	return out[7];
}

static double run_rotated(void)
{
	return rotated(amounts, halves, FEW);
}

static double run_shifted(void)
{
	return (int)shifted(amounts, FEW);
}

static double run_masked(void)
{
	return masked(out, halves, FEW);
}

static double run_both_halves(void)
{
	return (int)both_halves(words, FEW);
}

static double run_word_sum(void)
{
	return (int)word_sum(words, FEW);
}

int main(int argc, char **argv)
{
	static const struct kernel kernels[] = {
		{"dense", run_dense},
		{"holes", run_holes},
		{"few", run_few},
		{"looked_up", run_looked_up},
		{"polynomial", run_polynomial},
		{"behind_calls", run_behind_calls},
		{"flagged", run_flagged},
		{"truncated", run_truncated},
		{"upper", run_upper},
		{"table", run_table},
		{"rotated", run_rotated},
		{"shifted", run_shifted},
		{"masked", run_masked},
		{"both_halves", run_both_halves},
		{"word_sum", run_word_sum},
	};
	for (int i = 0; i < 3 * FEW; i++)
		bytes[i] = (uint8_t)(i * 7 % 230);
	for (int i = 0; i < N; i++)
		codes[i] = (uint8_t)(i % 6);
	for (int i = 0; i < FEW; i++) {
		words[i] = (uint64_t)i * 0x9e3779b97f4a7c15u;
		values[i] = i % 7;
		amounts[i] = 1 + i % 30;
		halves[i] = (uint32_t)i * 77;
	}
	return RUN_KERNELS(kernels, argc, argv);
}
