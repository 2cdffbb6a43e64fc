/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Regions of a C++ program: scope guards, one inside another, one that an exception leaves, one
 * marked by comments, and one whose work is called by pointer. For each line that it reads it does
 * a round of all, and says so; a round has
 *
 *      outer           2 * 1000 FLOPs of float by a template, and 3 * 1000 of double in
 *      outer/inner
 *      thrown          408, when an exception ends it; of the path that it breaks off, what a
 *                      counter told beforehand may be missing: 1
 *      shade           100 pixels: 30 by diffuse, of 2 operations, 70 by glossy, of 5
 *      commented       500
 *      [no region]     100 pixels by glossy again, which is 500
 */

#include <cstdio>
#include <stdexcept>
#include <vector>

#include "mperf.h"

#define KERNEL __attribute__((noinline))

namespace
{

constexpr int n = 1000;
constexpr int pixels = 100;

template <typename T> KERNEL void scale(std::vector<T> &values, T by)
{
	for (T &value : values)
		value *= by;
}

struct Guard {
	volatile int &n_ended;
	~Guard()
	{
		n_ended = n_ended + 1;
	}
};

volatile int n_guards_ended;

KERNEL void may_throw(int i)
{
	if (i == 407)
		throw std::runtime_error("407");
}

KERNEL double sum_until_thrown(const std::vector<double> &values)
{
	double sum = 0;
	for (int i = 0; i < n; i++) {
		Guard guard{n_guards_ended};
		sum += values[i];
		may_throw(i);
	}
	return sum;
}

KERNEL double diffuse(double light)
{
	return light * 0.5 + 0.25;
}

KERNEL double glossy(double light)
{
	return (light * light + light) * 0.125 * light + 0.5;
}

using shader = double (*)(double);

KERNEL double shade(const std::vector<shader> &shaders)
{
	double light = 0.5;
	for (shader call : shaders)
		light = call(light);
	return light;
}

KERNEL void add_three(std::vector<double> &values)
{
	__asm__ volatile("# mperf begin commented");
	for (int i = 0; i < n / 2; i++)
		values[i] += 3;
	__asm__ volatile("# mperf end commented");
}

int caught(const std::vector<double> &values)
{
	try {
		mperf::region here{"thrown"};
		return sum_until_thrown(values) < 0;
	} catch (const std::exception &) {
		return 1;
	}
}

void nested(std::vector<float> &floats, std::vector<double> &doubles)
{
	mperf::region outer{"outer"};
	scale(floats, 1.5f);
	{
		mperf::region inner{"inner"};
		for (int i = 0; i < 3; i++)
			scale(doubles, 0.5);
	}
	scale(floats, 0.5f);
}

} // namespace

int main()
{
	std::vector<float> floats(n, 1);
	std::vector<double> doubles(n, 1);
	std::vector<shader> mixed, same(pixels, glossy);
	for (int i = 0; i < pixels; i++)
		mixed.push_back(i % 10 < 3 ? diffuse : glossy);
	while (std::getchar() != EOF) {
		nested(floats, doubles);
		const int n_caught = caught(doubles);
		double light = 0;
		{
			mperf::region here{"shade"};
			light = shade(mixed);
		}
		const double outside = shade(same);
		add_three(doubles);
		std::printf("done %d %g %g\n", n_caught, light, outside);
		std::fflush(stdout);
	}
	return 0;
}
