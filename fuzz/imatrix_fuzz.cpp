// Importance matrices of both formats. Whatever the bytes are, they give entries with weights that are finite and at
// least 0, no more of them than the file has bytes for, or an Error.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include <ballast/error.hpp>
#include <ballast/importance.hpp>

namespace {

using namespace ballast;

void require(bool condition, const char* what, const std::string& why = {}) {
  if (condition) return;
  std::fprintf(stderr, "%s %s\n", what, why.c_str());
  std::abort();
}

void check(const ImportanceMatrix& matrix, std::uint64_t size) {
  std::uint64_t count = 0;
  for (const ImportanceEntry& entry : matrix.entries()) {
    require(matrix.find(entry.name) == &entry, "a name that does not lead to its entry");
    require(entry.weights != nullptr && !entry.weights->empty(), "an entry without weights");
    require(entry.columns * entry.matrices == entry.weights->size(), "weights of another shape");
    require(entry.unseen <= entry.matrices, "more unseen matrices than there are");
    for (const float weight : *entry.weights) require(std::isfinite(weight) && weight >= 0, "a weight that is none");
    count += entry.weights->size();
  }
  require(count * sizeof(float) <= size, "more weights than the file has");
}

void read_and_check(const SourcePtr& source, const ImportanceOptions& options) {
  try {
    check(*ImportanceMatrix::read(source, options), source->size_bytes());
  } catch (const Error& error) {
    require(error.code() == Errc::malformed || error.code() == Errc::unsupported || error.code() == Errc::limit,
            "an odd kind of error", error.what());
    require(!error.offset() || *error.offset() <= source->size_bytes(), "a byte outside of the file", error.what());
    require(!error.message().empty() && error.message().size() < 2000, "a message that nobody would read",
            error.what());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto* first = reinterpret_cast<const std::byte*>(data);
  const auto source = memory_source({first, first + size});
  ImportanceOptions options;
  options.open.limits.max_header_bytes = 1 << 20;
  options.open.limits.max_metadata_keys = 1000;
  options.open.limits.max_tensors = 1000;
  read_and_check(source, options);
  options.include = {"a", "blk."};
  options.exclude = {"ffn"};
  read_and_check(source, options);
  return 0;
}
