// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Markers that pragmas became
//
// handler.cc makes them while the file is read, check.cc looks at where they stand when all of it
// was.

namespace mperf
{

// Had the file that is compiled any? A compiler compiles one file at a time.
inline bool &has_pragmas()
{
	static bool has = false;
	return has;
}

} // namespace mperf
