// Ctrl-C: the first asks the running job to stop and clean up, the second kills the process.
#pragma once

namespace ballast::cli {

// Catches SIGINT, SIGTERM and SIGHUP, once each. Writing to a closed pipe becomes an error, so that the job can clean
// up.
void catch_signals();

// The signal that asked to stop, or 0.
int interrupted() noexcept;

// Throws Errc::cancelled after a signal.
void throw_if_interrupted();

// Ends the process as if it had not caught `signal`, so that the shell sees the signal.
[[noreturn]] void die_of(int signal);

}  // namespace ballast::cli
