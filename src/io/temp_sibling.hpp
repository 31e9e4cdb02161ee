// TempSibling: the file that an output is written to before it gets its name, in the same folder (a rename must not
// cross disks).
//
// It is called .NAME.ballast-XXXXXXXX.tmp and locked (flock) for as long as its writer lives. So whoever writes to the
// same NAME next can tell the leftovers of a run that was killed, and removes them, from the file of a run that is
// still going. On file systems that do not lock, leftovers stay; on network file systems whose locks are each machine's
// own, a writer elsewhere may lose its temporary file, and then fails without having touched NAME.
//
// A file whose bytes are all there can be kept, as .NAME.ballast-KEY-MARK-STAMP.tmp: if its writer dies before it has a
// name, the next one with the same KEY takes it over instead of sweeping it. What to think of a MARK is the caller's
// business. The STAMP stands for the file as the system knows it (its inode, its size, when it was last written to) and
// for this run of the system: as long as it is right, nobody has written to the file, and no power cut can have lost
// what the disk did not have yet.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

#include "io/posix.hpp"
#include "io/sink.hpp"

namespace ballast::io {

class TempSibling {
 public:
  // In the open folder `folder`, which must outlive this. Sweeps first: what abandoned runs left of NAME, and of files
  // of the same whole. Takes over what was kept with `key` (16 hexadecimal digits, or empty).
  TempSibling(int folder, std::string name, mode_t mode, std::string key = {}, WholeOf whole_of = nullptr);
  ~TempSibling();  // removes the file, unless it was published
  TempSibling(const TempSibling&) = delete;
  TempSibling& operator=(const TempSibling&) = delete;

  int fd() const noexcept { return fd_.get(); }
  std::optional<std::uint64_t> kept_mark() const noexcept { return kept_mark_; }  // of a file that was taken over

  bool is_untouched() const noexcept { return is_untouched_; }  // of such a file: its stamp is right

  void keep(std::uint64_t mark);  // where there is a key
  bool leave_to_next_run();       // what is kept is not removed in the end; false where nothing is
  void begin_anew();              // other bytes will be written: what was taken over is not kept any more

  // Gives the file its name, replacing what has it.
  void publish_over();

  // The same, or false where the name is taken, even if it was taken this very moment.
  bool publish_new();

 private:
  bool try_to_create(mode_t mode);
  bool try_to_take_over(const std::string& entry);

  int folder_;
  std::string name_, key_;
  std::optional<std::uint64_t> kept_mark_;
  bool is_untouched_ = false;
  bool is_kept_ = false;   // under a name that says so
  std::string temp_name_;  // empty when there is nothing to remove
  UniqueFd fd_;
};

}  // namespace ballast::io
