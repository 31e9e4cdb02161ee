#include "ls_duplicates.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <ballast/duplicates.hpp>
#include <ballast/listing.hpp>
#include <ballast/summary.hpp>
#include <ballast/text.hpp>

#include "../table.hpp"
#include "../wrap.hpp"
#include "ls_documents.hpp"

namespace ballast::cli {
namespace {

// "524 kB stored 2 times: F32 [512, 256]"
std::string heading(const Terminal& screen, const Checkpoint& checkpoint, const Duplicates& same) {
  std::string text = screen.bytes_in_words(same.bytes);
  text += same.copies == 1 ? " shared" : fmt::format(" stored {} times", screen.count(same.copies));
  if (same.copies != same.tensors.size()) text += fmt::format(" by {} names", screen.count(same.tensors.size()));
  const TensorDescription description = describe_tensor(checkpoint, same.tensors.front());
  return fmt::format("{}: {} {}", text, description.dtype, to_string(description.shape));
}

// People get names that differ only in numbers as one pattern, unless they want to see all of them.
void write_group(Session& session, const Checkpoint& checkpoint, const Duplicates& same) {
  const Terminal& screen = session.screen;
  session.out.line(labelled(screen, "", heading(screen, checkpoint, same)));
  Table table(session.out, screen, {{}, {}}, "  ");
  Checkpoint some;
  for (const std::size_t i : same.tensors) {
    const auto& [name, tensor] = checkpoint.tensors[i];
    if (session.verbose)
      table.row({escape_for_terminal(name)});
    else
      some.tensors.insert(name, tensor);
  }
  for (const auto& pattern : summarize(some).patterns)
    table.row({escape_for_terminal(pattern.name),
               pattern.tensors == 1 ? "" : fmt::format("{}{}", screen.times(), pattern.tensors)});
  table.finish();
}

// A program gets a line for each tensor, with the first one of its group, and whether the bytes are stored again.
void write_rows(Session& session, const Checkpoint& checkpoint, const Duplicates& same) {
  Table table(session.out, session.screen, std::vector<Table::Column>(6));
  std::vector<std::pair<const Storage*, std::uint64_t>> places;
  for (const std::size_t i : same.tensors) {
    const auto& [name, tensor] = checkpoint.tensors[i];
    const std::pair place(tensor.storage().get(), tensor.offset());
    const bool is_shared = std::ranges::count(places, place) != 0, is_first = places.empty();
    places.push_back(place);
    const TensorDescription description = describe_tensor(checkpoint, i);
    table.row({escape_for_terminal(name), description.dtype, to_string(description.shape), std::to_string(same.bytes),
               is_first ? "" : "= " + escape_for_terminal(checkpoint.tensors[same.tensors.front()].name),
               is_first    ? ""
               : is_shared ? "shared"
                           : "stored again"});
  }
}

void say_total(const Session& session, const std::vector<Duplicates>& found, std::size_t searched) {
  if (found.empty()) return session.say(fmt::format("no duplicates among {}", plural(searched, "tensor")));
  std::uint64_t tensors = 0, wasted = 0;
  for (const Duplicates& same : found) {
    tensors += same.tensors.size();
    wasted += same.wasted_bytes();
  }
  session.say(fmt::format("{} in {} with equal bytes; {} could be saved", plural(tensors, "tensor"),
                          plural(found.size(), "group"), format_bytes(wasted)));
}

}  // namespace

int list_duplicates(Session& session, const Checkpoint& checkpoint, std::span<const std::size_t> searched) {
  auto bar = session.progress_bar();
  const std::vector<Duplicates> found = find_duplicates(
      checkpoint, searched, {.threads = session.threads, .progress = bar.callback(), .limits = session.limits});
  bar.clear();
  if (session.json) {
    std::vector<std::size_t> numbers;
    for (const Duplicates& same : found) numbers.insert(numbers.end(), same.tensors.begin(), same.tensors.end());
    write_list_json(session, {.checkpoint = checkpoint, .numbers = numbers, .duplicates = found});
    return 0;
  }
  for (const Duplicates& same : found)
    session.screen.interactive ? write_group(session, checkpoint, same) : write_rows(session, checkpoint, same);
  session.out.flush();  // before the total on stderr
  if (session.screen.interactive) say_total(session, found, searched.size());
  return 0;
}

}  // namespace ballast::cli
