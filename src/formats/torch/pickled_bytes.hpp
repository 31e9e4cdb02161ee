// Bytes inside a pickle, however its protocol spells them.
#pragma once

#include <cstdint>
#include <optional>

#include <ballast/limits.hpp>
#include <ballast/storage.hpp>

#include "formats/pickle/graph.hpp"

namespace ballast::torch {

// Protocol 3 and later have bytes; Python 2 wrote a str; protocol 2 of Python 3 calls _codecs.encode(text, "latin1").
bool is_pickled_bytes(const pickle::Graph& graph, pickle::NodeId node);

// The length as spelled: a text is longer than the bytes that it stands for. Nothing if the node does not stand for
// bytes.
std::optional<std::uint64_t> pickled_length(const pickle::Graph& graph, pickle::NodeId node);

// There must be `size_bytes` of them; any other number is Errc::malformed. Long ones stay in the file.
StoragePtr pickled_bytes(const pickle::Graph& graph, pickle::NodeId node, std::uint64_t size_bytes);

// The bytes as a source: a section of the pickle's source if possible, else in memory (up to
// Limits::max_inflated_bytes).
SourcePtr pickled_bytes_source(const pickle::Graph& graph, pickle::NodeId node, const Limits& limits);

}  // namespace ballast::torch
