"""Writing functions of the runtime as IR text: fields of Python objects, calls, branches that read like an `if`. Holds no function of the runtime itself."""
from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class Function:
    """One function's text. Values are names of IR registers; every branch opened by `when` joins the way behind it unless it ends in `give` or `go`."""

    def __init__(self, head: str):
        self.lines = [f"define {head} {{", "entry:"]
        self.count = 0
        self.ended = False

    def do(self, line: str) -> None:
        self.lines.append("  " + line)

    def value(self, line: str) -> str:
        self.count += 1
        self.do(f"%v{self.count} = {line}")
        return f"%v{self.count}"

    def call(self, name: str, *arguments: str, type: str = "ptr") -> str:
        """The result of a call; arguments are pointers unless they name a type of their own ("i64 3")."""
        return self.value(f"call {type} @{name}({', '.join(a if ' ' in a else f'ptr {a}' for a in arguments)})")

    def run(self, name: str, *arguments: str) -> None:
        self.do(f"call void @{name}({', '.join(a if ' ' in a else f'ptr {a}' for a in arguments)})")

    # ---- memory ----

    def place(self, base: str, offset: int | str) -> str:
        return self.value(f"getelementptr i8, ptr {base}, i64 {offset}")

    def load(self, base: str, offset: int = 0, type: str = "ptr") -> str:
        return self.value(f"load {type}, ptr {self.place(base, offset) if offset else base}")

    def store(self, value: str, base: str, offset: int = 0) -> None:
        self.do(f"store {value if ' ' in value else f'ptr {value}'}, ptr {self.place(base, offset) if offset else base}")

    def variable(self, type: str = "i64", start: str = "0") -> str:
        name = self.value(f"alloca {type}")
        self.do(f"store {type} {start}, ptr {name}")
        return name

    def variable_at_entry(self, type: str) -> str:
        """A variable for the body of a loop: made once, set anew by who uses it."""
        self.count += 1
        self.lines.insert(2, f"  %v{self.count} = alloca {type}")
        return f"%v{self.count}"

    # ---- the way through ----

    def equal(self, a: str, b: str, type: str = "ptr") -> str:
        return self.value(f"icmp eq {type} {a}, {b}")

    def other(self, a: str, b: str, type: str = "ptr") -> str:
        return self.value(f"icmp ne {type} {a}, {b}")

    def label(self, name: str) -> None:
        self.lines.append(f"{name}:")
        self.ended = False

    def go(self, label: str) -> None:
        self.do(f"br label %{label}")
        self.ended = True

    def give(self, value: str) -> None:
        self.do(f"ret {value if ' ' in value or value == 'void' else f'ptr {value}'}")
        self.ended = True

    def leave(self, condition: str, label: str) -> None:
        """Goes to a label where the condition holds."""
        self.count += 1
        self.do(f"br i1 {condition}, label %{label}, label %n{self.count}")
        self.label(f"n{self.count}")

    @contextmanager
    def when(self, condition: str) -> Iterator[None]:
        self.count += 1
        inside, behind = f"i{self.count}", f"b{self.count}"
        self.do(f"br i1 {condition}, label %{inside}, label %{behind}")
        self.label(inside)
        yield
        if not self.ended:
            self.go(behind)
        self.label(behind)

    @contextmanager
    def each(self, count: str) -> Iterator[str]:
        """A loop over 0 … count - 1; the body may leave it by `go`."""
        self.count += 1
        number = self.count
        counter = f"%c{number}"
        self.lines.insert(2, f"  {counter} = alloca i64")
        self.store("i64 0", counter)
        self.go(f"head{number}")
        self.label(f"head{number}")
        i = self.load(counter, type="i64")
        more = self.value(f"icmp slt i64 {i}, {count}")
        self.do(f"br i1 {more}, label %body{number}, label %end{number}")
        self.label(f"body{number}")
        yield i
        if not self.ended:
            self.go(f"next{number}")
        self.label(f"next{number}")
        after = self.value(f"add i64 {i}, 1")
        self.store(f"i64 {after}", counter)
        self.go(f"head{number}")
        self.label(f"end{number}")

    def text(self) -> str:
        return "\n".join([*self.lines, "}", ""])
