#include "load/file_order.hpp"

#include <ballast/provenance.hpp>

#include <algorithm>
#include <string>
#include <tuple>

namespace ballast {

std::vector<std::size_t> in_file_order(std::span<const Tensor> tensors) {
  std::vector<std::tuple<std::string, std::uint64_t, std::uint64_t, std::size_t>> places;
  places.reserve(tensors.size());
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const Provenance origin = provenance(tensors[i]);
    const auto place = origin.from.empty() ? Storage::Location{} : origin.from.front();
    places.emplace_back(place.file, place.offset, tensors[i].offset(), i);
  }
  std::ranges::sort(places);
  std::vector<std::size_t> order;
  order.reserve(places.size());
  for (const auto& place : places) order.push_back(std::get<3>(place));
  return order;
}

}  // namespace ballast
