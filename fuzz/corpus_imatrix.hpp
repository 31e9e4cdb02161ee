// The inputs that fuzzing importance matrices begins with.
#pragma once

#include <string>
#include <vector>

#include "builders/importance_file.hpp"

namespace ballast::fuzz {

inline std::vector<std::string> imatrices() {
  using namespace test;
  const ImportanceFile base = ImportanceFile().entry("blk.0.attn_q.weight", 6, {1, 2, 3, 4}).entry("a", 0, {0});
  return {
      "",
      "GGUF",
      ImportanceFile().text(),
      base.text(),
      ImportanceFile(base).end(6, "text.txt").text(),
      ImportanceFile(base).raw_end(ImportanceFile::number(6)).text(),
      ImportanceFile(base).entry("a", 1, {1}).text(),
      ImportanceFile(base).count(-1).text(),
      ImportanceFile(base).count(1 << 30).text(),
      ImportanceFile(base).entry("blk.0.ffn_up.weight", -1, {-1}).text(),
      importance_fields().text(),
      importance_gguf("blk.0.attn_q.weight", {1, 2, 3, 4}, {2}).text(),
      importance_gguf("blk.0.ffn_up_exps.weight", {1, 2, 3, 4, 5, 6}, {2, 0, 1}).text(),
      importance_fields().tensor("w.in_sum2", kF32, {2, 3}).text(),
      importance_fields().tensor("w.in_sum2", kF32, {2, 3}).tensor("w.counts", kF32, {1, 3}).text(),
      importance_fields().tensor("w.in_sum2", kF16, {2}).tensor("w.counts", kF32, {0}).text(),
  };
}

}  // namespace ballast::fuzz
