// TempSibling: the file that an output is written to before it gets its name, in the same folder (a rename must not
// cross disks).
//
// It is called .NAME.ballast-XXXXXXXX.tmp and locked (flock) for as long as its writer lives. So whoever writes to the
// same NAME next can tell the leftovers of a run that was killed, and removes them, from the file of a run that is
// still going. On file systems that do not lock, leftovers stay; on network file systems whose locks are each machine's
// own, a writer elsewhere may lose its temporary file, and then fails without having touched NAME.
#pragma once

#include <sys/types.h>

#include <string>

#include "io/posix.hpp"

namespace ballast::io {

class TempSibling {
 public:
  // In the open folder `folder`, which must outlive this. Sweeps first.
  TempSibling(int folder, std::string name, mode_t mode);
  ~TempSibling();  // removes the file, unless it was published
  TempSibling(const TempSibling&) = delete;
  TempSibling& operator=(const TempSibling&) = delete;

  int fd() const noexcept { return fd_.get(); }

  // Gives the file its name, replacing what has it.
  void publish_over();

  // The same, or false where the name is taken, even if it was taken this very moment.
  bool publish_new();

 private:
  bool try_to_create(mode_t mode);

  int folder_;
  std::string name_;
  std::string temp_name_;  // empty when there is nothing to remove
  UniqueFd fd_;
};

}  // namespace ballast::io
