#include "core/glob.hpp"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <utility>

namespace ballast {
namespace {

constexpr std::string_view kSpecial = "*?[]{},\\";

bool is_escape(std::string_view pattern, std::size_t i) {
  return pattern[i] == '\\' && i + 1 < pattern.size() && kSpecial.find(pattern[i + 1]) != std::string_view::npos;
}

// The position of the ] that closes the set at `open`, or npos. A ] right after the opening [ is a member of the set.
std::size_t end_of_set(std::string_view pattern, std::size_t open) {
  const std::string_view rest = pattern.substr(open);
  const std::size_t first = rest.starts_with("[!") || rest.starts_with("[^") ? 2 : 1;
  return pattern.find(']', open + first + 1);
}

std::bitset<256> read_set(std::string_view members) {
  const bool negated = members.starts_with('!') || members.starts_with('^');
  if (negated) members.remove_prefix(1);
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(members[i]); };
  std::bitset<256> set;
  for (std::size_t i = 0; i < members.size(); ++i) {
    const bool is_range = i + 2 < members.size() && members[i + 1] == '-';
    const unsigned last = byte(is_range ? i + 2 : i);
    for (unsigned c = byte(i); c <= last; ++c) set.set(c);
    if (is_range) i += 2;
  }
  return negated ? ~set : set;
}

struct NumberRange {
  std::uint64_t low, high;
};
constexpr std::size_t kMostDigits = 18, kLongestRange = 2 * kMostDigits + 2;

// "0..31", whichever end is first. Numbers of more than 18 digits are text.
std::optional<NumberRange> read_range(std::string_view text) {
  const auto number = [](std::string_view digits) -> std::optional<std::uint64_t> {
    if (digits.empty() || digits.size() > kMostDigits || (digits.size() > 1 && digits[0] == '0')) return std::nullopt;
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    return error == std::errc() && end == digits.data() + digits.size() ? std::optional(value) : std::nullopt;
  };
  const std::size_t dots = text.find("..");
  if (dots == std::string_view::npos) return std::nullopt;
  const auto first = number(text.substr(0, dots)), last = number(text.substr(dots + 2));
  if (!first || !last) return std::nullopt;
  return NumberRange{std::min(*first, *last), std::max(*first, *last)};
}

// The last numbers of the parts of a range that differ only digit by digit: 9, 29 and 31 for 0..31, which is [0-9],
// [1-2][0-9] and 3[0-1].
std::set<std::uint64_t> last_numbers(const NumberRange& range) {
  std::set<std::uint64_t> lasts = {range.high};
  for (std::uint64_t unit = 10; unit <= 1'000'000'000'000'000'000; unit *= 10) {
    const std::uint64_t nines = range.low / unit * unit + (unit - 1);
    if (nines < range.high) lasts.insert(nines);
    const std::uint64_t zeros = (range.high + 1) / unit * unit;
    if (zeros > range.low + 1 && zeros - 1 <= range.high) lasts.insert(zeros - 1);
    if (unit > range.high) break;
  }
  return lasts;
}

// Which braces and commas of a pattern are those of a choice. All others stand for themselves.
std::vector<bool> find_choices(std::string_view pattern) {
  struct Open {
    std::size_t at;
    std::vector<std::size_t> commas{};
  };
  std::vector<bool> is_choice(pattern.size());
  std::vector<Open> open;
  bool has_sets = true;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    const char c = pattern[i];
    if (is_escape(pattern, i)) {
      ++i;
    } else if (c == '[' && has_sets) {
      const std::size_t end = end_of_set(pattern, i);
      has_sets = end != std::string_view::npos;
      if (has_sets) i = end;
    } else if (c == '{') {
      open.push_back({i});
    } else if (c == ',' && !open.empty()) {
      open.back().commas.push_back(i);
    } else if (c == '}' && !open.empty()) {
      const auto [at, commas] = std::move(open.back());
      open.pop_back();
      if (commas.empty() && !read_range(pattern.substr(at + 1, i - at - 1))) continue;
      is_choice[at] = is_choice[i] = true;
      for (const std::size_t comma : commas) is_choice[comma] = true;
    }
  }
  return is_choice;
}

}  // namespace

// Turns a pattern into steps. A choice of a, b and c becomes
//   fork to B, a, jump to the end, B: fork to C, b, jump to the end, C: c
class GlobReader {
 public:
  GlobReader(std::string_view pattern, Glob& glob) : pattern_(pattern), is_choice_(find_choices(pattern)), glob_(glob) {
    glob_.steps_.reserve(pattern.size());
  }

  void read() {
    while (at_ < pattern_.size()) read_one();
  }

 private:
  using Kind = Glob::Step::Kind;
  struct Choice {
    std::uint32_t fork;
    std::vector<std::uint32_t> jumps{};
  };

  std::uint32_t here() const { return static_cast<std::uint32_t>(glob_.steps_.size()); }
  void add(Kind kind, char c = 0, std::uint32_t to = 0) {
    glob_.steps_.push_back({kind, static_cast<unsigned char>(c), to});
  }

  void read_one() {
    const char c = pattern_[at_];
    if (is_choice_[at_]) return read_choice(c);
    if (is_escape(pattern_, at_)) {
      add(Kind::byte, pattern_[at_ + 1]);
      at_ += 2;
      return;
    }
    if (c == '[' && has_sets_) {
      const std::size_t end = end_of_set(pattern_, at_);
      has_sets_ = end != std::string_view::npos;
      if (has_sets_) {
        add_set(read_set(pattern_.substr(at_ + 1, end - at_ - 1)));
        at_ = end + 1;
        return;
      }
    }
    add(c == '*' ? Kind::star : c == '?' ? Kind::any : Kind::byte, c);
    ++at_;
  }

  void read_choice(char c) {
    ++at_;
    if (c == '{') begin_choice();
    if (c == ',') next_choice();
    if (c == '}') return end_choice();
    const std::string_view text = pattern_.substr(at_, kLongestRange + 1);
    const std::size_t size = text.find_first_of(",}");
    const auto range = read_range(text.substr(0, size));
    if (!range || size == std::string_view::npos || !is_choice_[at_ + size]) return;
    add_range(*range);
    at_ += size;
  }

  void begin_choice() {
    glob_.has_choices_ = true;
    choices_.push_back({here()});
    add(Kind::fork);
  }
  void next_choice() {
    Choice& choice = choices_.back();
    choice.jumps.push_back(here());
    add(Kind::jump);
    glob_.steps_[choice.fork].to = here();
    choice.fork = here();
    add(Kind::fork);
  }
  void end_choice() {
    const Choice choice = std::move(choices_.back());
    choices_.pop_back();
    glob_.steps_[choice.fork] = {Kind::jump, 0, choice.fork + 1};
    for (const std::uint32_t jump : choice.jumps) glob_.steps_[jump].to = here();
  }

  void add_set(const std::bitset<256>& set) {
    add(Kind::set, 0, static_cast<std::uint32_t>(glob_.sets_.size()));
    glob_.sets_.push_back(set);
  }

  void add_range(const NumberRange& range) {
    begin_choice();
    std::uint64_t first = range.low;
    for (const std::uint64_t last : last_numbers(range)) {
      if (first != range.low) next_choice();
      const std::string low = std::to_string(first), high = std::to_string(last);
      for (std::size_t i = 0; i < low.size(); ++i) {
        if (low[i] == high[i])
          add(Kind::byte, low[i]);
        else
          add_set(read_set(std::string{low[i], '-', high[i]}));
      }
      first = last + 1;
    }
    end_choice();
  }

  std::string_view pattern_;
  std::vector<bool> is_choice_;
  Glob& glob_;
  std::size_t at_ = 0;
  bool has_sets_ = true;  // whether a ] may still follow
  std::vector<Choice> choices_;
};

Glob::Glob(std::string_view pattern) { GlobReader(pattern, *this).read(); }

bool Glob::matches(std::string_view name) const {
  return has_choices_ ? matches_with_choices(name) : matches_straight(name);
}

bool Glob::takes(const Step& step, char c) const noexcept {
  const auto byte = static_cast<unsigned char>(c);
  return step.kind == Step::Kind::byte ? step.byte == byte : step.kind == Step::Kind::any || sets_[step.to][byte];
}

// On a mismatch only the last * takes one byte more: the last * can take whatever an earlier * could take.
bool Glob::matches_straight(std::string_view name) const noexcept {
  std::size_t step = 0, at = 0, after_star = 0, star_at = 0;
  while (at < name.size()) {
    if (step < steps_.size() && steps_[step].kind == Step::Kind::star) {
      after_star = ++step;
      star_at = at;
    } else if (step < steps_.size() && takes(steps_[step], name[at])) {
      ++step;
      ++at;
    } else if (after_star > 0) {
      step = after_star;
      at = ++star_at;
    } else {
      return false;
    }
  }
  while (step < steps_.size() && steps_[step].kind == Step::Kind::star) ++step;
  return step == steps_.size();
}

// Goes through the name once, with all steps that could come next.
bool Glob::matches_with_choices(std::string_view name) const {
  std::vector<std::uint32_t> now, next, waiting;
  std::vector<std::size_t> seen_at(steps_.size() + 1);  // the number of bytes, and 1, before which a step was added
  const auto add = [&](std::uint32_t first, std::size_t at, std::vector<std::uint32_t>& steps) {
    waiting.assign(1, first);
    while (!waiting.empty()) {
      const std::uint32_t number = waiting.back();
      waiting.pop_back();
      if (std::exchange(seen_at[number], at + 1) == at + 1 || number == steps_.size()) continue;
      const Step& step = steps_[number];
      const bool is_fork = step.kind == Step::Kind::fork, is_jump = step.kind == Step::Kind::jump;
      if (is_fork || is_jump) waiting.push_back(step.to);
      if (is_fork || step.kind == Step::Kind::star) waiting.push_back(number + 1);
      if (!is_fork && !is_jump) steps.push_back(number);
    }
  };
  add(0, 0, now);
  for (std::size_t at = 0; at < name.size(); ++at) {
    next.clear();
    for (const std::uint32_t number : now) {
      const bool is_star = steps_[number].kind == Step::Kind::star;
      if (is_star || takes(steps_[number], name[at])) add(is_star ? number : number + 1, at + 1, next);
    }
    if (next.empty() && seen_at.back() != at + 2) return false;
    now.swap(next);
  }
  return seen_at.back() == name.size() + 1;
}

bool glob_match(std::string_view pattern, std::string_view text) { return Glob(pattern).matches(text); }

bool matches_any(const std::vector<Glob>& globs, std::string_view name) {
  return std::ranges::any_of(globs, [name](const Glob& glob) { return glob.matches(name); });
}

bool has_wildcards(std::string_view pattern) { return pattern.find_first_of("*?[{\\") != std::string_view::npos; }

}  // namespace ballast
