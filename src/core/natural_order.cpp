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

// Bytes that compare as natural_less compares the name, but for leading zeros. A number becomes a '0', which compares
// with bytes that are no digits as every digit does, then the count of its digits, then the digits.
void append_sort_key(std::string& keys, std::string_view name) {
  constexpr std::size_t kShort = 255;
  while (!name.empty()) {
    const auto digit = std::find_if(name.begin(), name.end(), is_decimal);
    const auto before = static_cast<std::size_t>(digit - name.begin());
    keys.append(name.data(), before);
    name.remove_prefix(before);
    if (name.empty()) return;
    take_zeros(name);
    const std::string_view digits = take_digits(name);
    keys += '0';
    keys += static_cast<char>(std::min(digits.size(), kShort));
    if (digits.size() >= kShort) {
      for (int shift = 56; shift >= 0; shift -= 8) keys += static_cast<char>(digits.size() >> shift);
    }
    keys += digits;
  }
}

struct SortItem {
  std::uint64_t head;  // the key's first bytes behind what all keys have in common
  std::size_t key, size;
  std::size_t number;
};

// Byte by byte, the last first: a third of what comparing takes. Items with equal heads stay as they are.
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

// Names are compared as sequences of bytes and numbers. Where all of those are equal, the first number with fewer
// leading zeros goes first, so that only equal names compare equal.
bool natural_less(std::string_view a, std::string_view b) {
  // What both begin with is equal, up to a number that may go on differently.
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
  // Many files are in this order already, and with a hundred thousand names it shows.
  if (std::is_sorted(names.begin(), names.end(), natural_less)) return order;

  std::string keys;
  std::vector<SortItem> items;
  items.reserve(names.size());
  for (std::size_t i = 0; i < names.size(); ++i) {
    const std::size_t begin = keys.size();
    append_sort_key(keys, names[i]);
    items.push_back({0, begin, keys.size() - begin, i});
  }
  keys.append(sizeof(SortItem::head), '\0');  // so that a head may be read at the end of the last key
  const auto key_of = [&](const SortItem& item) { return std::string_view(keys).substr(item.key, item.size); };

  std::size_t common = items.front().size;
  for (const SortItem& item : items) {
    common = std::min(common, common_prefix(key_of(items.front()).substr(0, common), key_of(item)));
  }
  for (SortItem& item : items) {
    item.head = big_endian_word(keys.data() + item.key + common);
    const std::size_t left = item.size - common;
    if (left < 8) item.head &= left == 0 ? 0 : ~std::uint64_t{0} << (8 * (8 - left));
  }
  const auto before = [&](const SortItem& a, const SortItem& b) {
    const int compared = key_of(a).substr(common).compare(key_of(b).substr(common));
    if (compared != 0) return compared < 0;
    if (natural_less(names[a.number], names[b.number])) return true;
    return !natural_less(names[b.number], names[a.number]) && a.number < b.number;
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
