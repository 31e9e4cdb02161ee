#include <ballast/text.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <numeric>

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

// How many bytes all names have in common at their beginning, without a number at the end that may go on differently.
std::size_t common_prefix_of_all(std::span<const std::string_view> names) {
  std::string_view common = names.front();
  for (const std::string_view name : names) common = common.substr(0, common_prefix(common, name));
  while (!common.empty() && is_decimal(common.back())) common.remove_suffix(1);
  return common.size();
}

struct SortItem {
  std::uint64_t head;  // the key_head of the name without the beginning that all names share
  std::size_t number;
};

// Sorts byte by byte, the last byte first, in a third of the time that comparing takes. Items with equal heads keep
// their order.
void sort_by_head(std::vector<SortItem>& items) {
  std::vector<SortItem> sorted(items.size());
  for (int shift = 0; shift < 64; shift += 8) {
    const auto byte = [shift](const SortItem& item) { return item.head >> shift & 0xFF; };
    std::array<std::size_t, 256> places{};
    for (const SortItem& item : items) ++places[byte(item)];
    if (places[byte(items.front())] == items.size()) continue;
    std::exclusive_scan(places.begin(), places.end(), places.begin(), std::size_t{0});
    for (const SortItem& item : items) sorted[places[byte(item)]++] = item;
    items.swap(sorted);
  }
}

}  // namespace

// Names are compared as sequences of bytes and numbers. If all bytes and numbers are equal, the first number with fewer
// leading zeros goes first, so that only equal names compare equal.
bool natural_less(std::string_view a, std::string_view b) {
  // Both names begin with the same bytes, up to a number that may go on differently.
  std::size_t equal = common_prefix(a, b);
  while (equal > 0 && is_decimal(a[equal - 1])) --equal;
  a.remove_prefix(equal);
  b.remove_prefix(equal);

  bool fewer_zeros = false, zeros_differ = false;
  while (!a.empty() && !b.empty()) {
    if (!is_decimal(a.front()) || !is_decimal(b.front())) {
      if (a.front() != b.front()) return static_cast<unsigned char>(a.front()) < static_cast<unsigned char>(b.front());
      a.remove_prefix(1);
      b.remove_prefix(1);
      continue;
    }
    const std::size_t zeros_a = take_zeros(a), zeros_b = take_zeros(b);
    const std::string_view number_a = take_digits(a), number_b = take_digits(b);
    if (number_a.size() != number_b.size()) return number_a.size() < number_b.size();
    if (number_a != number_b) return number_a < number_b;
    if (zeros_a != zeros_b && !zeros_differ) {
      zeros_differ = true;
      fewer_zeros = zeros_a < zeros_b;
    }
  }
  if (a.empty() != b.empty()) return a.empty();
  return fewer_zeros;
}

std::vector<std::size_t> natural_order(std::span<const std::string_view> names) {
  std::vector<std::size_t> order(names.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  // Many files are in this order already; with a hundred thousand names, checking first saves time that can be
  // measured.
  if (std::is_sorted(names.begin(), names.end(), natural_less)) return order;

  // A few names are sorted before their heads would be.
  constexpr std::size_t kFew = 64;
  if (names.size() <= kFew) {
    std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return natural_less(names[a], names[b]); });
    return order;
  }

  const std::size_t common = common_prefix_of_all(names);
  std::vector<SortItem> items;
  items.reserve(names.size());
  for (std::size_t i = 0; i < names.size(); ++i) items.push_back({key_head(names[i].substr(common)), i});
  const auto before = [&](const SortItem& a, const SortItem& b) {
    const std::string_view name_a = names[a.number], name_b = names[b.number];
    return name_a == name_b ? a.number < b.number : natural_less(name_a, name_b);
  };
  sort_by_head(items);
  for (auto first = items.begin(); first != items.end();) {
    const auto last = std::find_if(first, items.end(), [&](const SortItem& item) { return item.head != first->head; });
    if (last - first > 1) std::sort(first, last, before);
    first = last;
  }
  std::ranges::transform(items, order.begin(), &SortItem::number);
  return order;
}

}  // namespace ballast
