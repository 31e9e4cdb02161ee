// An error as a message to the other members of a team.
#pragma once

#include <exception>

#include <ballast/error.hpp>

#include "core/message.hpp"

namespace ballast {

// What other members are told about any exception: those that are no Error become one.
Error error_for_others(const std::exception_ptr& exception);

// All facts but the cause, which is an object of this process.
void add_error(Message& message, const Error& error);
Error read_error(Cursor& in);

}  // namespace ballast
