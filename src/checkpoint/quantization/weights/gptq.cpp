// GPTQ and AWQ: a weight [out, in] is kept as codes [in, out], with scales and zero points [groups, out].
//
//   part     GPTQ                                   AWQ
//   qweight  words [in * bits / 32, out]: a column  words [in, out / 8]: eight outputs in the order 0 2 4 6 1 3 5 7
//            is a little-endian stream of bits
//   qzeros   words [groups, out * bits / 32]: the   words [groups, out / 8], as above
//            same along a row; in files of version
//            1 less one
//   scales   [groups, out]                          [groups, out]
//   g_idx    [in]: the group of each input          -
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "checkpoint/quantization/scheme_table.hpp"
#include "checkpoint/quantization/weights/code_layout.hpp"
#include "checkpoint/quantization/weights/readers.hpp"
#include "core/text.hpp"
#include "kernels/packed/codes.hpp"
#include "kernels/packed/word_codes.hpp"
#include "tensor/packed/transposed_storage.hpp"

namespace ballast {
namespace {

struct Gptq {
  Tensor words, zeros, scales;
  Boxed<Tensor> group_of{};  // g_idx
  std::uint64_t inputs = 0, outputs = 0, groups = 0, group_size = 0;
  unsigned bits = 4;
  bool adds_one = false;
  bool is_awq = false;
  std::string weight;  // its name, for errors that are found while it is read
};

// Files of version 1 keep zero points less one. Their writer subtracts from whole words, so that a zero point of 0
// borrows from its neighbour, and adding to whole words gives every zero point back. A word of 3-bit codes has parts of
// codes at its ends: there each code has its own sum.
void add_one(unsigned bits, std::span<std::byte> words) {
  std::uint32_t ones = 0;
  for (unsigned at = 0; at < 32; at += bits) ones |= 1u << at;
  for (std::size_t i = 0; i < words.size(); i += 4) {
    std::uint32_t word;
    std::memcpy(&word, words.data() + i, 4);
    word += ones;
    std::memcpy(words.data() + i, &word, 4);
  }
}

// The zero points of some outputs for some groups, a byte each.
void read_zeros(const Gptq& gptq, const MatrixPart& part, std::span<std::byte> out) {
  const std::uint64_t bits = gptq.bits, first = part.first_column * bits / 32;
  const std::uint64_t words = ((part.first_column + part.columns) * bits + 31) / 32 - first;
  std::vector<std::byte> bytes(static_cast<std::size_t>(part.rows * words * 4));
  part_of(gptq.zeros, {part.first_row, part.rows, first, words}).read(0, bytes);
  if (gptq.is_awq) kernels::order_awq_codes(bytes);
  if (gptq.adds_one && bits != 3) add_one(gptq.bits, bytes);
  for (std::uint64_t row = 0; row < part.rows; ++row) {
    auto* codes = reinterpret_cast<std::uint8_t*>(out.data() + row * part.columns);
    const std::span line = std::span(bytes).subspan(row * words * 4, words * 4);
    kernels::unpack_codes(gptq.bits, line, {codes, static_cast<std::size_t>(part.columns)});
    if (gptq.adds_one && bits == 3)
      for (std::uint64_t i = 0; i < part.columns; ++i) codes[i] = (codes[i] + 1) & 7;
  }
}

// With outputs before inputs, the words of an output are a row of codes that follow each other. AWQ's words have codes
// of eight outputs: the bytes of two outputs are a row of bytes.
Tensor transposed_codes(const Gptq& gptq) {
  if (!gptq.is_awq) return transposed(gptq.words);
  return transposed(MatricesInParts{
      .from = {gptq.words},
      .rows = gptq.inputs,
      .columns = gptq.outputs / 2,
      .column_unit = 4,
      .read =
          [words = gptq.words](const MatrixPart& part, std::span<std::byte> out) {
            part_of(words, {part.first_row, part.rows, part.first_column / 4, part.columns / 4}).read(0, out);
            kernels::order_awq_codes(out);
          },
  });
}

Tensor transposed_zeros(const Gptq& gptq) {
  return transposed(MatricesInParts{
      .from = {gptq.zeros},
      .rows = gptq.groups,
      .columns = gptq.outputs,
      .column_unit = 32,  // a word begins there, whatever the bits are
      .read = [gptq](const MatrixPart& part, std::span<std::byte> out) { read_zeros(gptq, part, out); },
  });
}

PackedRows rows_of_outputs(const Gptq& gptq) {
  PackedRows rows{.packed = transposed_codes(gptq), .columns = gptq.inputs, .codes = integer_codes(gptq.bits, 0)};
  rows.row_bytes = rows.packed.shape()[1] * info(rows.packed.dtype()).block_bytes;
  if (gptq.is_awq) {
    rows.rows_in_byte = 2;
    rows.codes = bit_field_codes(0, gptq.bits, 0);
  }
  const auto numbers = [&](Tensor values) {
    return GroupNumbers{.values = std::move(values),
                        .in_line = gptq.groups,
                        .columns_each = gptq.group_size,
                        .group_of = gptq.group_of};
  };
  rows.scale = numbers(transposed(gptq.scales));
  rows.zero = numbers(transposed_zeros(gptq));
  rows.dtype = gptq.scales.dtype();
  rows.scheme = gptq.is_awq ? "awq" : "gptq";
  rows.weight = gptq.weight;
  return rows;
}

// Whether a configuration may have settings for single modules, which are not looked up.
bool may_have_own_settings(const PackedModule& module) {
  const Json& config = module.quantization().config;
  return config.find("dynamic") != nullptr || config.find("extra_config") != nullptr;  // GPTQModel's, AutoRound's
}

// The number of bits that fits the columns of qzeros, and the inputs that g_idx counts; that of the configuration, if
// several do.
unsigned bits_of(const PackedModule& module, const Gptq& gptq, const Tensor* group_of) {
  std::vector<unsigned> fitting;
  for (const unsigned bits : {2u, 3u, 4u, 8u}) {
    const bool fits_inputs = group_of == nullptr || words_for(group_of->numel(), bits) == gptq.words.shape()[0];
    if (fits_inputs && words_for(gptq.outputs, bits) == gptq.zeros.shape()[1]) fitting.push_back(bits);
  }
  const std::uint64_t configured = module.quantization().bits.value_or(0);
  for (const unsigned bits : fitting)
    if (bits == configured) return bits;
  const bool is_one_of_ours = configured == 2 || configured == 3 || configured == 4 || configured == 8;
  const bool may_differ = may_have_own_settings(module);
  if (fitting.size() == 1 && (!is_one_of_ours || may_differ)) return fitting.front();
  if (!fitting.empty() && is_one_of_ours && !may_differ)
    module.complain(fmt::format(
        "has zero points of shape {} for {} outputs, which do not fit the {} bits that its configuration says",
        to_string(gptq.zeros.shape()), gptq.outputs, configured));
  if (!fitting.empty()) module.refuse("is packed in words, and no configuration says how many bits a value has");
  if (configured >= 5 && configured <= 7)
    module.refuse(fmt::format("has codes of {} bits, which only GPTQModel reads", configured));
  module.complain(
      fmt::format("has zero points of shape {} for {} outputs", to_string(gptq.zeros.shape()), gptq.outputs));
}

void set_groups(PackedModule& module, Gptq& gptq) {
  const std::int64_t configured = module.quantization().group_size.value_or(-1);
  const auto size = configured > 0 ? static_cast<std::uint64_t>(configured) : gptq.inputs;
  const auto groups_of = [&](std::uint64_t group) { return gptq.inputs / group + (gptq.inputs % group != 0); };
  if (gptq.groups == 0 || gptq.inputs == 0) module.complain("has no groups");
  if (groups_of(size) == gptq.groups) {
    gptq.group_size = size;
  } else if (configured > 0 && !may_have_own_settings(module)) {
    module.complain(fmt::format("has {} groups for {} inputs, and its configuration says groups of {}", gptq.groups,
                                gptq.inputs, configured));
  } else if (const auto likely = likely_block(gptq.inputs, gptq.groups)) {
    gptq.group_size = *likely;
  } else if (!gptq.group_of) {
    module.complain(fmt::format("has {} groups for {} inputs", gptq.groups, gptq.inputs));
  }
}

void read_gptq_shapes(PackedModule& module, Gptq& gptq) {
  const Tensor* group_of = module.find(".g_idx");
  gptq.bits = bits_of(module, gptq, group_of);
  const Shape& words = gptq.words.shape();
  // As many inputs as the rows have room for, less those that groups or g_idx do not count.
  const std::uint64_t room = words[0] / gptq.bits * 32 + words[0] % gptq.bits * 32 / gptq.bits;
  gptq.inputs = room;
  if (group_of != nullptr) {
    if (group_of->rank() != 1 || group_of->dtype() != DType::i32)
      module.complain(fmt::format("has g_idx of {} {}", name(group_of->dtype()), to_string(group_of->shape())));
    gptq.inputs = group_of->numel();
    gptq.group_of = *group_of;
  } else if (const auto size = module.quantization().group_size.value_or(-1); size > 0) {
    const auto counted = static_cast<unsigned __int128>(gptq.groups) * static_cast<std::uint64_t>(size);
    if (counted < room && words_for(static_cast<std::uint64_t>(counted), gptq.bits) == words[0])
      gptq.inputs = static_cast<std::uint64_t>(counted);
  }
  if (gptq.inputs > room || words_for(gptq.inputs, gptq.bits) != words[0])
    module.complain(fmt::format("has {} inputs in words of shape {}", gptq.inputs, to_string(words)));
  const std::string_view format = module.text("checkpoint_format"), older = module.text("format");
  // AutoRound's own form keeps zero points as they are.
  const std::string_view packing = module.text("packing_format");
  const bool is_autorounds =
      module.scheme() == "auto-round" && (packing == "auto_round" || packing == "auto_round:gptqmodel");
  gptq.adds_one = format != "gptq_v2" && older != "gptq_v2" && !is_autorounds;
}

void read_awq_shapes(PackedModule& module, Gptq& gptq) {
  gptq.is_awq = true;
  gptq.inputs = gptq.words.shape()[0];
  module.check_shape(".qzeros", gptq.zeros, {gptq.groups, gptq.words.shape()[1]});
  if (gptq.outputs != gptq.words.shape()[1] * 8)
    module.complain(fmt::format("has scales for {} outputs, and codes of {}", gptq.outputs, gptq.words.shape()[1] * 8));
}

void refuse_layouts_of_kernels(const PackedModule& module) {
  if (const std::string layout = layout_of_kernel(module.quantization().config); !layout.empty())
    module.refuse(fmt::format("is laid out for a kernel ({}), and not in the order of its matrix", layout));
}

bool is_conv1d(const PackedModule& module) {
  const std::string_view base = module.base();
  return module.model_type() == "gpt2" &&
         (base.ends_with(".c_attn") || base.ends_with(".c_proj") || base.ends_with(".c_fc"));
}

}  // namespace

Tensor read_gptq(PackedModule& module) {
  refuse_layouts_of_kernels(module);
  Gptq gptq;
  gptq.weight = std::string(module.weight());
  gptq.words = module.need(".qweight");
  gptq.zeros = module.need(".qzeros");
  gptq.scales = module.need(".scales");
  const DType dtype = gptq.scales.dtype();
  if (gptq.words.rank() != 2 || gptq.zeros.rank() != 2 || gptq.scales.rank() != 2)
    module.complain("has parts that are not matrices");
  if (gptq.zeros.dtype() != gptq.words.dtype() || info(gptq.words.dtype()).block_bytes != 4)
    module.complain(fmt::format("has zero points of {}", name(gptq.zeros.dtype())));
  if (dtype != DType::f16 && dtype != DType::bf16 && dtype != DType::f32)
    module.complain(fmt::format("has scales of {}", name(dtype)));
  gptq.groups = gptq.scales.shape()[0];
  gptq.outputs = gptq.scales.shape()[1];
  if (gptq.zeros.shape()[0] != gptq.groups)
    module.complain(fmt::format("has {} groups of scales, and {} of zero points", gptq.groups, gptq.zeros.shape()[0]));
  if (gptq.words.shape()[1] == gptq.outputs) {
    read_gptq_shapes(module, gptq);
  } else {
    read_awq_shapes(module, gptq);
  }
  if (gptq.outputs != 0) set_groups(module, gptq);
  // Inputs in the order of their activations: without g_idx nobody knows their groups.
  const Json* ordered = module.quantization().config.find("desc_act");
  if (ordered != nullptr && ordered->is_bool() && ordered->boolean() && gptq.groups > 1 && !gptq.group_of)
    throw MissingPart{std::string(module.base()) + ".g_idx"};
  const Tensor weight = unpacked_rows(rows_of_outputs(gptq));
  return is_conv1d(module) ? weight.transpose() : weight;
}

}  // namespace ballast
