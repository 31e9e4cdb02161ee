"""Finds the refusals in C++ sources that clang-format has formatted, and makes every small change of one a switch.

A refusal is a statement that throws, complains or says no, with the condition that leads to it:

    if (size > limit) throw Error(...);            a condition of refusing
    if (size <= limit) return; throw Error(...);   a condition of going on
    if (size > limit) return false;                says no, in a function that such a condition asks,
    return size <= limit && is_known(type);        or that decides a verdict
    in.require_room_for(count, 8, "count");        a check behind a name

Its changes: each part of the condition "off", so that it refuses nothing; each bound of a comparison "+1" and "-1";
if two sizes must be equal, "~1": a difference of one passes; if a size must not reach a limit, "+1".
"""

import dataclasses
import functools
import re

TOKEN = re.compile(r"""
      (?P<skip> ^[ ]*\#(?:[^\n]*\\\n)*[^\n]* | //[^\n]* | /\*.*?\*/ )
    | R"(?P<mark>[^(]*)\(.*?\)(?P=mark)" | "(?:\\.|[^"\\])*" | '(?:\\.|[^'\\])*'
    | [A-Za-z_]\w* | \d[\w.']* | -> | :: | && | \|\| | [<>=!]= | \+\+ | -- | \S
    """, re.X | re.S | re.M)
PARTNERS = {"(": ")", "[": "]", "{": "}"}

REFUSERS = re.compile(r"(refuse|fail|throw_|complain|explain_|rethrow_|take_error|tell_)\w*$")
CALLS_THAT_REFUSE = re.compile(r"(^|\.)(report_?\.(add|note)|findings\.push_back)$|^find$|^std::rethrow_exception$")
CHECKS = re.compile(r"(^|\.)(require|check_limit)\w*$")
SAYS_NO = re.compile(r"return (false|std :: nullopt|nullptr|kNoNode) ;$")
JUMPS = ("return", "continue", "break")
ORDERED = {"<": "less", "<=": "at_most", ">": "greater", ">=": "at_least"}
LOOSER = {"&&", "||", "?", ":", ",", ";", "=", "==", "!=", "&", "|", "^", "return"}  # than a comparison

# In these files, a function that says no refuses, whoever asks it: they give verdicts, and check numbers from files.
DECIDERS = re.compile(r"formats/archive/|pickle/(given|globals|judge|joblib|literals|graph)|torch/storage_table|"
                      r"checkpoint/(recognize/detect|agreements/)")


@dataclasses.dataclass(frozen=True)
class Site:
    line: int
    function: str
    condition: str  # the part of the condition that is changed, on one line
    changes: tuple  # the names of the changes: "off", "+1", "-1", "~1"
    edits: tuple    # (begin, end, text), where {} is the number of the first change


class Source:
    """A file as tokens, with the partner of each bracket and the function around each brace."""

    def __init__(self, text):
        self.text = text
        found = [m for m in TOKEN.finditer(text) if not m.group("skip")]
        self.words = [m.group() for m in found] + [""]
        self.spans = [m.span() for m in found]
        self.partner, opened = {}, []
        self.names = [""] * len(found)  # the name of the function around each token
        around = [""]
        for i, word in enumerate(self.words[:-1]):
            if word in PARTNERS:
                opened.append(i)
            elif word in PARTNERS.values():
                first = opened.pop()
                self.partner[first], self.partner[i] = i, first
            if word == "{":
                around.append(self.function_at(i) or around[-1])
            self.names[i] = around[-1]
            if word == "}":
                around.pop()

    def function_at(self, brace):
        """The name of the function or the named lambda whose body begins here."""
        i = brace - 1
        while re.match(r"[A-Za-z_]\w*$|::|->|[<>*&]$", self.words[i]):
            i -= 1
        if self.words[i] == ")":
            i = self.partner[i] - 1
        if self.words[i] == "]":
            i = self.partner[i] - 1
            return self.words[i - 1] if self.words[i] == "=" else None
        name = self.words[i]
        return name if self.words[brace - 1] != name and name.isidentifier() and name not in (
            "if", "for", "while", "switch", "catch") else None

    def between(self, first, last):
        return " ".join(self.text[self.spans[first][0]:self.spans[last - 1][1]].split())

    def is_spaced(self, i):
        """Whether this is a binary operator, as clang-format writes it; the brackets of a template are not."""
        begin, end = self.spans[i]
        return self.text[begin - 1].isspace() and self.text[end].isspace()

    def skip(self, i):
        """The token behind token i, or behind the brackets that it opens."""
        return self.partner[i] + 1 if self.words[i] in PARTNERS else i + 1

    def top_level(self, first, last):
        """The tokens of a range that are not inside brackets of that range."""
        while first < last:
            yield first
            first = self.skip(first)

    def body_of_if(self, i):
        body = self.partner[i + 1] + 1
        return self.partner[body] + 1 if self.words[body] == "[" else body  # behind [[unlikely]]

    def else_of_if(self, i):
        end = self.statement_end(self.body_of_if(i))
        return end + 1 if self.words[end] == "else" else None

    def statement_end(self, i):
        word = self.words[i]
        if word == "{":
            return self.partner[i] + 1
        if word == "if" and self.words[i + 1] == "(":
            return self.statement_end(self.else_of_if(i) or self.body_of_if(i))
        if word in ("for", "while", "switch", "catch"):
            return self.statement_end(self.partner[i + 1] + 1)
        if word == "do":
            return self.partner[self.statement_end(i + 1) + 1] + 2
        if word == "try":
            i = self.statement_end(i + 1)
            while self.words[i] == "catch":
                i = self.statement_end(i)
            return i
        end = (":",) if word in ("case", "default") else (";", "}", "")
        while self.words[i] not in end:
            i = self.skip(i)
        return i + 1

    def statements(self, i):
        """Returns (first, last) of each statement in a block, or of the only statement."""
        if self.words[i] != "{":
            return [(i, self.statement_end(i))]
        found, first, last = [], i + 1, self.partner[i]
        while first < last:
            found.append((first, min(self.statement_end(first), last)))
            first = found[-1][1]
        return found


class Finder:
    def __init__(self, text, is_asked):
        self.source = Source(text)
        self.is_asked = is_asked  # whether a condition of refusing asks the function of this name
        self.sites = []
        self.asks = set()  # the functions that the conditions found here ask
        self.kept = {}     # the functions whose results are kept in a variable
        for name, value in re.findall(r"\b(\w+) = ([^;]*);", text):
            self.kept.setdefault(name, set()).update(re.findall(r"(\w+)\(", value))

    def find(self):
        for i, word in enumerate(self.source.words):
            if word == "if" and self.source.words[i + 1] == "(":
                self.look_at_if(i)
            elif word == "{":
                self.look_at_block(i)
            elif word == "return":
                self.look_at_return(i)
        return self.sites

    def callee(self, first):
        """The function that a statement calls, such as "report.add", or nothing."""
        words = self.source.words
        i = first + 1 if words[first] == "return" else first
        name = ""
        while words[i].isidentifier() and words[i + 1] in ("::", ".", "->", "("):
            name += words[i]
            if words[i + 1] == "(":
                return name
            name += "::" if words[i + 1] == "::" else "."
            i += 2
        return ""

    def refuses(self, statement):
        first, last = statement
        callee = self.callee(first)
        if self.source.words[first] == "throw" or CALLS_THAT_REFUSE.search(callee):
            return True
        if REFUSERS.match(re.split(r"\.|::", callee)[-1]):
            return True
        return SAYS_NO.match(" ".join(self.source.words[first:last])) and self.is_asked(self.source.names[first])

    def look_at_if(self, i):
        source = self.source
        if any(map(self.refuses, source.statements(source.body_of_if(i)))):
            self.change_condition(i, refusing=True)
        elif (other := source.else_of_if(i)) and any(map(self.refuses, source.statements(other))):
            self.change_condition(i, refusing=False)

    def look_at_block(self, i):
        """Finds conditions that jump away before a statement that refuses, and checks behind a name."""
        source = self.source
        guards = []
        for first, last in source.statements(i):
            if source.words[first:first + 2] == ["if", "("]:
                body = source.statements(source.body_of_if(first))
                is_guard = source.else_of_if(first) is None and source.words[body[-1][0]] in JUMPS if body else False
                guards = guards + [first] if is_guard and not any(map(self.refuses, body)) else []
            elif self.refuses((first, last)):
                for guard in guards:
                    self.change_condition(guard, refusing=False)
                guards = []
            elif source.words[first] in ("for", "while", "do", "switch", "try", "{"):
                guards = []
            elif CHECKS.search(self.callee(first)) and source.words[first] != "return":
                at = source.spans[first][0]
                self.add(first, last - 1, ("off",), ((at, at, "if (!ballast_refusals::is_off({})) "),))

    def look_at_return(self, i):
        source = self.source
        if not self.is_asked(source.names[i]):
            return
        last = source.statement_end(i) - 1
        inner = [source.words[k] for k in source.top_level(i + 1, last)]
        if "&&" in inner and not {"?", ",", "||"} & set(inner):
            self.change_parts(i + 1, last, refusing=False)

    def change_condition(self, i, refusing):
        source = self.source
        first, last = i + 2, source.partner[i + 1]
        for k in source.top_level(first, last):
            if source.words[k] == ";":
                first = k + 1
        equals = [k for k in source.top_level(first, last) if source.words[k] == "="]
        if not equals:
            return self.change_parts(first, last, refusing)
        # The condition is a declaration.
        name, end = source.words[equals[0] - 1], source.spans[last - 1][1]
        value = "false" if refusing else "true"
        edit = (end, end, f"; ballast_refusals::change({{}}, static_cast<bool>({name}), {value})")
        self.add(first, last, ("off",), (edit,))

    def change_parts(self, first, last, refusing):
        """If each of several parts refuses alone, each is switched off alone."""
        source = self.source
        top = list(source.top_level(first, last))
        words = {source.words[k] for k in top}
        word = "||" if refusing else "&&"
        cuts = [k for k in top if source.words[k] == word] if refusing or "||" not in words else []
        for begin, end in zip([first] + [k + 1 for k in cuts], cuts + [last]):
            at, to = source.spans[begin][0], source.spans[end - 1][1]
            edits = ((at, at, "ballast_refusals::change({}, static_cast<bool>("),
                     (to, to, f"), {'false' if refusing else 'true'})"))
            self.add(begin, end, ("off",), edits)
        for k in self.outside_of_lambdas(first, last):
            if source.words[k] in ORDERED and source.is_spaced(k):
                self.change_comparison(k, first, last, ORDERED[source.words[k]], ("+1", "-1"))
            elif source.words[k] == ("!=" if refusing else "=="):
                self.change_comparison(k, first, last, "differs" if refusing else "equals", ("~1",))
            elif source.words[k] == "==" and source.words[k + 1] != "0":
                self.change_comparison(k, first, last, "reaches", ("+1",))
        self.note_asked(first, last)

    def outside_of_lambdas(self, first, last):
        while first < last:
            yield first
            first = self.source.skip(first) if self.source.words[first] == "{" else first + 1

    def note_asked(self, first, last):
        """Notes the functions that are called here, or whose result is kept in a variable that is named here."""
        words = self.source.words
        for k in range(first, last):
            if words[k + 1] == "(":
                self.asks.add(words[k])
            elif words[k].isidentifier() and words[k - 1] not in (".", "->", "::"):
                self.asks |= self.kept.get(words[k], set())

    def change_comparison(self, k, first, last, name, changes):
        source = self.source

        def is_edge(i):
            needs_spaces = source.words[i] in ORDERED or source.words[i] == "&"  # which takes an address without them
            return source.words[i] in LOOSER.union(ORDERED) and (source.is_spaced(i) or not needs_spaces)

        begin = k
        while begin > first and source.words[begin - 1] not in PARTNERS and not is_edge(begin - 1):
            begin = source.partner[begin - 1] if source.words[begin - 1] in PARTNERS.values() else begin - 1
        end = k + 1
        while end < last and source.words[end] not in PARTNERS.values() and not is_edge(end):
            end = source.skip(end)
        text = source.between(begin, end)
        if name not in ORDERED.values() and re.search(r"npos|nullptr|end\(\)|errc|[&%'\"]", text):
            return  # not a comparison of sizes
        at, to = source.spans[begin][0], source.spans[end - 1][1]
        edits = ((at, at, f"ballast_refusals::{name}({{}}, "), (*source.spans[k], ","), (to, to, ")"))
        self.add(begin, end, changes, edits)

    def add(self, first, last, changes, edits):
        source = self.source
        line = source.text.count("\n", 0, source.spans[first][0]) + 1
        self.sites.append(Site(line, source.names[first], source.between(first, last), changes, edits))


def find_sites(texts):
    """Returns {path: [Site]} for {path: text}."""
    declared = {name for path, text in texts.items() if path.endswith(".hpp") for name in re.findall(r"(\w+)\(", text)}
    asked = {path: set() for path in texts}  # the functions that conditions in the same file ask
    while True:
        by_others = set().union(*asked.values()) & declared

        def is_asked(path, name):
            return name in asked[path] or name in by_others or name and DECIDERS.search(path)

        finders = {path: Finder(text, functools.partial(is_asked, path)) for path, text in texts.items()}
        found = {path: finder.find() for path, finder in finders.items()}
        asks = {path: asked[path] | finder.asks for path, finder in finders.items()}
        if asks == asked:
            return found
        asked = asks


def rewrite(text, sites, number):
    """The text with a switch at each site. `number` is that of the first switch."""
    edits = []
    for order, site in enumerate(sites):
        for begin, end, new in site.edits:
            is_closing = new.startswith((")", ";"))
            edits.append((begin, -order if is_closing else order, end, new.replace("{}", str(number))))
        number += len(site.changes)
    parts, at = [], 0
    for begin, _, end, new in sorted(edits):
        parts += [text[at:begin], new]
        at = end
    return "".join(parts) + text[at:]
