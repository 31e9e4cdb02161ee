// rank_pattern is {"model.layers.0.q_proj.lora_E": [true, false, ...]}; some releases wrote the adapter's name at the
// end of a key. A rank that is false was pruned: it is a row of A and of E, and a column of B.
#include <ballast/error.hpp>

#include <algorithm>

#include "core/remedy.hpp"
#include "core/text.hpp"
#include "peft/computed.hpp"
#include "peft/files/special.hpp"
#include "peft/hints.hpp"
#include "peft/names.hpp"

namespace ballast::peft {
namespace {

std::vector<std::uint64_t> kept_ranks(const Json& mask, std::string_view key) {
  std::vector<std::uint64_t> kept;
  const Json::List& flags = mask.list();
  for (std::size_t i = 0; i < flags.size(); ++i) {
    if (!flags[i].is_bool())
      throw Error(Errc::malformed, "rank_pattern of " + quote(key) + " must hold true and false");
    if (flags[i].boolean()) kept.push_back(i);
  }
  return kept;
}

// The chosen indices along the first dimension, or the second, of a matrix.
Tensor chosen(const Tensor& matrix, std::size_t dim, const std::vector<std::uint64_t>& indices) {
  const std::uint64_t rows = matrix.shape()[0], columns = matrix.shape()[1];
  const std::uint64_t width = info(matrix.dtype()).block_bytes;
  const Shape shape = dim == 0 ? Shape{indices.size(), columns} : Shape{rows, indices.size()};
  return computed(matrix.dtype(), shape, "ranks kept", {matrix}, [=](const std::vector<Tensor>& from) {
    std::vector<std::byte> all(from[0].nbytes()), out;
    from[0].read(0, all);
    const auto copy = [&](std::uint64_t first, std::uint64_t count) {
      out.insert(out.end(), all.begin() + static_cast<std::ptrdiff_t>(first * width),
                 all.begin() + static_cast<std::ptrdiff_t>((first + count) * width));
    };
    if (dim == 0)
      for (const std::uint64_t row : indices) copy(row * columns, columns);
    else
      for (std::uint64_t row = 0; row < rows; ++row)
        for (const std::uint64_t column : indices) copy(row * columns + column, 1);
    return out;
  });
}

void keep_at(StateDict& file, const std::string& module, std::string_view ending, std::string_view key,
             const Json& mask) {
  const std::vector<std::uint64_t> kept = kept_ranks(mask, key);
  for (const auto& [parameter, dim] : {std::pair("lora_A", 0), std::pair("lora_B", 1), std::pair("lora_E", 0)}) {
    const std::string name = module + "." + parameter + std::string(ending);
    const Tensor* tensor = file.find(name);
    if (tensor == nullptr || tensor->rank() != 2) continue;
    const std::uint64_t ranks = tensor->shape()[static_cast<std::size_t>(dim)];
    if (ranks == kept.size()) continue;  // they were pruned already
    if (ranks != mask.list().size()) {
      throw Error(Errc::mismatch, "tensor " + quote(name) + " has " + std::to_string(ranks) +
                                      " ranks, but rank_pattern has " + std::to_string(mask.list().size()))
          .hint(kIsItTheConfig);
    }
    if (info(tensor->dtype()).block_elements != 1) {  // elements without bytes of their own
      throw Error(Errc::unsupported, "tensor " + quote(name) + " has dtype " + std::string(info(tensor->dtype()).name) +
                                         ", of which no ranks can be chosen")
          .hint("cast it with " + mention(Remedy::cast, "F32"));
    }
    file.replace(name, chosen(*tensor, static_cast<std::size_t>(dim), kept));
  }
}

}  // namespace

void keep_ranks(StateDict& tensors, const AdapterConfig& config, std::string_view adapter) {
  const Json* pattern = config.find("rank_pattern");
  if (pattern == nullptr || !pattern->is_object()) return;
  const std::string ending = adapter.empty() ? "" : "." + std::string(adapter);
  for (const auto& [key, mask] : pattern->members()) {
    const std::size_t end = key.rfind(".lora_E");
    if (end == std::string::npos || !mask.is_list()) continue;
    keep_at(tensors, std::string(kPrefix) + key.substr(0, end), ending, key, mask);
  }
}

}  // namespace ballast::peft
