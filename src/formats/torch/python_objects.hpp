// Objects that stand for a value, as Python shows them: a pickle says how they would be made again.
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

// The bytes that a call stands for (_codecs.encode), if they are few.
std::optional<std::string> short_bytes(const pickle::Graph& graph, pickle::NodeId node);

// The text of a global: a class of Python itself as "<class 'int'>", Ellipsis, and all else by module and name.
std::string global_text(const pickle::Graph& graph, pickle::NodeId node);

// The text of an object whose arguments would not be shown as they are: complex numbers, ranges, dates, paths. Nothing
// for other objects.
std::optional<std::string> value_object_text(const pickle::Graph& graph, pickle::NodeId node);

}  // namespace ballast::torch
