// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The rows of a function in the table: the meaning of its blocks times their counts

namespace llvm
{
class Function;
} // namespace llvm

namespace mperf
{

struct Counts;
struct Meaning;
class Scopes;
class Table;

// Adds the terms of the counters in `counts`. Quantities that can be computed from these need no
// counter, and are removed from the meaning.
void add_rows(llvm::Function &function, Meaning &meaning, const Counts &counts,
	const Scopes &scopes, Table &table);

} // namespace mperf
