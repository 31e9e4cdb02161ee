#include "tensor/packed/column_codes.hpp"

#include <memory>
#include <utility>
#include <vector>

#include "kernels/cast.hpp"
#include "kernels/packed/word_codes.hpp"
#include "tensor/concat_storage.hpp"
#include "tensor/derived_storage.hpp"

namespace ballast {
namespace {

constexpr std::uint64_t kRowsInBlock = 32;  // these begin and end on a word, whatever the bits are

class ColumnCodes final : public BlockwiseStorage {
 public:
  ColumnCodes(Tensor words, std::uint64_t rows, unsigned bits)
      : BlockwiseStorage({words}, "unpacked from words",
                         static_cast<std::size_t>(words_of(rows, bits) * words.shape()[1] * 4),
                         static_cast<std::size_t>(rows * words.shape()[1]), Making::in_steps),
        columns_(static_cast<std::size_t>(words.shape()[1])),
        rows_(rows),
        bits_(bits) {}

  static std::uint64_t words_of(std::uint64_t rows, unsigned bits) { return (rows * bits + 31) / 32; }

 private:
  Overflows make(std::uint64_t, std::span<const std::byte> in, std::span<std::byte> out) const override {
    std::vector<float> row(columns_);
    const std::size_t block_bytes = words_of(rows_, bits_) * columns_ * 4;
    for (; !in.empty(); in = in.subspan(block_bytes)) {
      for (std::uint64_t i = 0; i < rows_; ++i, out = out.subspan(columns_)) {
        const std::byte* low = in.data() + i * bits_ / 32 * columns_ * 4;
        kernels::word_codes(low, low + columns_ * 4, static_cast<unsigned>(i * bits_ % 32), bits_, columns_,
                            row.data());
        for (std::size_t k = 0; k < columns_; ++k) out[k] = static_cast<std::byte>(row[k]);
      }
    }
    return {};
  }

  std::size_t columns_;
  std::uint64_t rows_;  // of a block
  unsigned bits_;
};

Tensor block_rows(const Tensor& words, std::uint64_t rows, std::uint64_t rows_in_block, unsigned bits) {
  return Tensor(DType::u8, {rows, words.shape()[1]}, std::make_shared<ColumnCodes>(words, rows_in_block, bits));
}

}  // namespace

Tensor column_codes(const Tensor& words, std::uint64_t rows, unsigned bits, unsigned in_word) {
  const std::uint64_t in_block = in_word != 0 ? in_word : kRowsInBlock;
  const std::uint64_t whole = rows / in_block, rest = rows % in_block;
  if (rows == 0 || words.shape()[1] == 0) return Tensor(DType::u8, {rows, words.shape()[1]}, nullptr);
  const auto first_words = static_cast<std::int64_t>(whole * ColumnCodes::words_of(in_block, bits));
  std::vector<Tensor> parts;
  if (whole != 0)
    parts.push_back(block_rows(words.slice({SliceIndex::range(0, first_words)}), whole * in_block, in_block, bits));
  if (rest != 0) {
    const auto end = first_words + static_cast<std::int64_t>(ColumnCodes::words_of(rest, bits));
    parts.push_back(block_rows(words.slice({SliceIndex::range(first_words, end)}), rest, rest, bits));
  }
  return parts.size() == 1 ? parts.front() : concatenated(std::move(parts), 0);
}

}  // namespace ballast
