// The words of the command for what a hint tells people to do: flags and verbs.
#pragma once

#include <string>
#include <string_view>

#include <ballast/checkpoint.hpp>
#include <ballast/remedy.hpp>

namespace ballast::cli {

struct Command;

// From now on, this thread words hints for this verb: a flag that the verb does not have is said with a verb that has
// it, "--raw of ballast convert".
void word_for(const Command& verb);

// The verb that has the flag of a remedy, "adapter extract", if the verb that this thread words hints for has no such
// flag.
std::string_view other_verb_for(Remedy remedy);

// A hint of the library, in the words of the command, or of the Host for which this thread runs a verb.
std::string worded(const Advice& advice);

// As long as one is there, hints are worded so in this thread; not at all differently if `words` is empty.
class Wording {
 public:
  explicit Wording(const Advice::Words& words);
  ~Wording();
  Wording(const Wording&) = delete;
  Wording& operator=(const Wording&) = delete;

 private:
  const Advice::Words* before_;
};

// A note with its hint; without the file that the note is about.
std::string text_of(const Note& note);

}  // namespace ballast::cli
