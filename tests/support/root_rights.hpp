// Root may read and write whatever permissions say, which would leave nothing to test where tests run as root.
#pragma once

#include <linux/capability.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <stdexcept>

namespace ballast::test {

// While it lives, permissions hold for this thread as for everybody, even if root runs it.
class WithoutRootRights {
 public:
  WithoutRootRights() {
    if (syscall(SYS_capget, &header_, before_) != 0) throw std::runtime_error("capget");
    __user_cap_data_struct fewer[2] = {before_[0], before_[1]};
    fewer[0].effective &= ~(1U << CAP_DAC_OVERRIDE | 1U << CAP_DAC_READ_SEARCH);
    if (syscall(SYS_capset, &header_, fewer) != 0) throw std::runtime_error("capset");
  }
  ~WithoutRootRights() { syscall(SYS_capset, &header_, before_); }
  WithoutRootRights(const WithoutRootRights&) = delete;
  WithoutRootRights& operator=(const WithoutRootRights&) = delete;

 private:
  __user_cap_header_struct header_ = {.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  __user_cap_data_struct before_[2] = {};
};

}  // namespace ballast::test
