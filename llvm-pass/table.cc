// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A counter costs its program eight bytes per thread; its meaning costs nothing at run time, and is
// stored once in the file. Numbers are LEB128, since nearly all are small; strings are stored once,
// since many loops share a source file. Terms that cancel out (a block counted as the difference of
// two counters which both touch it) are omitted.

#include "table.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/Support/LEB128.h"
#include "llvm/Support/raw_ostream.h"

namespace mperf
{

namespace
{

class Strings
{
      public:
	Strings()
	{
		number("");
	}

	uint32_t number(const std::string &text)
	{
		auto [entry, is_new] = numbers.try_emplace(text, texts.size());
		if (is_new)
			texts.push_back(text);
		return entry->second;
	}

	void encode(llvm::raw_ostream &out) const
	{
		llvm::encodeULEB128(texts.size(), out);
		for (const std::string &text : texts) {
			llvm::encodeULEB128(text.size(), out);
			out << text;
		}
	}

      private:
	std::map<std::string, uint32_t> numbers;
	std::vector<std::string> texts;
};

void encode_scope(const Scope &scope, Strings &strings, llvm::raw_ostream &out)
{
	const uint32_t numbers[] = {scope.kind, scope.parent, strings.number(scope.function),
		strings.number(scope.source), scope.line, scope.line_last, scope.column,
		strings.number(scope.nest), strings.number(scope.inlined_at), scope.flags};
	for (uint32_t number : numbers)
		llvm::encodeULEB128(number, out);
}

} // namespace

uint32_t Table::add_scope(const Scope &scope)
{
	scopes.push_back(scope);
	return scopes.size() - 1;
}

Scope &Table::scope(uint32_t number)
{
	return scopes[number];
}

uint32_t Table::add_counter(uint32_t kind)
{
	counters.push_back({kind, {}});
	return counters.size() - 1;
}

void Table::add_term(uint32_t counter, uint32_t scope, uint32_t key, int64_t factor)
{
	counters[counter].terms[{scope, key}] += factor;
}

uint32_t Table::n_counters() const
{
	return counters.size();
}

uint64_t Table::n_terms() const
{
	uint64_t n = 0;
	for (const Counter &counter : counters)
		n += counter.terms.size();
	return n;
}

std::string Table::encode() const
{
	Strings strings;
	std::string scope_bytes, bytes;
	llvm::raw_string_ostream scope_out(scope_bytes), out(bytes);
	for (const Scope &scope : scopes)
		encode_scope(scope, strings, scope_out);

	llvm::encodeULEB128(MPERF_TABLE_VERSION, out);
	strings.encode(out);
	llvm::encodeULEB128(scopes.size(), out);
	out << scope_out.str();
	llvm::encodeULEB128(counters.size(), out);
	for (const Counter &counter : counters) {
		uint32_t n_terms = 0;
		for (const auto &term : counter.terms)
			n_terms += term.second != 0;
		llvm::encodeULEB128(counter.kind, out);
		llvm::encodeULEB128(n_terms, out);
		for (const auto &[key, factor] : counter.terms) {
			if (factor == 0)
				continue;
			llvm::encodeULEB128(key.first, out);
			llvm::encodeULEB128(key.second, out);
			llvm::encodeSLEB128(factor, out);
		}
	}
	return out.str();
}

} // namespace mperf
