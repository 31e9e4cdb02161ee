// The arguments of something that a pickle would have called. Each is asked for as the type that it must have.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <ballast/shape.hpp>

#include "formats/pickle/graph.hpp"

namespace ballast::torch {

class Arguments {
 public:
  // Takes a tuple or list. `what` names the call in complaints.
  Arguments(const pickle::Graph& graph, pickle::NodeId tuple, std::string_view what);

  std::size_t size() const noexcept { return items_.size(); }
  pickle::NodeId operator[](std::size_t i) const noexcept { return items_[i]; }
  bool has(std::size_t i) const noexcept { return i < items_.size(); }

  // Throws Errc::malformed if there are fewer.
  void require(std::size_t count) const;

  std::string text(std::size_t i, std::string_view what) const;
  std::int64_t integer(std::size_t i, std::string_view what) const;
  std::uint64_t count(std::size_t i, std::string_view what) const;  // an integer that is not negative
  bool truth(std::size_t i) const noexcept;
  double real(std::size_t i, std::string_view what) const;
  std::vector<std::uint64_t> counts(std::size_t i, std::string_view what) const;  // a tuple, a list or a torch.Size

  [[noreturn]] void complain(std::size_t i, const std::string& message) const;

 private:
  const pickle::Graph& graph_;
  pickle::NodeId tuple_;
  std::string_view what_;
  std::vector<pickle::NodeId> items_;
};

}  // namespace ballast::torch
