#include "failure.hpp"

#include <fmt/format.h>
#include <ballast/error.hpp>
#include <ballast/load_state_dict.hpp>

#include <new>
#include <string>

#include "packing.hpp"
#include "report_packing.hpp"

namespace ballast::mpi {
namespace {

enum Kind : std::uint64_t { kError, kStateDictError };

// A hint keeps its remedies by name only in this process; as a text it is the same everywhere.
void pack_error(Packer& out, const Error& error) {
  out.number(static_cast<std::uint64_t>(error.code()));
  out.text(error.message());
  out.text(error.where());
  out.text(error.hint().text());
  out.number(error.offset() ? 1 : 0);
  out.number(error.offset().value_or(0));
  out.number(error.name() ? 1 : 0);
  out.text(error.name().value_or(""));
  out.number(static_cast<std::uint64_t>(error.system_code()));
}

Error unpack_error(Unpacker& in, unsigned rank, unsigned ranks) {
  const auto code = static_cast<Errc>(in.number());
  std::string message = in.text();
  if (ranks > 1) message += fmt::format(" (on rank {} of {})", rank, ranks);
  Error error(code, std::move(message));
  if (const std::string where = in.text(); !where.empty()) error.in(where);
  if (const std::string hint = in.text(); !hint.empty()) error.hint(hint);
  const bool has_offset = in.number() != 0;
  if (const std::uint64_t offset = in.number(); has_offset) error.at_byte(offset);
  const bool has_name = in.number() != 0;
  if (const std::string name = in.text(); has_name) error.about(name);
  if (const auto system = static_cast<int>(in.number()); system != 0) error.of_system(system);
  return error;
}

const StateDictError* state_dict_error(const std::exception_ptr& failure, std::exception_ptr& keeps_it) {
  try {
    std::rethrow_exception(failure);
  } catch (const StateDictError& error) {
    keeps_it = std::current_exception();
    return &error;
  } catch (...) {
    return nullptr;
  }
}

}  // namespace

Error as_error(const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const Error& error) {
    return error;
  } catch (const std::bad_alloc&) {
    return Error(Errc::limit, "there is not enough memory");
  } catch (const std::exception& other) {
    return Error(Errc::io, other.what()).because(failure);
  } catch (...) {
    return Error(Errc::io, "something was thrown that is no exception of C++").because(failure);
  }
}

std::vector<std::byte> pack_failure(const std::exception_ptr& failure) {
  Packer out;
  std::exception_ptr keeps_it;
  if (const StateDictError* error = state_dict_error(failure, keeps_it)) {
    out.number(kStateDictError);
    pack_report(out, error->report());
  } else {
    out.number(kError);
    pack_error(out, as_error(failure));
  }
  return out.take();
}

void throw_failure(std::span<const std::byte> packed, unsigned rank, unsigned ranks, const std::exception_ptr& cause) {
  Unpacker in(packed);
  if (in.number() == kStateDictError) throw StateDictError(unpack_report(in));
  Error error = unpack_error(in, rank, ranks);
  if (cause != nullptr) error.because(as_error(cause).cause());
  throw error;
}

}  // namespace ballast::mpi
