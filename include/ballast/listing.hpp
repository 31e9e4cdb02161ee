// Listing: which tensors of a checkpoint, and in which order; what ls shows of each; and how much they are together.
//
// These functions read no tensor data, and may be called from several threads at once. What they return refers to the
// checkpoint by numbers, or says that it keeps a reference.
//
// Example:
//   const Checkpoint checkpoint = open("model.safetensors");
//   for (const std::size_t i : list_tensors(checkpoint, {.dtypes = {"F32"}, .top = 10}))
//     std::printf("%llu\n", static_cast<unsigned long long>(describe_tensor(checkpoint, i).numel()));
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <ballast/checkpoint.hpp>

namespace ballast {

// Bytes and numel put the largest first, all others are ascending: names and files in natural order, shapes dimension
// by dimension. Tensors with equal keys are in the natural order of their names.
enum class SortBy : std::uint8_t { name, bytes, numel, dtype, shape, file };
inline constexpr std::array<std::string_view, 6> kSortNames = {"name", "bytes", "numel", "dtype", "shape", "file"};
constexpr std::string_view name(SortBy key) noexcept { return kSortNames[static_cast<std::size_t>(key)]; }

struct ListOptions {
  std::vector<std::string> dtypes{};  // as TensorDescription has them; if there is none, every dtype is listed
  std::uint64_t min_bytes = 0, max_bytes = std::numeric_limits<std::uint64_t>::max();
  std::optional<SortBy> sort{};  // by default the order of the checkpoint or, with `top`, by bytes
  bool reverse = false;          // of the sorting; tensors with equal keys stay in the order of their names
  std::uint64_t top = 0;         // only so many, after sorting; 0 for all
};

// The numbers of the tensors in checkpoint.tensors.
std::vector<std::size_t> list_tensors(const Checkpoint& checkpoint, const ListOptions& options);

// A dtype as listings have it: the name of the one that a person means (see parse_dtype), or "GGML_99" for a type of
// ggml that is newer than this library. Empty if there is no such dtype.
std::optional<std::string> parse_listed_dtype(std::string_view text);

// What a file says of a tensor. A tensor of a ggml type that is newer than this library is bytes, U8, in the
// checkpoint; here it has the name GGML_ with the number of the type, and the shape that the file says.
struct TensorDescription {
  std::string dtype;
  const Shape& shape;  // of the checkpoint

  // The number of elements; the largest number if it does not fit 64 bits.
  std::uint64_t numel() const noexcept { return shape.numel().value_or(std::numeric_limits<std::uint64_t>::max()); }
};
TensorDescription describe_tensor(const Checkpoint& checkpoint, std::size_t number);

// Parameters and bytes of several tensors. Those that share their bytes count once. A sum beyond 64 bits is the largest
// number.
struct TensorTotals {
  std::uint64_t tensors = 0, parameters = 0, bytes = 0;
};
TensorTotals add_up(const Checkpoint& checkpoint);
TensorTotals add_up(const Checkpoint& checkpoint, std::span<const std::size_t> numbers);

// Whether a word is a glob, and not only a name: it has a wildcard, braces, or a backslash.
bool is_glob(std::string_view word);

// If `word` has no wildcard and is no name of a tensor, but a part of names: the glob "*word*" that matches those.
std::optional<std::string> glob_of_part(const Checkpoint& checkpoint, std::string_view word);

}  // namespace ballast
