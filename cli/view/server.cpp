#include "server.hpp"

#include <array>
#include <csignal>
#include <cstdlib>
#include <string>

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <unistd.h>

#include "../host.hpp"
#include "../interrupt.hpp"
#include "../output.hpp"
#include "gate.hpp"
#include "http.hpp"
#include "service.hpp"

namespace ballast::cli {
namespace {

bool has_value(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0';
}

// Over SSH a browser would open on the wrong machine, and without a screen nowhere.
bool may_have_browser() {
  return (has_value("DISPLAY") || has_value("WAYLAND_DISPLAY")) && !has_value("SSH_CONNECTION");
}

// Hands the address to the desktop. Whatever the program says is not for our terminal, and our Ctrl-C is not for a
// browser that it starts: that has a session of its own.
bool open_browser(std::string address) {
  std::string program = "xdg-open";
  std::array<char*, 3> words = {program.data(), address.data(), nullptr};
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    posix_spawn_file_actions_addopen(&actions, stream, "/dev/null", O_RDWR, 0);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t usual;
  sigemptyset(&usual);
  for (const int signal : {SIGPIPE, SIGXFSZ}) sigaddset(&usual, signal);
  posix_spawnattr_setsigdefault(&attributes, &usual);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGDEF);
  pid_t child = 0;
  const bool is_started = posix_spawnp(&child, program.c_str(), &actions, &attributes, words.data(), environ) == 0;
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  return is_started;
}

void say_address(const Session& session, const Gate& gate, std::uint16_t port, bool is_opened) {
  const std::string line = fmt::format("{} {}", is_opened ? "opened" : "open", gate.address());
  // Neither -q nor another program that keeps what is said may keep the address from who needs it.
  if (session.quiet || session.host != nullptr) write_to_stderr(line + "\n");
  session.say(line);
  if (has_value("SSH_CONNECTION")) {
    std::array<char, 256> host = {};
    const bool is_known = gethostname(host.data(), host.size() - 1) == 0;
    session.say(
        fmt::format("on your own machine, first: ssh -L {0}:127.0.0.1:{0} {1}", port, is_known ? host.data() : "HOST"));
  }
  session.say("Ctrl-C ends it");
}

// Headers of every answer: nothing is kept, guessed, framed or told to anybody.
std::vector<HttpHeader> usual_headers() {
  return {{"Cache-Control", "no-store"},
          {"Referrer-Policy", "no-referrer"},
          {"X-Content-Type-Options", "nosniff"},
          {"X-Frame-Options", "DENY"},
          {"Cross-Origin-Resource-Policy", "same-origin"},
          {"Cross-Origin-Opener-Policy", "same-origin"}};
}

}  // namespace

void serve(const Session& session, const Subject& subject, const ServeOptions& options) {
  HttpServer server(options.port);
  server.always_send(usual_headers());
  const Gate gate(server.port());
  Service service(session, subject);
  const bool is_opened = options.opens_browser && may_have_browser() && open_browser(gate.address());
  say_address(session, gate, server.port(), is_opened);
  const auto handle = [&](const HttpRequest& request, HttpReply& reply) {
    switch (gate.judge(request)) {
      case Gate::Verdict::enter:
        return reply.send(303, "text/plain", "", {{"Location", "/"}, {"Set-Cookie", gate.set_cookie()}});
      case Gate::Verdict::known: return service.answer(request, reply);
      case Gate::Verdict::foreign: return reply.send(403, "text/plain", "this server answers its own page only");
      case Gate::Verdict::unknown:
        return reply.send(403, "text/plain", "open the whole address that ballast view printed: it has the token");
    }
  };
  server.serve(handle, [&] {
    if (session.host != nullptr && session.host->keep_going) return session.host->keep_going();
    return interrupted() == 0;
  });
}

}  // namespace ballast::cli
