#include "inspect/prefix_tree.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include <ballast/text.hpp>

#include "core/name_hash.hpp"

namespace ballast {
namespace {

bool ends_part(std::string_view name, std::size_t at) { return at == name.size() || is_separator(name[at]); }

// The different parts that names go on with. Neighbours mostly have the same part or a later one, and most nodes have
// few children; a table of hashes is made only for many parts in another order.
class Parts {
 public:
  std::size_t place_of(std::string_view part) {
    if (!parts_.empty() && part == parts_[last_]) return last_;
    if (parts_.empty() || (is_ascending_ && natural_less(parts_.back(), part))) return last_ = append(part);
    is_gathered_ = false;
    return last_ = find(part);
  }
  const std::vector<std::string_view>& parts() const { return parts_; }
  bool is_ascending() const { return is_ascending_; }                 // whether the parts are in natural order
  bool is_in_order() const { return is_ascending_ && is_gathered_; }  // whether the names are, too
  void clear() {
    parts_.clear();
    last_ = 0;
    is_ascending_ = is_gathered_ = true;
    table_.reset();
  }

 private:
  static constexpr std::size_t kFew = 8;

  std::size_t append(std::string_view part) {
    if (table_) table_->emplace(part, parts_.size());
    parts_.push_back(part);
    return parts_.size() - 1;
  }

  // Looks a part up that may be anywhere in the order.
  std::size_t find(std::string_view part) {
    std::size_t place = parts_.size();
    if (parts_.size() < kFew) {
      place = static_cast<std::size_t>(std::ranges::find(parts_, part) - parts_.begin());
    } else {
      if (!table_) make_table();
      const auto found = table_->find(part);
      if (found != table_->end()) place = found->second;
    }
    if (place < parts_.size()) return place;
    is_ascending_ = false;
    return append(part);
  }

  void make_table() {
    table_.emplace();
    for (std::size_t i = 0; i < parts_.size(); ++i) table_->emplace(parts_[i], i);
  }

  std::vector<std::string_view> parts_;
  std::size_t last_ = 0;
  bool is_ascending_ = true, is_gathered_ = true;
  std::optional<NameViewMap<std::size_t>> table_;
};

class TreeBuilder {
 public:
  // In natural order, names that share a prefix lie side by side, and nearly no part has to be looked up. Their bytes
  // are put into that order, too: each of them is looked at several times, and a hundred thousand names elsewhere would
  // be as many misses of the processor's cache each time.
  explicit TreeBuilder(std::span<const std::string_view> names) : names_(names) {
    std::size_t bytes = 0;
    for (const std::string_view name : names) bytes += name.size();
    bytes_.reserve(bytes);
    entries_.reserve(names.size());
    constexpr std::size_t kAhead = 8;
    const std::vector<std::size_t> order = natural_order(names);
    for (std::size_t i = 0; i < order.size(); ++i) {
      if (i + kAhead < order.size()) __builtin_prefetch(names[order[i + kAhead]].data());
      const std::size_t number = order[i], begin = bytes_.size();
      bytes_ += names[number];
      entries_.push_back({std::string_view(bytes_).substr(begin), number});
    }
  }

  std::vector<PrefixNode> build() {
    nodes_.reserve(names_.size() + names_.size() / 2 + 1);
    nodes_.emplace_back();
    if (!names_.empty()) open_.push_back({0, {0, names_.size()}, 0});
    while (!open_.empty()) {
      const Open next = open_.back();
      open_.pop_back();
      split(next);
    }
    return std::move(nodes_);
  }

 private:
  struct Entry {
    std::string_view name;  // in bytes_
    std::size_t number;     // in names_
  };
  // A run of entries_ whose names share a beginning.
  struct Run {
    std::size_t first, last;
  };
  // A node whose names go on, from the same byte.
  struct Open {
    std::size_t node;
    Run run;
    std::size_t begin;
  };

  std::string_view name(std::size_t place) const { return entries_[place].name; }

  // Puts the names of a node that have the same next part side by side, and makes a child of each part.
  void split(const Open& open) {
    parts_.clear();
    parts_of_.clear();
    const std::size_t separator = open.begin - std::min<std::size_t>(open.begin, 1);  // "a.b" is not "a/b"
    for (std::size_t i = open.run.first; i < open.run.last; ++i) {
      const std::string_view whole = name(i);
      parts_of_.push_back(parts_.place_of(whole.substr(separator, end_of_part(whole, open.begin) - separator)));
    }
    const std::vector<Run> runs = gather(open.run);
    nodes_[open.node].first_child = static_cast<std::uint32_t>(nodes_.size());
    nodes_[open.node].children = static_cast<std::uint32_t>(runs.size());
    nodes_.resize(nodes_.size() + runs.size());
    for (std::size_t i = 0; i < runs.size(); ++i) make_node(nodes_[open.node].first_child + i, runs[i], open.begin);
  }

  std::vector<Run> gather(const Run& run) {
    std::vector<std::size_t> next(parts_.parts().size());
    for (const std::size_t part : parts_of_) ++next[part];
    std::vector<Run> runs;
    runs.reserve(next.size());
    std::size_t first = run.first;
    const auto add_run = [&](std::size_t part) {
      runs.push_back({first, first + next[part]});
      next[part] = std::exchange(first, first + next[part]);
    };
    if (parts_.is_ascending()) {
      for (std::size_t part = 0; part < next.size(); ++part) add_run(part);
    } else {
      for (const std::size_t part : natural_order(parts_.parts())) add_run(part);
    }
    if (parts_.is_in_order()) return runs;
    moved_.assign(entries_.begin() + static_cast<std::ptrdiff_t>(run.first),
                  entries_.begin() + static_cast<std::ptrdiff_t>(run.last));
    for (std::size_t i = 0; i < moved_.size(); ++i) entries_[next[parts_of_[i]]++] = moved_[i];
    return runs;
  }

  void make_node(std::size_t node, Run run, std::size_t begin) {
    const std::size_t end = end_of_label(run, begin);
    nodes_[node].label = names_[entries_[run.first].number].substr(begin, end - begin);
    nodes_[node].separator = begin == 0 ? '\0' : name(run.first)[begin - 1];
    // The name that ends here, if there is one, is put first and taken out.
    for (std::size_t i = run.first; i < run.last; ++i) {
      if (name(i).size() != end) continue;
      std::swap(entries_[i], entries_[run.first]);
      nodes_[node].name = static_cast<std::uint32_t>(entries_[run.first++].number);
      break;
    }
    if (run.first < run.last) open_.push_back({node, run, end + 1});
  }

  // The last byte up to which all names of the run are the same, as whole parts.
  std::size_t end_of_label(const Run& run, std::size_t begin) const {
    const std::string_view first = name(run.first);
    std::size_t common = first.size();
    for (std::size_t i = run.first + 1; i < run.last; ++i) {
      const std::string_view other = name(i);
      const std::size_t most = std::min(common, other.size());
      const auto differs = std::mismatch(first.begin() + static_cast<std::ptrdiff_t>(begin),
                                         first.begin() + static_cast<std::ptrdiff_t>(most),
                                         other.begin() + static_cast<std::ptrdiff_t>(begin));
      common = static_cast<std::size_t>(differs.first - first.begin());
    }
    bool is_whole = true;
    for (std::size_t i = run.first; i < run.last && is_whole; ++i) is_whole = ends_part(name(i), common);
    return is_whole ? common : first.find_last_of("./", common - 1);
  }

  std::span<const std::string_view> names_;
  std::string bytes_;
  std::vector<Entry> entries_, moved_;
  std::vector<std::size_t> parts_of_;
  std::vector<PrefixNode> nodes_;
  std::vector<Open> open_;
  Parts parts_;
};

}  // namespace

std::vector<PrefixNode> prefix_tree(std::span<const std::string_view> names) { return TreeBuilder(names).build(); }

}  // namespace ballast
