/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * The tiled product of "Dissecting RISC-V Performance" (section 5.2), as printed.
 * 2 n^3 for n = 128
 *
 * expect: matmul fp32_ops 4194304
 */

#include <stdio.h>
#include <stdlib.h>

#define TILE_SIZE 32

__attribute__((noinline)) void matmul(float *C, const float *A, const float *B, int n)
{
	for (int ii = 0; ii < n; ii += TILE_SIZE)
		for (int jj = 0; jj < n; jj += TILE_SIZE)
			for (int kk = 0; kk < n; kk += TILE_SIZE)
				for (int i = ii; i < ii + TILE_SIZE && i < n; i++)
					for (int j = jj; j < jj + TILE_SIZE && j < n; j++) {
						float sum = C[i * n + j];
						for (int k = kk; k < kk + TILE_SIZE && k < n; k++)
							sum += A[i * n + k] * B[k * n + j];
						C[i * n + j] = sum;
					}
}

int main(int argc, char **argv)
{
	const int n = argc > 1 ? atoi(argv[1]) : 128;
	float *m = calloc(3 * (size_t)n * n, sizeof(*m));
	if (!m)
		return 1;
	for (int i = 0; i < 2 * n * n; i++)
		m[n * n + i] = (float)(i % 7);
	matmul(m, m + n * n, m + 2 * n * n, n);
	printf("%g\n", (double)m[n + 1]);
	free(m);
	return 0;
}
