// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Markers that pragmas become
//
// handler.cc makes them while the compiler reads the file; check.cc checks their places afterwards.

namespace mperf
{

// Does the file being compiled have any? A compiler compiles one file at a time.
inline bool &has_pragmas()
{
	static bool has = false;
	return has;
}

} // namespace mperf
