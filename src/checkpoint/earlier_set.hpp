// The shards of an earlier, larger set that a new one takes the place of. Loaders that take every file of a folder
// would read them as well.
#pragma once

#include <string>
#include <vector>

#include <ballast/limits.hpp>
#include <ballast/save.hpp>

namespace ballast {

struct EarlierSet {
  std::string index;                // which names the shards; empty where there is none
  std::vector<std::string> shards;  // that the plan does not write: paths beside the index
  std::vector<std::string> others;  // called like shards of such a set, but named by no index: they stay
};

// To be asked before anything is written: the new index takes the place of the old one. Only what the old index names,
// and what is called as the plan itself calls its shards, counts as a shard. An index that cannot be read names
// nothing.
EarlierSet find_earlier_set(const SavePlan& plan, const Limits& limits);

// When all of the new set is there. What cannot be removed is a note, and so is what was.
void remove(const EarlierSet& earlier, std::vector<Note>& notes);

}  // namespace ballast
