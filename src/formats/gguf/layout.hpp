// The layout of a GGUF 3 file, by the strict rules of ggml's own reader: tensors one after the other in the given
// order, each at a multiple of the alignment, zeros between and behind them.
//
// Byte for byte what gguf-py writes for the same fields and tensors.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <ballast/fields.hpp>
#include <ballast/limits.hpp>
#include <ballast/state_dict.hpp>

#include "formats/gguf/reader.hpp"

namespace ballast::gguf {

struct Layout {
  struct Item {
    std::string_view name;
    const Tensor* tensor;
    std::uint64_t offset;  // in the file
  };
  std::vector<std::byte> head;
  std::vector<Item> items;  // in the order of the file; what lies between and behind them is zeros
  std::uint64_t size_bytes = 0;
};

using Entries = std::span<const StateDict::Entry* const>;

// The entries must outlive the layout. The alignment is what the fields say. Tensors that `unknown` names go back as
// what they were. Throws Errc::unsupported, with a way out, for a tensor that GGUF cannot store, and Errc::limit for a
// header that no reader would accept.
Layout lay_out(Entries entries, const Fields& fields, const UnknownTypes& unknown = {}, const Limits& limits = {});

// A set of files, none with more than `max_bytes` of tensors (a larger tensor gets its own), as gguf-split makes it.
// `path` is what the whole would be called: "model.gguf" gives "model-00001-of-00002.gguf" and so on. What fits in one
// file is one file, called `path`.
struct Part {
  std::string path;
  Layout layout;
};
std::vector<Part> lay_out_parts(Entries entries, const Fields& fields, const std::string& path, std::uint64_t max_bytes,
                                const UnknownTypes& unknown = {}, const Limits& limits = {});

}  // namespace ballast::gguf
