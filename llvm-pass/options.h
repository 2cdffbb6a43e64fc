// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// How a module is to be counted: -mllvm -mperf-NAME=VALUE, or NAME=VALUE in the environment's
// MPERF_PASS, which linkers see too

namespace mperf
{

enum class Mode {
	TREE,  // counters where a spanning tree leaves arcs out
	BLOCK, // one for each block: what the others are checked against
	SETS,  // one for each set of blocks that run equally often
	CLONE, // as in a tree, in one of two bodies between which each entry chooses
};

struct Options {
	Mode mode = Mode::TREE;
	bool hoist = true;    // loops are counted from without where their trip counts are known
	bool promote = true;  // counters stay in registers within loops, where that pays
	bool nests = true;    // outermost loops are timed
	bool segment = true;  // executables of x86-64 reach counters through %gs
	bool blocks = false;  // the table tells of blocks, and not of loops and functions alone
	bool escapes = false; // exact also where a call throws or jumps through a function: a
			      // counter after each that may
};

// The options that the command line gives, where the environment does not say otherwise. Words of
// the environment that are no options are left to who reads them first (mperf-cc's off).
Options options_from_environment(Options options, const char *words);

} // namespace mperf
