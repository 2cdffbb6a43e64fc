// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The plugin: what clang, opt and lld load. It runs last, so that it counts what was made of the
// program, vectors and all: at the end of each module's optimisation, and of full LTO's. A module
// that was counted says so in a flag, which outlives bitcode and linking.
//
// Nothing here is kept between modules: ThinLTO runs several at once.

#include "callers.h"
#include "emit.h"
#include "function.h"
#include "options.h"
#include "prepare.h"

#include "llvm/IR/Module.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Passes/PassPlugin.h"
#include "llvm/Support/CommandLine.h"

using namespace llvm;

namespace
{

constexpr char COUNTED_FLAG[] = "mperf counted";

cl::opt<mperf::Mode> mode("mperf-mode", cl::desc("Which counters mperf adds"),
	cl::init(mperf::Mode::TREE),
	cl::values(clEnumValN(mperf::Mode::TREE, "tree", "what a spanning tree leaves out"),
		clEnumValN(mperf::Mode::BLOCK, "block", "each block, to check the others"),
		clEnumValN(mperf::Mode::SETS, "sets", "each set of blocks that run equally often"),
		clEnumValN(mperf::Mode::CLONE, "clone",
			"as tree, in one of two bodies between which each entry chooses")));
cl::opt<bool> hoist("mperf-hoist", cl::desc("Count loops by their trip counts"), cl::init(true));
cl::opt<bool> promote("mperf-promote", cl::desc("Keep counters in registers"), cl::init(true));
cl::opt<bool> nests("mperf-nests", cl::desc("Time outermost loops"), cl::init(true));
cl::opt<bool> segment(
	"mperf-segment", cl::desc("Reach counters of executables through %gs"), cl::init(true));
cl::opt<bool> escapes(
	"mperf-escapes", cl::desc("Count exactly where calls throw or jump"), cl::init(false));
cl::opt<bool> blocks("mperf-blocks", cl::desc("Tell of blocks too"), cl::init(false));

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
			{mode, hoist, promote, nests, segment, blocks, escapes},
			getenv("MPERF_PASS"));
		std::vector<Function *> counted;
		for (Function &function : module) {
			if (mperf::is_counted(function))
				counted.push_back(&function);
		}
		mperf::Callers callers(module, counted, options.mode == mperf::Mode::TREE);
		mperf::Emitter emitter(module, options.segment);
		mperf::Table table;
		for (Function *function : callers.order()) {
			mperf::count_function(
				*function, callers, functions, emitter, table, options);
			functions.invalidate(*function, PreservedAnalyses::none());
		}
		emitter.finish(table,
			mode_flag(options.mode) | (emitter.has_segment ? MPERF_MODULE_SEGMENT : 0));
		return PreservedAnalyses::none();
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
		if (name != "mperf")
			return false;
		passes.addPass(CountPass());
		return true;
	});
}

} // namespace

extern "C" LLVM_ATTRIBUTE_WEAK PassPluginLibraryInfo llvmGetPassPluginInfo()
{
	return {LLVM_PLUGIN_API_VERSION, "mperf", LLVM_VERSION_STRING, register_pass};
}
