// The words that many hints share.
#pragma once

#include <string>
#include <string_view>

#include <ballast/remedy.hpp>

namespace ballast {

inline std::string mention(Remedy remedy, std::string_view argument = {}) { return Advice::mention(remedy, argument); }

inline std::string leave_it_out() { return "leave it out with " + mention(Remedy::exclude); }
inline std::string rename_it() { return "rename it with " + mention(Remedy::rename); }
inline std::string decode_it_first() { return "decode it first, with " + mention(Remedy::cast, "F32, F16 or BF16"); }

// `dtypes` reads "F16" or "F16, BF16 or F32".
inline std::string cast_it_or_leave_it_out(std::string_view dtypes) {
  return "cast it with " + mention(Remedy::cast, dtypes) + ", or " + leave_it_out();
}

// `field` is a member of Limits.
inline std::string raise_limit(std::string_view field) {
  return "raise " + mention(Remedy::limit, field) + " if you trust where the file comes from; " +
         mention(Remedy::limits) + " lists all limits";
}

}  // namespace ballast
