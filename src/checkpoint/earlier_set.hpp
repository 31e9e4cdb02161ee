// The shards of an earlier, larger set that a new set replaces. Loaders that take every file of a folder would read
// these shards as well.
#pragma once

#include <string>
#include <vector>

#include <ballast/limits.hpp>
#include <ballast/save.hpp>

namespace ballast {

struct EarlierSet {
  std::string index;                // names the shards; empty if there is none
  std::vector<std::string> shards;  // those that the plan does not write: paths beside the index
  std::vector<std::string> others;  // files named like shards of such a set, but not listed in an index: they stay
};

// To be called before anything is written, because the new index replaces the old one. A file counts as a shard only if
// the old index lists it and its name is like those of the plan's own shards. An index that cannot be read lists
// nothing.
EarlierSet find_earlier_set(const SavePlan& plan, const Limits& limits);

// What remove() will do, for whoever only looks at the plan.
std::vector<Note> foretold(const EarlierSet& earlier);

// To be called when all of the new set is written. Notes say what was removed, and what could not be.
void remove(const EarlierSet& earlier, std::vector<Note>& notes);

}  // namespace ballast
