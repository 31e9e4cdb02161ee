// Maps: whatever their text is, it is refused with an Error, or it is a map. Applied to a small model, a map gives an
// Error or tensors that can be read; applied backwards to these, it gives as many bytes as there were.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <ballast/error.hpp>
#include <ballast/weight_map.hpp>

namespace {

using namespace ballast;

void require(bool condition, const char* what, const std::string& why = {}) {
  if (condition) return;
  std::fprintf(stderr, "%s %s\n", what, why.c_str());
  std::abort();
}

void require_usual(const Error& error) {
  constexpr Errc kUsual[] = {Errc::malformed, Errc::invalid_argument, Errc::unsupported, Errc::mismatch,
                             Errc::limit,     Errc::not_found};
  require(std::ranges::find(kUsual, error.code()) != std::end(kUsual), "an odd kind of error", error.what());
}

Checkpoint model() {
  Checkpoint checkpoint;
  const auto add = [&](const std::string& name, DType dtype, const Shape& shape) {
    std::vector<std::byte> bytes(static_cast<std::size_t>(*bytes_of(dtype, *shape.numel())));
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * 7 % 64);
    checkpoint.tensors.insert(name, Tensor::from_bytes(dtype, shape, bytes));
  };
  for (const std::string layer : {"model.layers.0.", "model.layers.1."}) {
    for (const char* name : {"q", "k", "v"}) add(layer + name + ".weight", DType::bf16, {8, 4});
    for (const char* number : {"0", "1", "2"}) add(layer + "experts." + number + ".w", DType::f32, {2, 3});
    add(layer + "up.weight", DType::f16, {8, 6});
    add(layer + "norm.weight", DType::f32, {6});
  }
  add("model.norm.weight", DType::bf16, {4});
  add("head", DType::i8, {});
  return checkpoint;
}

std::uint64_t read_all(const Checkpoint& checkpoint) {
  std::uint64_t total = 0;
  for (const auto& [name, tensor] : checkpoint) {
    require(checkpoint.find(name) == &tensor, "a name that is not found", std::string(name));
    std::vector<std::byte> bytes(static_cast<std::size_t>(tensor.nbytes()));
    tensor.read(0, bytes);
    total += bytes.size();
  }
  return total;
}

std::optional<Checkpoint> applied(const Checkpoint& checkpoint, const WeightMap& map) try {
  return apply(checkpoint, map);
} catch (const Error& error) {
  require_usual(error);
  return std::nullopt;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Checkpoint before = model();
  try {
    const WeightMap map = WeightMap::parse({reinterpret_cast<const char*>(data), size});
    const auto after = applied(before, map);
    if (!after) return 0;
    const std::uint64_t bytes = read_all(*after);
    const auto back = applied(*after, map.reversed());
    if (back) require(read_all(*back) == bytes, "a way back that loses bytes");
  } catch (const Error& error) {
    require_usual(error);
  }
  return 0;
}
