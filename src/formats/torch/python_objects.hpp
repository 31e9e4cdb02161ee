// Objects that stand for a value, as Python shows them: what a pickle says of them is how they would be made again.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "formats/pickle/graph.hpp"

namespace ballast::torch {

// A float as Python shows it: with a point, or an exponent.
std::string float_text(double value);
std::string complex_text(double real, double imaginary);

// 'text' and b'bytes' as Python quotes them, cut after about `most` bytes.
std::string quoted(std::string_view chars, bool is_bytes, std::size_t most);

// The bytes that a call stands for (_codecs.encode), where they are few.
std::optional<std::string> short_bytes(const pickle::Graph& graph, pickle::NodeId node);

// Of a global: a class of Python's own as "<class 'int'>", Ellipsis, and all else by module and name.
std::string global_text(const pickle::Graph& graph, pickle::NodeId node);

// Of an object whose arguments are no text to be shown: complex numbers, ranges, dates, paths. Nothing for others.
std::optional<std::string> value_object_text(const pickle::Graph& graph, pickle::NodeId node);

}  // namespace ballast::torch
