// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Counts one function

#include "options.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/IR/PassManager.h"

namespace mperf
{

class Emitter;
class Table;

// Adds counters to a function that is_counted(), and rows for it to the table. trusted:
// find_trusted().
void count_function(llvm::Function &function, const llvm::DenseSet<const llvm::Function *> &trusted,
	llvm::FunctionAnalysisManager &analyses, Emitter &emitter, Table &table,
	const Options &options);

} // namespace mperf
