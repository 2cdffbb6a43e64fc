/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * The tiled product of "Dissecting RISC-V Performance" (section 5.2), as printed.
 * 2 n^3 for n = 128
 *
 * expect: matmul fp32_ops 4194304
 */

#include "kernels.h"

#define TILE_SIZE 32
#define N 128

static float m[3][N * N];

KERNEL void matmul(float *C, const float *A, const float *B, int n)
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

static double run_matmul(void)
{
	memset(m[0], 0, sizeof(m[0]));
	matmul(m[0], m[1], m[2], N);
	return m[0][N + 1];
}

int main(int argc, char **argv)
{
	static const struct kernel kernels[] = {{"matmul", run_matmul}};
	for (int i = 0; i < 2 * N * N; i++)
		m[1 + i / (N * N)][i % (N * N)] = (float)(i % 7);
	return RUN_KERNELS(kernels, argc, argv);
}
