// VB-LoRA with save_only_topk_weights keeps, of the logits over the vector bank, the k largest: their indices in the
// smallest integers that hold them, and the softmax of them without the last, since they add up to 1.
#include <ballast/error.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

#include "core/text.hpp"
#include "ops/adapter/computed.hpp"
#include "ops/adapter/special.hpp"

namespace ballast::adapter {
namespace {

constexpr std::string_view kIndices = "_topk_indices", kWeights = "_topk_weights";

constexpr std::uint64_t kMostLogits = std::uint64_t{1} << 30;  // a few bytes of indices can stand for any number

DType index_dtype(std::uint64_t vector_count) {
  if (vector_count < (1u << 8)) return DType::u8;
  if (vector_count < (1u << 15)) return DType::i16;
  return vector_count < (std::uint64_t{1} << 31) ? DType::i32 : DType::i64;
}

Shape with_last(const Shape& shape, std::uint64_t last) {
  std::vector<std::uint64_t> dims(shape.begin(), shape.end());
  dims.back() = last;
  return Shape(dims);
}

// Little-endian integers of any width.
void append_integer(std::vector<std::byte>& out, std::uint64_t value, std::size_t width) {
  for (std::size_t i = 0; i < width; ++i) out.push_back(static_cast<std::byte>(value >> (8 * i)));
}

// Whether each element is an integer of bytes of its own, no more than a word of ours has.
bool holds_indices(DType dtype) {
  const DTypeInfo& type = info(dtype);
  const bool is_integer = type.kind == DTypeKind::unsigned_integer || type.kind == DTypeKind::signed_integer;
  return is_integer && type.block_elements == 1 && type.block_bytes <= sizeof(std::uint64_t);
}

std::vector<std::uint64_t> integers_of(const Tensor& tensor) {
  const std::size_t width = info(tensor.dtype()).block_bytes;
  std::vector<std::byte> bytes(tensor.nbytes());
  tensor.read(0, bytes);
  std::vector<std::uint64_t> values(tensor.numel());
  for (std::size_t i = 0; i < values.size(); ++i) std::memcpy(&values[i], bytes.data() + i * width, width);
  return values;
}

// The places of the largest, the largest first; of equals the first.
std::vector<std::uint64_t> largest(std::span<const float> row, std::size_t count) {
  std::vector<std::uint64_t> places(row.size());
  std::iota(places.begin(), places.end(), std::uint64_t{0});
  std::ranges::stable_sort(places, [&](std::uint64_t a, std::uint64_t b) { return row[a] > row[b]; });
  places.resize(count);
  return places;
}

std::vector<float> softmax(std::span<const float> row, const std::vector<std::uint64_t>& places) {
  std::vector<float> weights;
  float sum = 0;
  for (const std::uint64_t place : places) {
    weights.push_back(std::exp(row[place] - row[places[0]]));
    sum += weights.back();
  }
  for (float& weight : weights) weight /= sum;
  return weights;
}

template <class Append>
std::vector<std::byte> for_each_row(const Tensor& logits, std::size_t count, const Append& append) {
  const std::vector<float> values = floats_of(logits);
  const std::size_t width = logits.shape()[logits.rank() - 1];
  std::vector<std::byte> out;
  for (std::size_t i = 0; i < values.size(); i += width) {
    const std::span<const float> row = std::span(values).subspan(i, width);
    append(out, row, largest(row, count));
  }
  return out;
}

Tensor indices_of(const Tensor& logits, std::size_t count, DType dtype) {
  return computed(dtype, with_last(logits.shape(), count), "largest", {logits}, [=](const auto& from) {
    return for_each_row(from[0], count, [&](auto& out, auto, const auto& places) {
      for (const std::uint64_t place : places) append_integer(out, place, info(dtype).block_bytes);
    });
  });
}

Tensor weights_of(const Tensor& logits, std::size_t count) {
  return computed(DType::f32, with_last(logits.shape(), count - 1), "softmax", {logits}, [=](const auto& from) {
    return for_each_row(from[0], count, [&](auto& out, auto row, const auto& places) {
      std::vector<float> weights = softmax(row, places);
      weights.pop_back();
      const auto bytes = std::as_bytes(std::span(weights));
      out.insert(out.end(), bytes.begin(), bytes.end());
    });
  });
}

Tensor logits_of(const Tensor& indices, const Tensor& weights, std::uint64_t vector_count) {
  const std::size_t count = indices.shape()[indices.rank() - 1];
  const Shape shape = with_last(indices.shape(), vector_count);
  if (shape.numel().value_or(UINT64_MAX) > kMostLogits)
    throw Error(Errc::limit, "logits of the shape " + to_string(shape))
        .hint("is the vector bank that of this adapter?");
  return computed(DType::f32, shape, "logarithms of weights", {indices, weights}, [=](const auto& from) {
    const std::vector<std::uint64_t> places = integers_of(from[0]);
    const std::vector<float> given = floats_of(from[1]);
    const std::size_t rows = places.size() / count;
    std::vector<float> logits(rows * vector_count, -std::numeric_limits<float>::infinity());
    for (std::size_t row = 0; row < rows; ++row) {
      float sum = 0;
      for (std::size_t i = 0; i < count; ++i) {
        const bool is_last = i + 1 == count;
        const float weight = is_last ? 1 - sum : given[row * (count - 1) + i];
        const std::uint64_t place = places[row * count + i];
        if (place >= vector_count) throw Error(Errc::malformed, "an index lies past the end of the vector bank");
        logits[row * vector_count + place] = std::log(weight);
        sum += weight;
      }
    }
    return bytes_of_floats(logits);
  });
}

}  // namespace

void keep_largest(StateDict& file, const AdapterConfig& config) {
  if (!config.is_set("save_only_topk_weights")) return;
  const auto count = static_cast<std::size_t>(config.number("topk", 2));
  StateDict kept;
  for (const auto& [name, tensor] : file) {
    if (name.find("vblora_logits_") == std::string_view::npos) {
      kept.insert(name, tensor);
      continue;
    }
    const std::uint64_t vector_count = tensor.rank() == 0 ? 0 : tensor.shape()[tensor.rank() - 1];
    if (count < 1 || count > vector_count) {
      throw Error(Errc::mismatch, "tensor " + quote(name) + " has " + std::to_string(vector_count) +
                                      " logits, of which \"topk\" would keep " + std::to_string(count))
          .hint("is this the adapter_config.json that belongs to the model?");
    }
    kept.insert(std::string(name) + std::string(kIndices), indices_of(tensor, count, index_dtype(vector_count)));
    kept.insert(std::string(name) + std::string(kWeights), weights_of(tensor, count));
  }
  file = std::move(kept);
}

void spread_largest(StateDict& file) {
  StateDict spread;
  const Tensor* bank = file.find("base_model.vblora_vector_bank");
  for (const auto& [name, tensor] : file) {
    if (name.ends_with(kWeights)) continue;
    if (!name.ends_with(kIndices)) {
      spread.insert(name, tensor);
      continue;
    }
    const std::string logits(name.substr(0, name.size() - kIndices.size()));
    const Tensor* weights = file.find(logits + std::string(kWeights));
    if (weights == nullptr || bank == nullptr || bank->rank() == 0 || tensor.rank() == 0) {
      throw Error(Errc::malformed, "tensor " + quote(name) + " has no weights or no vector bank beside it")
          .hint("was the file saved whole?");
    }
    const std::uint64_t count = tensor.shape()[tensor.rank() - 1];
    if (count == 0 || weights->shape() != with_last(tensor.shape(), count - 1) || !holds_indices(tensor.dtype()))
      throw Error(Errc::mismatch, "the indices and the weights of " + quote(logits) + " do not belong together");
    spread.insert(logits, logits_of(tensor, *weights, bank->shape()[0]));
  }
  file = std::move(spread);
}

}  // namespace ballast::adapter
