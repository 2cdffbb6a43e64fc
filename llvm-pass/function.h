// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Counts one function

#include "options.h"

#include "llvm/IR/PassManager.h"

namespace mperf
{

class Emitter;
class Table;

// Adds counters to a function that is_counted(), and rows for it to the table.
void count_function(llvm::Function &function, llvm::FunctionAnalysisManager &analyses,
	Emitter &emitter, Table &table, const Options &options);

} // namespace mperf
