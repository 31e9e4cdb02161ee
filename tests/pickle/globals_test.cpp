#include "formats/pickle/globals.hpp"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>

namespace ballast {
namespace {

using pickle::standing_of;

// The verdict of a name by itself. judge_test.cpp tests what is done with the name.
Verdict verdict_of(std::string_view module, std::string_view name) {
  const pickle::Standing standing = standing_of(module, name);
  if (standing.is_dangerous() && (standing.row() == nullptr || standing.row()->given != pickle::Given::anything))
    return Verdict::dangerous;
  return standing.row() != nullptr ? Verdict::known : standing.is_dangerous() ? Verdict::dangerous : Verdict::unknown;
}

struct Row {
  std::string_view module, name;
  Verdict verdict;
};

constexpr Row kRows[] = {
    {"collections", "OrderedDict", Verdict::known},
    {"torch._utils", "_rebuild_tensor_v2", Verdict::known},
    {"torch", "FloatStorage", Verdict::known},
    {"torch.cuda", "HalfStorage", Verdict::known},
    {"torch", "QUInt4x2Storage", Verdict::known},
    {"torch.sparse", "FloatTensor", Verdict::known},
    {"torch.cuda.sparse", "HalfTensor", Verdict::known},
    {"torch", "float8_e4m3fn", Verdict::known},
    {"torch.nn.modules.linear", "Linear", Verdict::known},
    {"__torch__.torch.nn.modules.conv.___torch_mangle_0", "Conv2d", Verdict::known},
    {"__builtin__", "set", Verdict::known},
    {"__builtin__", "xrange", Verdict::known},
    {"copy_reg", "_reconstructor", Verdict::known},
    {"torch.tensor", "_rebuild_from_type_v2", Verdict::known},
    {"numpy._core.multiarray", "_reconstruct", Verdict::known},
    {"functools", "partial", Verdict::known},
    {"torch.distributed.checkpoint.metadata", "Metadata", Verdict::known},
    {"torch.optim.adam", "Adam", Verdict::known},
    {"ultralytics.nn.tasks", "DetectionModel", Verdict::known},

    {"model", "Net", Verdict::unknown},
    {"builtins", "print", Verdict::unknown},
    {"torch.nn.modules.linear", "helper", Verdict::unknown},  // a function
    {"torch.nn.modulesque", "Linear", Verdict::unknown},
    {"transformers.models.llama", "LlamaTokenizer", Verdict::unknown},
    {"test", "Net", Verdict::unknown},  // somebody's test.py
    {"", "", Verdict::unknown},
    {"model", "Net.Config", Verdict::unknown},
    {"model", "_Private.Config", Verdict::unknown},
    {"datetime", "datetime.fromisoformat", Verdict::unknown},
    {"builtins", "dict.fromkeys", Verdict::unknown},
    {"mport __torch__.torch", "import __torch__.torch.nn", Verdict::unknown},  // TorchScript's code, taken for a pickle

    {"model", "FloatTensor", Verdict::unknown},
    {"torch", "FloatWriter", Verdict::unknown},
    {"torch", "ModelTensor", Verdict::unknown},
    {"torch", "QInt8Tensor", Verdict::unknown},  // only a storage has such elements
    {"torch", "ComplexFloatTensor", Verdict::unknown},
    {"torch.nn.modules.linear", "_", Verdict::unknown},
    {"torch.nn.modules.linear", "@", Verdict::unknown},
    {"torch.nn.modules.linear", "[", Verdict::unknown},
    {"torch.nn.modules.linear", "Linear.forward", Verdict::unknown},
    {"torch.nn.modules.linear", "Zero", Verdict::known},
    {"torch.nn.modules.linear", "All", Verdict::known},

    {"datetime", "Zone.datetime.fromisoformat", Verdict::dangerous},  // no longer the class of that module
    {"os", "system", Verdict::dangerous},
    {"osmium", "system", Verdict::dangerous},  // whichever module exports it again
    {"model", "Net.eval", Verdict::dangerous},
    {"torch.storage", "_load_from_bytes", Verdict::dangerous},  // unless its bytes are in the file
    {"os.path", "join", Verdict::dangerous},                    // a submodule of a module that is denied
    {"nt", "system", Verdict::dangerous},
    {"subprocess", "Popen.wait", Verdict::dangerous},
    {"__builtin__", "eval", Verdict::dangerous},
    {"builtins", "getattr", Verdict::dangerous},
    {"commands", "getoutput", Verdict::dangerous},  // Python 2's
    {"cPickle", "loads", Verdict::dangerous},
    {"pip", "main", Verdict::dangerous},
    {"pathlib", "Path.unlink", Verdict::dangerous},  // the class is known, its methods are not
    {"torch", "load", Verdict::dangerous},
    {"torch", "serialization.os.system", Verdict::dangerous},  // the way through attributes
    {"torch.serialization", "os", Verdict::dangerous},
    {"argparse", "_os.system", Verdict::dangerous},  // the names that Python's own modules give to others
    {"random", "_os.popen", Verdict::dangerous},
    {"random", "_os", Verdict::dangerous},
    {"collections", "_sys.modules.get", Verdict::dangerous},
    {"enum", "bltns.eval", Verdict::dangerous},
    {"tokenize", "_builtin_open", Verdict::dangerous},
    {"plistlib", "codecs.open", Verdict::dangerous},
    {"model", "Net.pickle.loads", Verdict::dangerous},
    {"model", "Net.cPickle.loads", Verdict::dangerous},
    {"model", "helper.run", Verdict::dangerous},
    {"model", "o.system", Verdict::dangerous},  // whatever name the module has
    {"torch", "_utils.helper.run", Verdict::dangerous},
    {"urllib.parse", "sys.modules", Verdict::dangerous},  // even by way of a harmless module
    {"collections", "OrderedDict.__init__.__globals__", Verdict::dangerous},
    {"torch.nn.modules.linear", "Linear.forward.__globals__", Verdict::dangerous},
};

TEST(Globals, AreJudgedByATable) {
  for (const auto& [module, name, verdict] : kRows) {
    EXPECT_EQ(ballast::name(verdict_of(module, name)), ballast::name(verdict)) << module << "." << name;
  }
}

TEST(Globals, OfAnyLengthAreJudgedQuickly) {
  const std::string dots(1 << 20, '.');
  EXPECT_EQ(verdict_of("torch", dots), Verdict::dangerous);
  EXPECT_EQ(verdict_of(dots, "Net"), Verdict::unknown);
}

TEST(Globals, OfWeightsOnlyAreTorchsOwn) {
  constexpr std::pair<std::string_view, std::string_view> kAllowed[] = {{"collections", "OrderedDict"},
                                                                        {"collections", "Counter"},
                                                                        {"torch", "Size"},
                                                                        {"torch", "device"},
                                                                        {"__builtin__", "set"},
                                                                        {"builtins", "complex"},
                                                                        {"_codecs", "encode"},
                                                                        {"torch", "bfloat16"},
                                                                        {"torch", "uint7"},
                                                                        {"torch", "FloatTensor"},
                                                                        {"torch.cuda", "FloatTensor"},
                                                                        {"torch", "QInt32Storage"},
                                                                        {"torch.storage", "TypedStorage"},
                                                                        {"torch.nn.parameter", "Parameter"}};
  for (const auto& [module, name] : kAllowed)
    EXPECT_TRUE(pickle::is_allowed_by_weights_only(module, name)) << module << "." << name;

  constexpr std::pair<std::string_view, std::string_view> kRefused[] = {{"numpy", "dtype"},
                                                                        {"numpy.core.multiarray", "scalar"},
                                                                        {"torch._utils", "_rebuild_sparse_csr_tensor"},
                                                                        {"pathlib", "PosixPath"},
                                                                        {"collections", "defaultdict"},
                                                                        {"argparse", "Namespace"},
                                                                        {"functools", "partial"},
                                                                        {"torch.nn.modules.linear", "Linear"},
                                                                        {"torch.storage", "_load_from_bytes"},
                                                                        {"builtins", "list"},
                                                                        {"os", "system"},
                                                                        {"torch", "load"}};
  for (const auto& [module, name] : kRefused)
    EXPECT_FALSE(pickle::is_allowed_by_weights_only(module, name)) << module << "." << name;
}

}  // namespace
}  // namespace ballast
