#include "io/fault_guard.hpp"

#include <setjmp.h>
#include <signal.h>
#include <ucontext.h>

#include <atomic>
#include <mutex>
#include <utility>

namespace ballast::io {
namespace {

struct Guard {
  std::span<const std::byte> mapped;
  Guard* outer;
  const std::byte* fault;
  sigjmp_buf resume;
};

// This pointer is read inside the signal handler, which may not allocate, as other TLS models may on first use.
[[gnu::tls_model("initial-exec")]] constinit thread_local Guard* innermost_guard = nullptr;

[[gnu::tls_model("initial-exec")]] constinit thread_local bool is_passing_on = false;

struct sigaction previous_action;
std::atomic<bool> is_shared = false;  // whether others install handlers after ours

Guard* guard_of(const std::byte* address) {
  for (Guard* guard = innermost_guard; guard != nullptr; guard = guard->outer) {
    const auto [first, size] = std::pair(guard->mapped.data(), guard->mapped.size());
    if (address >= first && address < first + size) return guard;
  }
  return nullptr;
}

// With the default action back in place, the instruction that faulted faults again as soon as the handler returns, and
// the core dump shows that instruction. A signal that somebody sent has no such instruction, so it is sent again.
void die_of(int signal, bool was_sent) {
  struct sigaction by_default = {};
  by_default.sa_handler = SIG_DFL;
  sigaction(signal, &by_default, nullptr);
  if (was_sent) raise(signal);
}

// A handler that was installed after ours, such as Python's faulthandler, calls ours in turn when it is done: it put
// ours back, and sent the signal again.
void call_previous(int signal, siginfo_t* info, void* context) {
  if (is_passing_on) return die_of(signal, true);
  is_passing_on = true;
  if ((previous_action.sa_flags & SA_SIGINFO) != 0)
    previous_action.sa_sigaction(signal, info, context);
  else
    previous_action.sa_handler(signal);
  is_passing_on = false;
}

void pass_on(int signal, siginfo_t* info, void* context) {
  const bool was_sent = info->si_code <= 0;  // sent by kill() or sigqueue(), not caused by a fault
  if ((previous_action.sa_flags & SA_SIGINFO) != 0) return call_previous(signal, info, context);
  if (previous_action.sa_handler == SIG_DFL) return die_of(signal, was_sent);
  if (previous_action.sa_handler != SIG_IGN) return call_previous(signal, info, context);
  if (!was_sent) die_of(signal, was_sent);  // a fault cannot be ignored: it would come again for ever
}

void on_bus_error(int signal, siginfo_t* info, void* context) {
  const auto* address = static_cast<const std::byte*>(info->si_addr);
  Guard* guard = info->si_code > 0 ? guard_of(address) : nullptr;
  if (guard == nullptr) return pass_on(signal, info, context);
  guard->fault = address;
  innermost_guard = guard;  // guards inside this one are abandoned with it

  // Signals that are blocked while a handler runs must not stay blocked: a blocked SIGBUS would kill the process at the
  // next fault. The handler knows the signal mask of the moment of the fault, so sigsetjmp need not save it with a
  // system call at each guard.
  pthread_sigmask(SIG_SETMASK, &static_cast<const ucontext_t*>(context)->uc_sigmask, nullptr);
  siglongjmp(guard->resume, 1);
}

void install_handler() {
  struct sigaction action = {};
  action.sa_sigaction = on_bus_error;
  // SA_NODEFER, so that the handler can send the signal again; SA_ONSTACK for programs that run on small stacks.
  action.sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  sigaction(SIGBUS, nullptr, &previous_action);  // first, because ours may be called as soon as it is there
  sigaction(SIGBUS, &action, nullptr);
}

// Puts our handler in front of one that was installed after it.
void install_again() {
  const auto is_ours = [] {
    struct sigaction now = {};
    sigaction(SIGBUS, nullptr, &now);
    return (now.sa_flags & SA_SIGINFO) != 0 && now.sa_sigaction == on_bus_error;
  };
  if (is_ours()) return;
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  if (!is_ours()) install_handler();  // another thread may have been faster, and ours must not become its own previous
}

class Activation {
 public:
  explicit Activation(Guard& guard) : guard_(guard) { innermost_guard = &guard; }
  ~Activation() { innermost_guard = guard_.outer; }
  Activation(const Activation&) = delete;
  Activation& operator=(const Activation&) = delete;

 private:
  Guard& guard_;
};

}  // namespace

void share_bus_errors() { is_shared = true; }

std::optional<std::size_t> detail::fault_while(std::span<const std::byte> mapped, void (*look)(void*), void* context) {
  static std::once_flag once;
  std::call_once(once, install_handler);
  if (is_shared) install_again();

  Guard guard{.mapped = mapped, .outer = innermost_guard, .fault = nullptr, .resume = {}};
  const Activation activation(guard);
  if (sigsetjmp(guard.resume, 0) != 0) return static_cast<std::size_t>(guard.fault - guard.mapped.data());
  look(context);
  return std::nullopt;
}

}  // namespace ballast::io
