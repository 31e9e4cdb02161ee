// A verb that the processes of a team do together.
#pragma once

#include "arguments.hpp"
#include "program.hpp"
#include "session.hpp"

namespace ballast::cli {

// The exit code is that of the first process, which shows what each of them did if the user asks for it.
int run_together(const Program& program, Session& session, const Command& command);

// While this object lives, a process that is not the first one of its team says nothing, and what it would print is
// forgotten.
class Silence {
 public:
  explicit Silence(Session& session);

 private:
  std::string forgotten_;
};

}  // namespace ballast::cli
