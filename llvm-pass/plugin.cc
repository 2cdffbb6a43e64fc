// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The plugin that clang, opt and lld load. It runs last, so that it counts the optimised program,
// vectors and all: at the end of each module's optimisation, and of full LTO's. A counted module
// has a flag that says so, which survives bitcode and linking.
//
// Nothing is kept between modules: ThinLTO runs several at once.
//
// mperf-cc does all of this for a build. By hand, with P=build/llvm-19/mperf-pass.so: add counters;
// link the runtime; give an option of options.h, in two ways; print the spanning tree, hoists and
// counters; and see what the pass alone makes of a module:
//
//      clang-19 -O2 -fpass-plugin=$P -c program.c
//      clang-19 program.o build/libmperf-runtime.a -o program
//      clang-19 -O2 -fpass-plugin=$P -Xclang -load -Xclang $P -mllvm -mperf-mode=block -c program.c
//      MPERF_PASS="mode=block" clang-19 -O2 -fpass-plugin=$P -c program.c
//      clang-19 -O2 -g1 -fpass-plugin=$P -Rpass-analysis=mperf -c program.c
//      opt-19 -load=$P -load-pass-plugin=$P -passes=mperf -S program.ll

#include "callers.h"
#include "emit.h"
#include "excluded.h"
#include "function.h"
#include "lines.h"
#include "names.h"
#include "options.h"
#include "prepare.h"
#include "wanted.h"

#include "llvm/IR/Intrinsics.h"
#include "llvm/IR/Module.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Passes/PassPlugin.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;

namespace
{

constexpr char COUNTED_FLAG[] = "mperf counted";

cl::opt<mperf::Mode> mode("mperf-mode", cl::desc("Which counters mperf adds"),
	cl::init(mperf::Mode::TREE),
	cl::values(
		clEnumValN(mperf::Mode::TREE, "tree", "each edge outside a minimum spanning tree"),
		clEnumValN(mperf::Mode::BLOCK, "block", "each block, to check the others"),
		clEnumValN(mperf::Mode::SETS, "sets", "each set of blocks that run equally often"),
		clEnumValN(mperf::Mode::CLONE, "clone",
			"as tree, in one of two bodies; each entry chooses between them")));
cl::opt<bool> hoist("mperf-hoist", cl::desc("Count loops by their trip counts"), cl::init(true));
cl::opt<bool> promote("mperf-promote", cl::desc("Promote counters to registers"), cl::init(true));
cl::opt<bool> nests("mperf-nests", cl::desc("Time outermost loops"), cl::init(true));
cl::opt<bool> all_nests("mperf-all-nests",
	cl::desc("Time outermost loops without floats and vectors too"), cl::init(false));
cl::opt<bool> segment(
	"mperf-segment", cl::desc("Reach counters of executables through %gs"), cl::init(true));
cl::opt<bool> escapes(
	"mperf-escapes", cl::desc("Count exactly where calls throw or jump"), cl::init(false));
cl::opt<bool> whole_functions(
	"mperf-functions", cl::desc("Count functions outside of loops too"), cl::init(false));
cl::opt<bool> dynamic_tls(
	"mperf-dynamic-tls", cl::desc("Libraries take no static TLS"), cl::init(false));
cl::opt<bool> blocks("mperf-blocks", cl::desc("Report blocks too"), cl::init(false));

uint32_t mode_flag(mperf::Mode mode)
{
	switch (mode) {
	case mperf::Mode::TREE:
		return MPERF_MODULE_TREE;
	case mperf::Mode::BLOCK:
		return MPERF_MODULE_BLOCK;
	case mperf::Mode::SETS:
		return MPERF_MODULE_SETS;
	case mperf::Mode::CLONE:
		return MPERF_MODULE_CLONE;
	}
	return 0;
}

// Other modules may call it by its name. Functions that each of their users contains are left out.
bool is_for_others(const GlobalValue &value)
{
	return !value.hasLocalLinkage() && !value.hasLinkOnceLinkage();
}

// Tells readers which callees of other modules are defined here, and so counted or excluded on purpose.
void define_functions(
	const Module &module, const std::vector<Function *> &known, mperf::Table &table)
{
	for (const Function *function : known)
		if (is_for_others(*function))
			table.define(GlobalValue::dropLLVMManglingEscape(function->getName()));
	for (const GlobalAlias &alias : module.aliases())
		if (is_for_others(alias) && is_contained(known, alias.getAliaseeObject()))
			table.define(GlobalValue::dropLLVMManglingEscape(alias.getName()));
}

class CountPass : public PassInfoMixin<CountPass>
{
      public:
	PreservedAnalyses run(Module &module, ModuleAnalysisManager &analyses)
	{
		if (module.getModuleFlag(COUNTED_FLAG))
			return PreservedAnalyses::all();
		module.addModuleFlag(Module::Max, COUNTED_FLAG, 1);

		auto &functions =
			analyses.getResult<FunctionAnalysisManagerModuleProxy>(module).getManager();
		const mperf::Options options = mperf::options_from_environment(
			{mode, hoist, promote, nests, all_nests, segment, dynamic_tls,
				whole_functions, blocks, escapes},
			getenv("MPERF_PASS"));
		mperf::exclude_functions(module);
		std::vector<Function *> known, counted;
		for (Function &function : module) {
			if (!mperf::is_counted(function))
				continue;
			known.push_back(&function);
			mperf::replace_markers(function);
			if (options.functions || mperf::is_wanted(function))
				counted.push_back(&function);
		}
		if (!counted.empty())
			mperf::link_markers(module);
		mperf::Callers callers(module, known, counted, options.mode == mperf::Mode::TREE);
		mperf::Emitter emitter(module, options);
		mperf::Table table;
		define_functions(module, known, table);
		for (Function *function : callers.order()) {
			mperf::count_function(
				*function, callers, functions, emitter, table, options);
			functions.invalidate(*function, PreservedAnalyses::none());
		}
		emitter.finish(table,
			mode_flag(options.mode) | (emitter.has_segment ? MPERF_MODULE_SEGMENT : 0));
		mperf::drop_tracked_lines(module);
		return PreservedAnalyses::none();
	}

	static bool isRequired()
	{
		return true;
	}
};

// Lists the intrinsics of all targets, and how each is treated: opt -passes=mperf-intrinsics
class ListPass : public PassInfoMixin<ListPass>
{
      public:
	PreservedAnalyses run(Module &, ModuleAnalysisManager &)
	{
		static constexpr const char *WORDS[] = {"counted", "counted", "none", "flagged"};
		for (Intrinsic::ID id = 1; id < Intrinsic::num_intrinsics; id++) {
			if (!Function::isTargetIntrinsic(id))
				continue;
			const StringRef name = Intrinsic::getBaseName(id);
			outs() << name << ' ' << WORDS[(int)mperf::known_intrinsic(name).kind]
			       << '\n';
		}
		return PreservedAnalyses::all();
	}

	static bool isRequired()
	{
		return true;
	}
};

void register_pass(PassBuilder &builder)
{
	builder.registerOptimizerLastEPCallback(
		[](ModulePassManager &passes, OptimizationLevel) { passes.addPass(CountPass()); });
	builder.registerFullLinkTimeOptimizationLastEPCallback(
		[](ModulePassManager &passes, OptimizationLevel) { passes.addPass(CountPass()); });
	builder.registerPipelineParsingCallback([](StringRef name, ModulePassManager &passes,
							ArrayRef<PassBuilder::PipelineElement>) {
		if (name == "mperf")
			passes.addPass(CountPass());
		else if (name == "mperf-intrinsics")
			passes.addPass(ListPass());
		else
			return false;
		return true;
	});
}

} // namespace

extern "C" LLVM_ATTRIBUTE_WEAK PassPluginLibraryInfo llvmGetPassPluginInfo()
{
	return {LLVM_PLUGIN_API_VERSION, "mperf", LLVM_VERSION_STRING, register_pass};
}
