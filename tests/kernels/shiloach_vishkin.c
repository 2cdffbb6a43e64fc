/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Shortcutting, a step of Shiloach and Vishkin's connected components: each node climbs to the root
 * of its tree, which then is its parent. How far it climbs is the tree's affair, so threads that
 * have as many nodes each move unequal amounts of data (figure 1 of "Examem").
 *
 *      shiloach_vishkin [THREADS [NODES [ROUNDS]]]     4, 65536, 1; NODES is a multiple of 256
 *
 * The trees are chains, of 2, 4, 16 and 64 nodes in the four quarters, and no chain leaves its
 * quarter: 1, 2 or 4 threads do not touch each other's, and what each of them loads and stores is
 * known beforehand. A chain of c nodes has its root at the end, so a node k of it climbs c - 2 - k
 * steps, all of them (c - 1) (c - 2) / 2. A node loads two words, and each step loads and stores
 * one. Printed is what that comes to for each thread. What OpenMP makes of the loop has each thread
 * read its number beside, 4 bytes in a round.
 *
 * expect: shortcut outside_bytes_loaded 3003392..3003408
 * expect: shortcut outside_bytes_stored 2479104
 */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define KERNEL __attribute__((noinline))
#define QUARTERS 4
#define NODES_OF_CHAINS_MAX 64

static const long chain_nodes[QUARTERS] = {2, 4, 16, NODES_OF_CHAINS_MAX};

KERNEL void plant(int32_t *parents, long n, int n_threads)
{
#pragma omp parallel for schedule(static) num_threads(n_threads) firstprivate(parents, n)
	for (long i = 0; i < n; i++) {
		const long nodes = chain_nodes[i / (n / QUARTERS)];
		parents[i] = (int32_t)(i % nodes == nodes - 1 ? i : i + 1);
	}
}

KERNEL void shortcut(int32_t *parents, long n, int n_threads)
{
#pragma omp parallel for schedule(static) num_threads(n_threads) firstprivate(parents, n)
	for (long i = 0; i < n; i++) {
		int32_t parent = parents[i];
		int32_t grandparent = parents[parent];
		while (parent != grandparent) {
			parents[i] = grandparent;
			parent = grandparent;
			grandparent = parents[parent];
		}
	}
}

static long steps_of_quarter(int quarter, long n)
{
	const long nodes = chain_nodes[quarter];
	return n / QUARTERS / nodes * (nodes - 1) * (nodes - 2) / 2;
}

static void print_bytes(long n, int n_threads, long rounds)
{
	for (int thread = 0; thread < n_threads; thread++) {
		long steps = 0;
		for (int i = 0; i < QUARTERS / n_threads; i++)
			steps += steps_of_quarter(thread * QUARTERS / n_threads + i, n);
		const long loads = 2 * n / n_threads + steps;
		printf("thread %d: %ld bytes loaded, %ld stored\n", thread,
			rounds * loads * (long)sizeof(int32_t),
			rounds * steps * (long)sizeof(int32_t));
	}
}

static int is_flat(const int32_t *parents, long n)
{
	for (long i = 0; i < n; i++)
		if (parents[parents[i]] != parents[i])
			return 0;
	return 1;
}

int main(int argc, char **argv)
{
	const int n_threads = argc > 1 ? atoi(argv[1]) : QUARTERS;
	const long n = argc > 2 ? atol(argv[2]) : 65536;
	const long rounds = argc > 3 ? atol(argv[3]) : 1;
	if (n <= 0 || n % (QUARTERS * NODES_OF_CHAINS_MAX) != 0 || n > INT32_MAX ||
		(n_threads != 1 && n_threads != 2 && n_threads != 4))
		return 2;
	int32_t *parents = calloc(n, sizeof(*parents));
	if (!parents)
		return 1;
	for (long i = 0; i < rounds; i++) {
		plant(parents, n, n_threads);
		shortcut(parents, n, n_threads);
	}
	print_bytes(n, n_threads, rounds);
	const int flat = rounds <= 0 || is_flat(parents, n);
	free(parents);
	return flat ? 0 : 1;
}
