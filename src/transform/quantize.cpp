#include "transform/quantize.hpp"

#include <fmt/format.h>
#include <ballast/error.hpp>
#include <ballast/transform.hpp>

#include <array>
#include <string>
#include <utility>

#include "checkpoint/quantization/packed_parts.hpp"
#include "core/text.hpp"
#include "kernels/ggml/encode.hpp"
#include "transform/once_per_tensor.hpp"

namespace ballast {
namespace {

// The type that llama.cpp uses if rows are not whole blocks, and the number of the type for general.file_type.
struct Row {
  DType type;
  DType fallback;
  std::uint32_t file_type;
};
// clang-format off
constexpr std::array kRows = {
    Row{DType::q4_0, DType::f16, 2},     Row{DType::q4_1, DType::f16, 3},     Row{DType::q5_0, DType::f16, 8},
    Row{DType::q5_1, DType::f16, 9},     Row{DType::q8_0, DType::f16, 7},     Row{DType::q2_k, DType::q4_0, 10},
    Row{DType::q3_k, DType::q4_0, 12},   Row{DType::q4_k, DType::q5_0, 15},   Row{DType::q5_k, DType::q5_1, 17},
    Row{DType::q6_k, DType::q8_0, 18},   Row{DType::q8_k, DType::q8_0, 1024}, Row{DType::iq4_nl, DType::f16, 25},
    Row{DType::iq4_xs, DType::iq4_nl, 30}, Row{DType::tq1_0, DType::q4_0, 36}, Row{DType::tq2_0, DType::q4_0, 37},
    Row{DType::mxfp4, DType::f16, 38},   Row{DType::nvfp4, DType::f16, 39},   Row{DType::q1_0, DType::f16, 40},
    Row{DType::q2_0, DType::f16, 41},    Row{DType::iq1_s, DType::iq4_nl, 24}, Row{DType::iq1_m, DType::iq4_nl, 31},
    Row{DType::iq2_xxs, DType::iq4_nl, 19}, Row{DType::iq2_xs, DType::iq4_nl, 20}, Row{DType::iq2_s, DType::iq4_nl, 29},
    Row{DType::iq3_xxs, DType::iq4_nl, 23}, Row{DType::iq3_s, DType::iq4_nl, 26},
};
// clang-format on

const Row& row_of(DType type) {
  if (kernels::needs_importance(type)) {
    throw Error(Errc::unsupported, fmt::format("values are encoded as {} with an importance matrix only", name(type)))
        .hint("IQ2_S and IQ3_S need none");
  }
  for (const Row& row : kRows) {
    if (row.type == type) return row;
  }
  throw Error(Errc::unsupported, fmt::format("values cannot be encoded as {}", name(type)));
}

bool has_whole_blocks(const Tensor& tensor, DType type) {
  return tensor.shape()[tensor.rank() - 1] % info(type).block_elements == 0;
}

// The type itself, the type that llama.cpp falls back to, or F16, which takes any row.
DType choose(const Tensor& tensor, const Row& row) {
  if (has_whole_blocks(tensor, row.type)) return row.type;
  if (row.fallback != DType::f16 && has_whole_blocks(tensor, row.fallback)) return row.fallback;
  return DType::f16;
}

}  // namespace

bool is_real(const Tensor& tensor) {
  return is_floating(tensor.dtype()) || info(tensor.dtype()).kind == DTypeKind::ggml;
}

std::vector<DType> encodable_types() {
  std::vector<DType> types;
  for (const Row& row : kRows) {
    if (!kernels::needs_importance(row.type)) types.push_back(row.type);
  }
  return types;
}

Checkpoint quantize(Checkpoint checkpoint, DType type) {
  const Row& row = row_of(type);
  StateDict tensors;
  tensors.reserve(checkpoint.size());
  OncePerTensor once;
  const PackedParts packed(checkpoint);
  for (const auto& [name, tensor] : checkpoint) {
    packed.refuse(name, tensor, "encoded as " + std::string(ballast::name(type)));
    // Norms and biases are small and matter a lot: llama.cpp keeps vectors as they are, in F32.
    if (!is_real(tensor) || tensor.rank() == 0) {
      tensors.insert(name, tensor);
      continue;
    }
    if (tensor.rank() == 1) {
      tensors.insert(name, once(tensor, [](const Tensor& t) { return t.to(DType::f32); }));
      continue;
    }
    const DType chosen = choose(tensor, row);
    if (chosen != type) {
      checkpoint.notes.push_back(
          {std::string(name),
           fmt::format("tensor {} has rows of {}, no whole blocks of {}: written as {}", quote(name),
                       tensor.shape()[tensor.rank() - 1], ballast::name(type), ballast::name(chosen)),
           Note::Kind::remark});
    }
    tensors.insert(name, once(tensor, [&](const Tensor& t) { return t.to(chosen); }));
  }
  checkpoint.tensors = std::move(tensors);
  checkpoint.typed_metadata.set(MetadataEntry::of("general.quantization_version", std::uint32_t{2}));
  checkpoint.typed_metadata.set(MetadataEntry::of("general.file_type", row.file_type));
  return checkpoint;
}

}  // namespace ballast
