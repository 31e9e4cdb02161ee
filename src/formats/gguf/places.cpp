#include "formats/gguf/places.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include <fmt/format.h>
#include <ballast/error.hpp>

#include "core/checked.hpp"
#include "core/expansion.hpp"
#include "core/remedy.hpp"
#include "core/text.hpp"
#include "formats/gguf/types.hpp"

namespace ballast::gguf {
namespace {

[[noreturn]] void fail(const TensorInfo& tensor, Errc code, const std::string& what, const Advice& hint = {}) {
  Error error(code, "tensor " + quote(tensor.name) + " " + what);
  error.about(tensor.name).at_byte(tensor.position);
  if (!hint.empty()) error.hint(hint);
  throw error;
}

void check_type(const TensorInfo& tensor) {
  try {
    check_unknown_type(tensor.type);
  } catch (const Error& error) {
    fail(tensor, error.code(), "cannot be read: " + error.message(), error.hint());
  }
}

std::uint64_t size_of(const TensorInfo& tensor, DType dtype) {
  const std::uint64_t block = info(dtype).block_elements;
  const std::uint64_t row = tensor.shape.empty() ? 1 : tensor.shape[tensor.shape.rank() - 1];
  if (row % block != 0) {
    fail(tensor, Errc::malformed,
         fmt::format("has rows of {} elements, which are no whole blocks of {} ({} each)", row, name(dtype), block));
  }
  const auto size = bytes_of(dtype, tensor.numel);
  if (!size) fail(tensor, Errc::malformed, "has more bytes than 64 bits can count");
  return *size;
}

class Placer {
 public:
  Placer(const Header& header, std::uint64_t data_bytes, const ReadOptions& options)
      : header_(header), data_bytes_(data_bytes), options_(options) {}

  Places place() {
    all().reserve(header_.tensors.size());
    for (const TensorInfo& tensor : header_.tensors) all().push_back(first_look(tensor));
    if (!place_as_ggml_does()) place_in_any_order();
    for (std::size_t i = 0; i < all().size(); ++i) check_inside(i);
    return std::move(result_);
  }

 private:
  std::vector<Place>& all() noexcept { return result_.places; }

  Place first_look(const TensorInfo& tensor) const {
    if (tensor.offset % header_.alignment != 0) {
      fail(tensor, Errc::malformed,
           fmt::format("begins at byte {} of the data, which is no multiple of {}", tensor.offset, header_.alignment));
    }
    const auto dtype = dtype_from_ggml(tensor.type);
    if (!dtype) check_type(tensor);
    return {tensor.offset, dtype ? size_of(tensor, *dtype) : 0, dtype};
  }

  std::uint64_t aligned_end(std::size_t number) {
    const Place& place = all()[number];
    const auto end = checked_add(place.offset, place.size);
    const auto aligned = end ? checked_align_up(*end, header_.alignment) : std::nullopt;
    if (!aligned) fail(header_.tensors[number], Errc::malformed, "ends where 64 bits cannot count");
    return *aligned;
  }

  // Whether each tensor begins where the one before it ends, aligned.
  bool place_as_ggml_does() {
    std::uint64_t end = 0;
    for (std::size_t i = 0; i < all().size(); ++i) {
      if (!all()[i].dtype || all()[i].offset != end) return false;
      end = aligned_end(i);
    }
    result_.end = end;
    return true;
  }

  void place_in_any_order() {
    std::vector<std::size_t> order(all().size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::stable_sort(order, {}, [&](std::size_t number) { return all()[number].offset; });
    note_disorder(order);

    std::size_t before = 0;
    for (std::size_t k = 0; k < order.size(); ++k) {
      Place& place = all()[order[k]];
      // An unknown type has the bytes up to the next tensor, or to the end.
      const std::uint64_t next = k + 1 < order.size() ? all()[order[k + 1]].offset : data_bytes_;
      if (!place.dtype) place.size = std::max(next, place.offset) - place.offset;
      if (place.size == 0) continue;
      if (place.offset < result_.end) {
        share(order[k], before);
        continue;
      }
      note_hole(order[k]);
      result_.end = aligned_end(order[k]);
      before = order[k];
    }
  }

  void share(std::size_t number, std::size_t before) {
    const TensorInfo& tensor = header_.tensors[number];
    const std::string what = "shares bytes with tensor " + quote(header_.tensors[before].name);
    if (!options_.lenient)
      fail(tensor, Errc::malformed, what,
           mention(Remedy::lenient) + " reads each tensor from where the header says that it begins");
    if (shared_bytes_ == 0) result_.oddities.push_back("tensor " + quote(tensor.name) + " " + what);
    // A header of a megabyte could list ten thousand tensors that each take all of the data.
    shared_bytes_ = fits(checked_add(shared_bytes_, all()[number].size), "what tensors share");
    if (expands_too_much(options_.limits, shared_bytes_, data_bytes_))
      fail(tensor, Errc::limit, what + ", and so much is shared that it would grow beyond the limits",
           raise_limit("max_expansion_bytes"));
    result_.end = std::max(result_.end, aligned_end(number));
  }

  void note_disorder(const std::vector<std::size_t>& order) {
    const auto odd = std::ranges::is_sorted_until(order);
    if (odd == order.end()) return;
    result_.oddities.push_back(
        fmt::format("tensor {} is listed elsewhere than its data lie; llama.cpp refuses such files",
                    quote(header_.tensors[*odd].name)));
  }

  void note_hole(std::size_t number) {
    const std::uint64_t hole = all()[number].offset - result_.end;
    if (hole == 0 || std::exchange(has_hole_, true)) return;
    result_.oddities.push_back(
        fmt::format("{} bytes before the data of tensor {} belong to no tensor; llama.cpp refuses such files", hole,
                    quote(header_.tensors[number].name)));
  }

  void check_inside(std::size_t number) {
    Place& place = all()[number];
    if (is_inside(place.offset, place.size, data_bytes_)) return;
    // A tensor without bytes may stand behind padding that nobody wrote.
    if (place.size == 0 && place.offset <= checked_align_up(data_bytes_, header_.alignment).value_or(0)) {
      place.offset = 0;
      return;
    }
    fail(header_.tensors[number], Errc::malformed,
         fmt::format("has {} bytes from byte {} of the data on, but there are {}", place.size, place.offset,
                     data_bytes_),
         "the file was cut short: an interrupted download or copy?");
  }

  const Header& header_;
  std::uint64_t data_bytes_;
  const ReadOptions& options_;
  Places result_;
  std::uint64_t shared_bytes_ = 0;
  bool has_hole_ = false;
};

}  // namespace

Places place_tensors(const Header& header, std::uint64_t data_bytes, const ReadOptions& options) {
  return Placer(header, data_bytes, options).place();
}

}  // namespace ballast::gguf
