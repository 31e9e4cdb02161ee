#include "tensor/not_finite.hpp"

#include <cmath>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <ballast/error.hpp>
#include <ballast/provenance.hpp>

namespace ballast {
namespace {

std::string place_in(const Shape& shape, std::uint64_t index) {
  std::vector<std::uint64_t> place(shape.rank());
  for (std::size_t i = place.size(); i-- > 0; index /= shape[i]) place[i] = index % shape[i];
  return to_string(Shape(place));
}

}  // namespace

void refuse_not_finite(const Tensor& tensor, std::uint64_t index, float value, std::string_view type,
                       std::string hint) {
  Error error(Errc::unsupported,
              fmt::format("the value at {} is {}, which cannot be encoded as {}", place_in(tensor.shape(), index),
                          std::isnan(value) ? "NaN" : "infinite", type));
  const Provenance origin = provenance(tensor);
  if (!origin.from.empty()) error.in(origin.from.front().file);
  throw error.hint(std::move(hint));
}

}  // namespace ballast
