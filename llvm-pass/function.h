// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Counts one function

#include "options.h"

#include "llvm/IR/PassManager.h"

namespace mperf
{

class Callers;
class Emitter;
class Table;

// Adds counters to a function for which is_counted() holds and whose markers are replaced, and its rows to the table; call it in
// the order of `callers`.
void count_function(llvm::Function &function, Callers &callers,
	llvm::FunctionAnalysisManager &analyses, Emitter &emitter, Table &table,
	const Options &options);

} // namespace mperf
