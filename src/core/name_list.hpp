// NameList: the first few of many names, for a sentence.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/text.hpp"

namespace ballast {

class NameList {
 public:
  void add(std::string_view name) {
    if (count_++ < kMostShown) text_ += (text_.empty() ? "" : ", ") + quote(name);
  }

  std::uint64_t count() const noexcept { return count_; }
  bool empty() const noexcept { return count_ == 0; }

  // Returns, for example: "a", "b" and 7 more
  std::string text() const {
    return count_ <= kMostShown ? text_ : text_ + " and " + std::to_string(count_ - kMostShown) + " more";
  }

 private:
  static constexpr std::uint64_t kMostShown = 5;
  std::string text_;
  std::uint64_t count_ = 0;
};

}  // namespace ballast
