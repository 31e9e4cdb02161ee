// The raw arrays between the instructions of a joblib file.
//
// joblib writes a pickle that it interrupts for each array: behind the BUILD of a NumpyArrayWrapper come the bytes of
// the array, after one byte that says how many bytes of padding follow it (since joblib 1.3), or, if its elements are
// objects, a pickle of its own. Then the first pickle goes on.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "formats/pickle/graph.hpp"

namespace ballast::pickle {

inline constexpr std::string_view kArrayWrapperModule = "joblib.numpy_pickle", kArrayWrapper = "NumpyArrayWrapper";

bool is_array_wrapper(const Graph& graph, NodeId node) noexcept;

// An attribute that the wrapper's state gives it, or kNoNode.
NodeId wrapper_attribute(const Graph& graph, NodeId wrapper, std::string_view name);

struct RawArray {
  bool is_pickle = false;    // its elements are objects
  bool has_padding = false;  // a byte that counts the padding comes first
  std::uint64_t bytes = 0;
};

// What follows the wrapper, which must have its state; nothing if the state does not say how many bytes that is.
std::optional<RawArray> raw_array_behind(const Graph& graph, NodeId wrapper);

}  // namespace ballast::pickle
