// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// How to count a module: -mllvm -mperf-NAME=VALUE, or NAME=VALUE in MPERF_PASS in the environment,
// which linkers see too

namespace mperf
{

enum class Mode {
	TREE,  // counters on the edges outside a minimum spanning tree
	BLOCK, // one for each block: the reference for the others
	SETS,  // one for each set of blocks that run equally often
	CLONE, // as TREE, in one of two bodies; each entry chooses
};

struct Options {
	Mode mode = Mode::TREE;
	bool hoist = true;        // count loops outside if their trip counts are known
	bool promote = true;      // promote counters to registers in loops if that pays
	bool nests = true;        // time outermost loops that is_timed() is true of
	bool all_nests = false;   // time all of them
	bool segment = true;      // executables of x86-64 reach counters through %gs
	bool dynamic_tls = false; // libraries take no static TLS, so any number can be dlopened
	bool functions = false;   // count functions outside of their loops too (wanted.h)
	bool blocks = false;      // the table has blocks, not only loops and functions
	bool escapes = false;     // exact even if a call throws or jumps out: a counter after each
				  // such call
};

// The options of the command line, overridden by those of the environment. Other words are for
// mperf-cc, which reads them first (off).
Options options_from_environment(Options options, const char *words);

} // namespace mperf
