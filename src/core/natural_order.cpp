#include <ballast/text.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <numeric>
#include <span>
#include <vector>

namespace ballast {
namespace {

bool is_decimal(char c) { return c >= '0' && c <= '9'; }

std::size_t take_zeros(std::string_view& text) {
  const std::size_t zeros = std::min(text.find_first_not_of('0'), text.size());
  text.remove_prefix(zeros);
  return zeros;
}

std::string_view take_digits(std::string_view& text) {
  const auto end = std::find_if_not(text.begin(), text.end(), is_decimal);
  const std::string_view digits = text.substr(0, static_cast<std::size_t>(end - text.begin()));
  text.remove_prefix(digits.size());
  return digits;
}

std::uint64_t big_endian_word(const char* at) {
  std::uint64_t word;
  std::memcpy(&word, at, sizeof word);
  return std::endian::native == std::endian::little ? __builtin_bswap64(word) : word;
}

// How many bytes two texts have in common at their beginning.
std::size_t common_prefix(std::string_view a, std::string_view b) {
  const std::size_t size = std::min(a.size(), b.size());
  std::size_t i = 0;
  for (; i + 8 <= size; i += 8) {
    const std::uint64_t differs = big_endian_word(a.data() + i) ^ big_endian_word(b.data() + i);
    if (differs != 0) return i + static_cast<std::size_t>(std::countl_zero(differs)) / 8;
  }
  while (i < size && a[i] == b[i]) ++i;
  return i;
}

// The first eight bytes of a key that compares as natural_less compares the name, but for leading zeros. In a key, a
// number is a '0', which compares with bytes that are not digits as every digit does, then the count of its digits,
// then the digits.
std::uint64_t key_head(std::string_view name) {
  std::uint64_t head = 0;
  int room = 64;
  const auto put = [&](std::size_t byte) {
    if (room > 0) head |= std::uint64_t{byte & 0xFF} << (room -= 8);
  };
  while (!name.empty() && room > 0) {
    if (!is_decimal(name.front())) {
      put(static_cast<unsigned char>(name.front()));
      name.remove_prefix(1);
      continue;
    }
    take_zeros(name);
    const std::string_view digits = take_digits(name);
    constexpr std::size_t kLong = 255;
    put('0');
    put(std::min(digits.size(), kLong));
    if (digits.size() >= kLong) {
      for (int shift = 56; shift >= 0; shift -= 8) put(digits.size() >> shift);
    }
    for (const char digit : digits.substr(0, sizeof head)) put(static_cast<unsigned char>(digit));
  }
  return head;
}

struct SortItem {
  std::uint64_t head;  // the key_head of the name without the beginning that all names of its group share
  std::size_t number;
};

// Sorts byte by byte, the last byte first, in a third of the time that comparing takes. Items with equal heads keep
// their order.
void radix_sort_by_head(std::span<SortItem> items, std::vector<SortItem>& other) {
  other.resize(items.size());
  std::span<SortItem> from = items, to = other;
  for (int shift = 0; shift < 64; shift += 8) {
    const auto byte = [shift](const SortItem& item) { return item.head >> shift & 0xFF; };
    std::array<std::size_t, 256> places{};
    for (const SortItem& item : from) ++places[byte(item)];
    if (places[byte(from.front())] == items.size()) continue;
    std::exclusive_scan(places.begin(), places.end(), places.begin(), std::size_t{0});
    for (const SortItem& item : from) to[places[byte(item)]++] = item;
    std::swap(from, to);
  }
  if (from.data() != items.data()) std::ranges::copy(from, items.begin());
}

int compare(std::size_t a, std::size_t b) { return a < b ? -1 : a > b ? 1 : 0; }

// Names are compared as sequences of bytes and numbers. If all bytes and numbers are equal, the first number with fewer
// leading zeros goes first, so that only equal names compare equal. Negative if `a` goes first.
int natural_compare(std::string_view a, std::string_view b) {
  // Both names begin with the same bytes, up to a number that may go on differently.
  std::size_t equal = common_prefix(a, b);
  if (equal == a.size() && equal == b.size()) return 0;
  while (equal > 0 && is_decimal(a[equal - 1])) --equal;
  a.remove_prefix(equal);
  b.remove_prefix(equal);

  int by_zeros = 0;
  while (!a.empty() && !b.empty()) {
    if (!is_decimal(a.front()) || !is_decimal(b.front())) {
      if (a.front() != b.front()) return static_cast<unsigned char>(a.front()) - static_cast<unsigned char>(b.front());
      a.remove_prefix(1);
      b.remove_prefix(1);
      continue;
    }
    const std::size_t zeros_a = take_zeros(a), zeros_b = take_zeros(b);
    const std::string_view number_a = take_digits(a), number_b = take_digits(b);
    if (number_a.size() != number_b.size()) return compare(number_a.size(), number_b.size());
    if (const int by_digits = number_a.compare(number_b)) return by_digits;
    if (by_zeros == 0) by_zeros = compare(zeros_a, zeros_b);
  }
  if (a.empty() != b.empty()) return a.empty() ? -1 : 1;
  return by_zeros;
}

// Sorts names by the first bytes in which they differ, then the names that have these in common by the next ones, and
// so on: of most names of a model, the first bytes are those of many others.
class HeadSort {
 public:
  explicit HeadSort(std::span<const std::string_view> names) : names_(names) {}

  void run(std::span<SortItem> items) {
    groups_.push_back({items, 0, 0});
    while (!groups_.empty()) {
      const Group group = groups_.back();
      groups_.pop_back();
      sort(group);
    }
  }

 private:
  struct Group {
    std::span<SortItem> items;
    std::size_t common;  // bytes that all names begin with
    int level;
  };

  void sort(const Group& group) {
    // A few names are sorted before their heads would be, and so many levels help no honest names any more.
    constexpr std::size_t kFew = 24;
    constexpr int kMostLevels = 4;
    const std::span<SortItem> items = group.items;
    if (items.size() <= kFew || group.level == kMostLevels) return sort_by_names(items);
    const std::size_t common = common_prefix_of(group);
    for (SortItem& item : items) item.head = key_head(names_[item.number].substr(common));
    sort_by_heads(items);
    for (std::size_t first = 0; first < items.size();) {
      const std::size_t last = end_of_head(items, first);
      const Group equal = {items.subspan(first, last - first), common, group.level + 1};
      if (equal.items.size() > kFew)
        groups_.push_back(equal);
      else if (equal.items.size() > 1)
        sort_by_names(equal.items);
      first = last;
    }
  }

  // All of them, without a number at the end that may go on differently.
  std::size_t common_prefix_of(const Group& group) const {
    std::string_view common = names_[group.items.front().number].substr(group.common);
    for (const SortItem& item : group.items)
      common = common.substr(0, common_prefix(common, names_[item.number].substr(group.common)));
    while (!common.empty() && is_decimal(common.back())) common.remove_suffix(1);
    return group.common + common.size();
  }

  void sort_by_names(std::span<SortItem> items) const {
    std::ranges::sort(items, [&](const SortItem& a, const SortItem& b) {
      const int order = natural_compare(names_[a.number], names_[b.number]);
      return order != 0 ? order < 0 : a.number < b.number;
    });
  }

  void sort_by_heads(std::span<SortItem> items) {
    constexpr std::size_t kMany = 2048;
    if (items.size() >= kMany) return radix_sort_by_head(items, other_);
    std::ranges::sort(items, [](const SortItem& a, const SortItem& b) {
      return a.head != b.head ? a.head < b.head : a.number < b.number;
    });
  }

  static std::size_t end_of_head(std::span<const SortItem> items, std::size_t first) {
    std::size_t last = first + 1;
    while (last < items.size() && items[last].head == items[first].head) ++last;
    return last;
  }

  std::span<const std::string_view> names_;
  std::vector<Group> groups_;  // that are not sorted yet
  std::vector<SortItem> other_;
};

}  // namespace

bool natural_less(std::string_view a, std::string_view b) { return natural_compare(a, b) < 0; }

std::vector<std::size_t> natural_order(std::span<const std::string_view> names) {
  std::vector<std::size_t> order(names.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  // Many files are in this order already; with a hundred thousand names, checking first saves time that can be
  // measured.
  if (std::is_sorted(names.begin(), names.end(), natural_less)) return order;

  std::vector<SortItem> items(names.size());
  for (std::size_t i = 0; i < names.size(); ++i) items[i].number = i;
  HeadSort(names).run(items);
  std::ranges::transform(items, order.begin(), &SortItem::number);
  return order;
}

}  // namespace ballast
