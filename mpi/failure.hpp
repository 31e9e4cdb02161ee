// A failure of one rank as bytes, so that every rank can throw it.
#pragma once

#include <cstddef>
#include <exception>
#include <span>
#include <vector>

#include <ballast/error.hpp>

namespace ballast::mpi {

// Whatever was thrown, as an Error.
Error as_error(const std::exception_ptr& failure);

std::vector<std::byte> pack_failure(const std::exception_ptr& failure);

// Throws what was packed by `rank` of `ranks`: the StateDictError with its report, or an Error with every fact that it
// had. The message names the rank, unless there is only one. `cause` is what that rank caught, if this is that rank.
[[noreturn]] void throw_failure(std::span<const std::byte> packed, unsigned rank, unsigned ranks,
                                const std::exception_ptr& cause);

}  // namespace ballast::mpi
