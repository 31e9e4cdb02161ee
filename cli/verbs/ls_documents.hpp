// What ls writes: rows of tensors, as a table or as JSON.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include <ballast/checkpoint.hpp>
#include <ballast/duplicates.hpp>
#include <ballast/tree.hpp>

#include "../session.hpp"

namespace ballast::cli {

struct Listing {
  const Checkpoint& checkpoint;
  std::span<const std::size_t> numbers;  // of the tensors, in the order of the list
  bool has_numel = false;
  std::optional<TreeOptions> tree{};
  std::optional<std::vector<Duplicates>> duplicates{};
};

void write_list_json(Session& session, const Listing& listing);
void write_list_text(Session& session, const Listing& listing);

}  // namespace ballast::cli
