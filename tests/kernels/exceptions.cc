/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Exceptions out of loops: thrown in the loop, through a function that knows nothing of it, and out
 * of a loop that must destroy something.
 *
 * expect: thrown_in_loop fp64_ops 4080
 * expect: thrown_through fp64_ops 816
 * expect: destroyed fp64_ops 408
 * expect: _ZL11left_behindPd fp64_ops 900
 * expect: _Z5totalIfET_RKSt6vectorIS0_SaIS0_EE fp32_ops 30000
 */

#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <vector>

#define KERNEL extern "C" __attribute__((noinline))

KERNEL void may_throw(int i)
{
	if (i == 407)
		throw std::runtime_error("407");
}

KERNEL double thrown_in_loop(double *a, int n)
{
	double sum = 0;
	for (int i = 0; i < n; i++) {
		sum += a[i];
		a[i] = sum;
		if (i == 407)
			throw 1;
	}
	return sum;
}

KERNEL double thrown_through(double *a, int n)
{
	double sum = 0;
	for (int i = 0; i < n; i++) {
		sum += a[i] * 2;
		a[i] = sum;
		may_throw(i);
	}
	return sum;
}

struct Guard {
	double *a;
	explicit Guard(double *a) : a(a)
	{
	}
	~Guard()
	{
		a[0] = 1;
	}
};

KERNEL double destroyed(double *a, int n)
{
	double sum = 0;
	for (int i = 0; i < n; i++) {
		Guard guard(a);
		sum += a[i];
		a[i + 1] = sum;
		may_throw(i);
	}
	return sum;
}

static __attribute__((noinline)) void left_behind(double *a)
{
	for (int i = 0; i < 100; i++)
		a[i] *= 3;
}

KERNEL void past(double *a, int i)
{
	may_throw(i);
	left_behind(a);
}

template <typename T> __attribute__((noinline)) T total(const std::vector<T> &values)
{
	T sum = 0;
	for (T value : values)
		sum += value;
	return sum;
}

KERNEL float templated(const std::vector<float> &values)
{
	return total(values) + total(values) + total(values);
}

int main()
{
	std::vector<double> a(1000);
	std::vector<float> b(10000);
	int caught = 0;
	for (int round = 0; round < 10; round++) {
		try {
			thrown_in_loop(a.data(), 1000);
		} catch (int) {
			caught++;
		}
	}
	try {
		thrown_through(a.data(), 900);
	} catch (const std::exception &) {
		caught++;
	}
	try {
		destroyed(a.data(), 900);
	} catch (const std::exception &) {
		caught++;
	}
	for (int i = 400; i < 410; i++) {
		try {
			past(a.data(), i);
		} catch (const std::exception &) {
			caught++;
		}
	}
	std::printf("%d %g\n", caught, (double)templated(b));
	return 0;
}
