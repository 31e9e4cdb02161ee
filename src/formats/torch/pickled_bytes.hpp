// Bytes inside a pickle, in whichever way its protocol spells them.
#pragma once

#include <cstdint>
#include <optional>

#include <ballast/limits.hpp>
#include <ballast/storage.hpp>

#include "formats/pickle/graph.hpp"

namespace ballast::torch {

// Protocol 3 and later have bytes; Python 2 wrote a str; protocol 2 of Python 3 calls _codecs.encode(text, "latin1").
bool is_pickled_bytes(const pickle::Graph& graph, pickle::NodeId node);

// As spelled: of text it is more than the bytes that it stands for. Nothing where the node is no bytes.
std::optional<std::uint64_t> pickled_length(const pickle::Graph& graph, pickle::NodeId node);

// `size_bytes` is what they must come to; anything else is Errc::malformed. Long ones stay in the file.
StoragePtr pickled_bytes(const pickle::Graph& graph, pickle::NodeId node, std::uint64_t size_bytes);

// As a source: a section of the pickle's own where it can be, in memory (up to Limits::max_inflated_bytes) where not.
SourcePtr pickled_bytes_source(const pickle::Graph& graph, pickle::NodeId node, const Limits& limits);

}  // namespace ballast::torch
