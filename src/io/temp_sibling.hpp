// TempSibling: the file that an output is written to before it gets its name, in the same folder (a rename must not
// cross disks).
//
// The file is called .NAME.ballast-XXXXXXXX.tmp and is locked (flock) for as long as its writer lives. So the next run
// that writes to the same NAME can tell the leftovers of a run that was killed, which it removes, from the file of a
// run that is still going. On file systems that do not lock, leftovers stay. On network file systems whose locks are
// valid on one machine only, a writer on another machine may lose its temporary file, and then fails without having
// touched NAME.
//
// A file whose bytes are all written can be kept, as .NAME.ballast-KEY-MARK-STAMP.tmp: if its writer dies before it has
// given the file its name, the next writer with the same KEY takes the file over instead of sweeping it. The caller
// decides what a MARK means. The STAMP stands for the file as the system knows it (its inode, its size, when it was
// last written to) and for this run of the system: as long as the STAMP is right, nobody has written to the file, and
// no power cut can have lost bytes that were not on the disk yet.
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
  // Works in the open folder `folder`, which must outlive this object. First removes what abandoned runs left of NAME,
  // and of files of the same whole. Takes over the file that was kept with `key` (16 hexadecimal digits, or empty).
  TempSibling(int folder, std::string name, mode_t mode, std::string key = {}, WholeOf whole_of = nullptr);
  ~TempSibling();  // removes the file, unless it was published
  TempSibling(const TempSibling&) = delete;
  TempSibling& operator=(const TempSibling&) = delete;

  int fd() const noexcept { return fd_.get(); }
  const std::string& name() const noexcept { return temp_name_; }  // for now: see keep() and begin_anew()
  std::optional<std::uint64_t> kept_mark() const noexcept { return kept_mark_; }  // of a file that was taken over

  bool is_untouched() const noexcept { return is_untouched_; }  // whether the stamp of such a file is right

  void keep(std::uint64_t mark);  // only if there is a key
  bool leave_to_next_run();       // a file that is kept is not removed in the end; false if none is kept
  void begin_anew();              // other bytes will be written: a file that was taken over is not kept any more

  // Gives the file its name, and replaces the file that has it.
  void publish_over();

  // The same, but returns false if the name is taken, even if it was taken this very moment.
  bool publish_new();

 private:
  bool try_to_create(mode_t mode);
  bool try_to_take_over(const std::string& entry);

  int folder_;
  std::string name_, key_;
  std::optional<std::uint64_t> kept_mark_;
  bool is_untouched_ = false;
  bool is_kept_ = false;   // whether the file has a name that says so
  std::string temp_name_;  // empty if there is no file to remove
  UniqueFd fd_;
};

}  // namespace ballast::io
