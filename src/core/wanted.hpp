// Whether the work of a thread is still wanted. Work that waits for others, such as a server, asks now and then.
#pragma once

#include <functional>

namespace ballast {

using Question = std::function<bool()>;

// What the question of this thread answers; true if it has none. The threads of a ThreadPool ask for the thread that
// waits for their work.
bool is_wanted();

const Question* current_question() noexcept;  // null if this thread has none

// While this object lives, the work of this thread is wanted as long as `question` says so. Null asks nobody. The
// question outlives the object, throws nothing, and may be asked by the threads that work for this one, too. After its
// first no it says no until the work has ended.
class WantedWhile {
 public:
  explicit WantedWhile(const Question* question) noexcept;
  ~WantedWhile();
  WantedWhile(const WantedWhile&) = delete;
  WantedWhile& operator=(const WantedWhile&) = delete;

 private:
  const Question* before_;
};

}  // namespace ballast
