"""Prints pickles of random objects, by Python's own pickler, and what Python's own unpickler reads from each.

    oracle.py SEED COUNT [MUTATIONS]

prints lines of the pickle in hex, a tab, and its rendering (tests/pickle/render.hpp says how), or "!" if the
unpickler refuses it. Nothing is imported or called: every global is a record, and so is every object.
"""
import io
import math
import pickle
import random
import struct
import sys
from collections import Counter, OrderedDict, defaultdict, deque


class Global:
    def __init__(self, module, name):
        self.module, self.name = module, name


class Persistent:
    def __init__(self, pid):
        self.pid = pid


class Object:
    def __init__(self, making, callee, arguments, keywords=None):
        self.making, self.callee, self.arguments, self.keywords = making, callee, arguments, keywords
        self.items, self.pairs, self.state = [], [], []

    def append(self, item):
        self.items.append(item)

    add = append

    def extend(self, items):
        self.items.extend(items)

    def __setitem__(self, key, value):
        self.pairs.append((key, value))

    def __setstate__(self, state):
        self.state = [state]


def require(condition):
    if not condition:
        raise pickle.UnpicklingError


class Unpickler(pickle._Unpickler):
    """Python's unpickler, with records in place of calls."""

    dispatch = dict(pickle._Unpickler.dispatch)

    def find_class(self, module, name):
        return Global(module, name)

    def persistent_load(self, pid):
        return Persistent(pid)

    def load_reduce(self):
        arguments = self.stack.pop()
        require(type(arguments) is tuple)
        self.stack[-1] = Object("reduce", self.stack[-1], arguments)

    def load_newobj(self):
        arguments = self.stack.pop()
        require(type(arguments) is tuple)
        self.append(Object("newobj", self.stack.pop(), arguments))

    def load_newobj_ex(self):
        keywords, arguments = self.stack.pop(), self.stack.pop()
        require(type(arguments) is tuple and type(keywords) is dict)
        self.append(Object("newobj_ex", self.stack.pop(), arguments, keywords))

    def load_inst(self):
        module = self.readline()[:-1].decode("ascii")
        name = self.readline()[:-1].decode("ascii")
        self.append(Object("inst", Global(module, name), tuple(self.pop_mark())))

    def load_obj(self):
        values = self.pop_mark()
        self.append(Object("obj", values.pop(0), tuple(values)))

    dispatch[pickle.REDUCE[0]] = load_reduce
    dispatch[pickle.NEWOBJ[0]] = load_newobj
    dispatch[pickle.NEWOBJ_EX[0]] = load_newobj_ex
    dispatch[pickle.INST[0]] = load_inst
    dispatch[pickle.OBJ[0]] = load_obj


class Renderer:
    def __init__(self):
        self.numbers = {}
        self.kept = []

    def numbered(self, value, show):
        if id(value) in self.numbers:
            return "#%d" % self.numbers[id(value)]
        self.kept.append(value)  # so that no other value gets its id
        number = self.numbers[id(value)] = len(self.numbers)
        return "#%d%s" % (number, show(value))

    def items(self, values):
        return ",".join([self(v) for v in values])

    def pairs(self, pairs):
        return ",".join(["%s:%s" % (self(k), self(v)) for k, v in pairs])

    def object(self, value):
        out = "%s(%s,%s)" % (value.making, self(value.callee), self(value.arguments))
        if value.keywords is not None:
            out += "+" + self(value.keywords)
        if value.items:
            out += "[%s]" % self.items(value.items)
        if value.pairs:
            out += "{%s}" % self.pairs(value.pairs)
        if value.state:
            out += "|" + self(value.state[0])
        return out

    def __call__(self, value):
        kind = type(value)
        if value is None or kind is bool or kind is int:
            return str(value)
        if kind is float:
            return "real(nan)" if math.isnan(value) else "real(%s)" % struct.pack(">d", value).hex()
        if kind is str:
            return "text(%s)" % value.encode("utf-8", "surrogatepass").hex()
        if kind is bytes or kind is bytearray:
            return "%s(%s)" % (kind.__name__, value.hex())
        if kind is tuple:
            return "(%s)" % self.items(value)
        if kind is list:
            return self.numbered(value, lambda v: "[%s]" % self.items(v))
        if kind is dict:
            return self.numbered(value, lambda v: "{%s}" % self.pairs(v.items()))
        if kind is set:
            return self.numbered(value, lambda v: "set(%s)" % ",".join(sorted(self(i) for i in v)))
        if kind is frozenset:
            return "frozenset(%s)" % ",".join(sorted(self(i) for i in value))
        if kind is Global:
            return "%s.%s" % (value.module, value.name)
        if kind is Persistent:
            return "<%s>" % self(value.pid)
        return self.numbered(value, self.object)


class Plain:
    pass


class Slotted:
    __slots__ = ("a", "b")


class Reduced:
    def __init__(self, *arguments):
        self.arguments = arguments

    def __reduce__(self):
        return Reduced, self.arguments, {"state": 1}, iter([1, 2]), iter([("k", "v")])


class WithKeywords:
    def __new__(cls, *arguments, **keywords):
        return object.__new__(cls)

    def __getnewargs_ex__(self):
        return (1, 2), {"three": 3}


class Remembered:
    """Pickled by a persistent id."""

    def __init__(self, pid):
        self.pid = pid


class ListOfMine(list):
    pass


class Pickler(pickle.Pickler):
    def persistent_id(self, value):
        return value.pid if type(value) is Remembered else None


class Maker:
    """Random values, with sharing and cycles."""

    def __init__(self, source, protocol):
        self.random, self.protocol, self.made = source, protocol, []

    def integer(self):
        r = self.random
        edge = 1 << r.choice((7, 8, 15, 16, 31, 32, 62, 63, 64, 65, 127, 128, 2040))
        return r.choice((0, 1, -1, edge, edge - 1, edge + 1, -edge, -edge - 1, -edge + 1, r.getrandbits(70), -r.getrandbits(300)))

    def real(self):
        r = self.random
        bits = struct.unpack(">d", r.randbytes(8))[0]
        return r.choice((0.0, -0.0, 1.5, 0.1, math.inf, -math.inf, math.nan, 5e-324, 1.7976931348623157e308, bits, r.random()))

    def text(self):
        r = self.random
        alphabet = r.choice(("abc", "a\n\r\\'\"\x00\x1a", "\u00e9\u4e2d\U0001f600", "\ud800\udfff", "\\u0041\\\\"))
        return "".join(r.choice(alphabet) for _ in range(r.choice((0, 1, 3, 10, 255, 256, 300))))

    def scalar(self):
        r = self.random
        return r.choice((lambda: None, lambda: True, lambda: False, self.integer, self.real, self.text, lambda: r.randbytes(r.choice((0, 1, 9, 255, 256)))))()

    def key(self):
        return self.random.choice((self.integer, self.text))()

    def value(self, depth):
        r = self.random
        if depth == 0 or r.random() < 0.3:
            return self.scalar()
        if self.made and r.random() < 0.2:
            return r.choice(self.made)
        return r.choice((self.list, self.list, self.dict, self.dict, self.tuple, self.sets, self.instance, self.library))(depth - 1)

    def values(self, depth):
        return [self.value(depth) for _ in range(self.random.choice((0, 1, 2, 3, 5)))]

    def keep(self, value):
        self.made.append(value)
        return value

    def list(self, depth):
        made = self.keep([])
        made.extend(self.values(depth))
        return made

    def dict(self, depth):
        made = self.keep({})
        for value in self.values(depth):
            made[self.key()] = value
        return made

    def tuple(self, depth):
        return tuple(self.values(depth))

    def sets(self, depth):
        keys = [self.key() for _ in range(self.random.randrange(4))]
        return self.random.choice((set, frozenset))(keys)

    def instance(self, depth):
        r = self.random
        made = self.keep(r.choice((Plain, Plain, ListOfMine, Plain))())
        for value in self.values(depth):
            made.__dict__[r.choice("abcdefg")] = value
        if type(made) is ListOfMine:
            made.extend(self.values(depth))
        return made

    def library(self, depth):
        r = self.random
        kind = r.randrange(10)
        if kind == 0:
            return OrderedDict((self.key(), v) for v in self.values(depth))
        if kind == 1:
            return defaultdict(list, {self.key(): v for v in self.values(depth)})
        if kind == 2:
            return deque(self.values(depth), maxlen=r.choice((None, 5)))
        if kind == 3:
            return Counter("hello")
        if kind == 4:
            return Reduced(*self.values(depth))
        if kind == 5:
            return bytearray(r.randbytes(r.randrange(300)))
        if kind == 6:
            made = Slotted() if self.protocol >= 2 else Plain()
            made.a = self.value(depth)
            return made
        if kind == 7:
            return WithKeywords() if self.protocol >= 2 else Plain()
        if kind == 8:
            return Remembered(r.choice(("7", "storage")) if self.protocol == 0 else self.value(depth))
        return r.choice((complex(1, 2), range(3), slice(1, 2), OrderedDict, len))


def dump(value, protocol):
    out = io.BytesIO()
    Pickler(out, protocol).dump(value)
    return out.getvalue()


def rendering(data):
    try:
        return Renderer()(Unpickler(io.BytesIO(data)).load())
    except RecursionError:
        return None
    except Exception:
        return "!"


def mutated(r, data):
    data = bytearray(data)
    for _ in range(r.choice((1, 1, 1, 2, 4))):
        at = r.randrange(len(data))
        what = r.randrange(4)
        if what == 0:
            data[at] = r.randrange(256)
        elif what == 1:
            del data[at : at + r.randrange(1, 5)]
        elif what == 2:
            data[at:at] = bytes([r.choice(b"(.012FIJKLMNPQRSTUVXabcd}eghijl]opqrst)uG\x80\x81\x85\x86\x87\x88\x89\x8a\x8f\x90\x91\x92\x93\x94")])
        else:
            other = r.randrange(len(data))
            data[at:at] = data[other : other + r.randrange(1, 12)]
        if not data:
            data = bytearray(b".")
    return bytes(data)


def main():
    seed, count = int(sys.argv[1]), int(sys.argv[2])
    mutations = int(sys.argv[3]) if len(sys.argv) > 3 else 0
    r = random.Random(seed)
    for number in range(count):
        protocol = number % 6
        try:
            data = dump(Maker(r, protocol).value(5), protocol)
        except RecursionError:  # an object that is among its own arguments
            continue
        for version in [data] + [mutated(r, data) for _ in range(mutations)]:
            shown = rendering(version)
            if shown is not None:
                sys.stdout.write("%s\t%s\n" % (version.hex(), shown))


main()
