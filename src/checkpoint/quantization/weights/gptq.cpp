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
#include <array>
#include <bit>
#include <cstring>

#include "checkpoint/quantization/weights/readers.hpp"
#include "core/text.hpp"
#include "kernels/cast.hpp"
#include "kernels/packed/byte_codes.hpp"
#include "kernels/packed/codes.hpp"
#include "kernels/packed/runs.hpp"
#include "kernels/packed/word_codes.hpp"
#include "tensor/packed/transposed_storage.hpp"

namespace ballast {
namespace {

struct Gptq {
  Tensor words, zeros, scales;
  std::optional<Tensor> group_of;  // g_idx
  std::uint64_t inputs = 0, outputs = 0, groups = 0, group_size = 0;
  unsigned bits = 4;
  bool adds_one = false;
  bool is_awq = false;
  std::string weight;  // its name, for errors that are found while it is read
};

// Some columns of a matrix, read into memory.
std::vector<std::byte> read_columns(const Tensor& matrix, std::uint64_t first_row, std::uint64_t rows,
                                    std::uint64_t first, std::uint64_t count) {
  const auto range = [](std::uint64_t from, std::uint64_t size) {
    return SliceIndex::range(static_cast<std::int64_t>(from), static_cast<std::int64_t>(from + size));
  };
  const Tensor part = matrix.slice({range(first_row, rows), range(first, count)});
  std::vector<std::byte> bytes(static_cast<std::size_t>(part.nbytes()));
  part.read(0, bytes);
  return bytes;
}

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

class GptqDecoder final : public StripDecoder {
 public:
  GptqDecoder(const Gptq& gptq, const ColumnStrip& strip)
      : gptq_(gptq), first_(strip.first_column), columns_(static_cast<std::size_t>(strip.columns)), row_(columns_) {
    if (gptq_.group_of) groups_ = read_groups(*gptq_.group_of, gptq_.groups, gptq_.weight);
    read_scales();
    read_zeros();
  }

  Overflows decode(std::uint64_t first_row, std::uint64_t rows, std::span<std::byte> out) override {
    const std::size_t row_bytes = columns_ * info(gptq_.scales.dtype()).block_bytes;
    Overflows overflows;
    read_words(first_row, rows);
    for (std::uint64_t i = 0; i < rows; ++i) {
      if (gptq_.is_awq) {
        unpack_awq_row(i);
      } else {
        unpack_row(i);
      }
      const std::size_t group = groups_.empty() ? (first_row + i) / gptq_.group_size : groups_[first_row + i];
      kernels::step_runs(kernels::RunStep::subtract, row_, zeros_.data() + group * columns_, 1);
      kernels::step_runs(kernels::RunStep::multiply, row_, scales_.data() + group * columns_, 1);
      overflows.add(kernels::cast(DType::f32, gptq_.scales.dtype(), std::as_bytes(std::span(row_)),
                                  out.subspan(i * row_bytes, row_bytes)));
    }
    return overflows;
  }

 private:
  void read_scales() {
    const auto bytes = read_columns(gptq_.scales, 0, gptq_.groups, first_, columns_);
    scales_.resize(static_cast<std::size_t>(gptq_.groups) * columns_);
    kernels::cast(gptq_.scales.dtype(), DType::f32, bytes, std::as_writable_bytes(std::span(scales_)));
  }

  void read_zeros() {
    const std::uint64_t bits = gptq_.bits, end = (first_ + columns_) * bits;
    const std::uint64_t first_word = first_ * bits / 32, words = (end + 31) / 32 - first_word;
    std::vector<std::byte> bytes = read_columns(gptq_.zeros, 0, gptq_.groups, first_word, words);
    if (gptq_.adds_one && gptq_.bits != 3) add_one(gptq_.bits, bytes);
    std::vector<std::uint8_t> codes(static_cast<std::size_t>(words * 32 / bits));
    zeros_.resize(scales_.size());
    for (std::size_t group = 0; group < gptq_.groups; ++group) {
      const std::span line = std::span(bytes).subspan(group * words * 4, words * 4);
      if (gptq_.is_awq) {
        kernels::awq_codes(line.data(), static_cast<std::size_t>(words), codes.data());
      } else {
        kernels::unpack_codes(gptq_.bits, line, codes);
      }
      for (std::size_t i = 0; i < columns_; ++i) {
        const unsigned code = gptq_.adds_one && gptq_.bits == 3 ? (codes[i] + 1u) & 7 : codes[i];
        zeros_[group * columns_ + i] = static_cast<float>(code);
      }
    }
  }

  // The words of some rows: rows of the codes in AWQ; else a row of words has the codes of several rows, and three rows
  // of words have those of 32 rows of 3 bits.
  void read_words(std::uint64_t first_row, std::uint64_t rows) {
    if (gptq_.is_awq) {
      words_ = read_columns(gptq_.words, first_row, rows, first_ / 8, (columns_ + 7) / 8);
      return;
    }
    const std::uint64_t first = first_row * gptq_.bits / 32, end = ((first_row + rows) * gptq_.bits + 31) / 32;
    words_ = read_columns(gptq_.words, first, end - first, first_, columns_);
  }

  void unpack_row(std::uint64_t row) {
    const std::uint64_t bit = row * gptq_.bits;
    const std::byte* low = words_.data() + bit / 32 * columns_ * 4;
    kernels::word_codes(low, low + columns_ * 4, static_cast<unsigned>(bit % 32), gptq_.bits, columns_, row_.data());
  }

  void unpack_awq_row(std::uint64_t row) {
    const std::size_t words = (columns_ + 7) / 8;
    codes_.resize(words * 8);
    kernels::awq_codes(words_.data() + row * words * 4, words, codes_.data());
    kernels::byte_fields({}, std::as_bytes(std::span(codes_).first(columns_)), row_.data());
  }

  const Gptq& gptq_;
  std::uint64_t first_;
  std::size_t columns_;
  std::vector<std::uint32_t> groups_;  // of each input, if they are not in order
  std::vector<float> scales_, zeros_;  // of each group, for the columns of the strip
  std::vector<std::byte> words_;       // of the rows that are decoded
  std::vector<std::uint8_t> codes_;
  std::vector<float> row_;
};

class GptqStrips final : public StripSource {
 public:
  explicit GptqStrips(Gptq gptq) : gptq_(std::move(gptq)) {
    from = {gptq_.words, gptq_.zeros, gptq_.scales};
    if (gptq_.group_of) from.push_back(*gptq_.group_of);
    scheme = gptq_.is_awq ? "awq" : "gptq";
    rows = gptq_.inputs;
    columns = gptq_.outputs;
    row_unit = gptq_.is_awq ? 1 : 32;
    column_unit = gptq_.is_awq ? 8 : 32;
    dtype = gptq_.scales.dtype();
  }

  std::unique_ptr<StripDecoder> decoder(const ColumnStrip& strip) const override {
    return std::make_unique<GptqDecoder>(gptq_, strip);
  }

 private:
  Gptq gptq_;
};

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
  if (fitting.size() == 1) return fitting.front();
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
  for (const char* key : {"checkpoint_format", "format", "version", "packing_format", "backend"}) {
    const std::string word = lower_case(module.text(key));
    for (const char* layout : {"marlin", "qqq", "bitblas", "gemv", "llm-awq", "exllama_v3", "planar"})
      if (word.find(layout) != std::string::npos)
        module.refuse(fmt::format("is laid out for a kernel ({}), and not in the order of its matrix", word));
  }
  if (const Json* is_marlin = module.quantization().config.find("is_marlin_format");
      is_marlin != nullptr && is_marlin->is_bool() && is_marlin->boolean())
    module.refuse("is laid out for Marlin's kernels, and not in the order of its matrix");
}

bool is_conv1d(const PackedModule& module) {
  const std::string_view base = module.base();
  return module.model_type() == "gpt2" &&
         (base.ends_with(".c_attn") || base.ends_with(".c_proj") || base.ends_with(".c_fc"));
}

}  // namespace

Tensor read_gptq(PackedModule& module) {
  module.set_weight(module.base() + ".weight");
  refuse_layouts_of_kernels(module);
  Gptq gptq;
  gptq.weight = module.weight();
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
  Tensor weight = transposed_strips(std::make_unique<GptqStrips>(std::move(gptq)), false);
  return is_conv1d(module) ? weight.transpose() : weight;
}

}  // namespace ballast
