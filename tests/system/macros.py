# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Macros that evaluate an argument more than once, found in their definitions, and where the sources
hand such an argument something that must happen once: a call, ++, --, an assignment.

TAILQ_INSERT_HEAD(&queue, take(), field) takes twice, and what it inserts the second time is what the
second call gave."""
import re
import subprocess

# Operators and macros whose operand is not evaluated, or that give the same each time.
PURE = {"sizeof", "offsetof", "typeof", "__typeof", "__typeof__", "_Alignof", "alignof",
        "__builtin_offsetof", "__alignof__"}
WORDS = PURE | {"if", "for", "while", "switch", "return", "do", "else", "__attribute__"}
VARIABLE_MAX = 64  # arguments of a variadic macro that are looked at
TOKEN = re.compile(r"[A-Za-z_]\w*|\d[\w.]*|##|\+\+|--|[<>=!+\-*/%&|^]=|<<=?|>>=?|&&|\|\||->|\S")


def plain(text):
    """C without comments, and with nothing in its strings; the lines stay."""
    def blank(match):
        found = match[0]
        if found[0] in "\"'":
            return found[0] * 2
        return "\n" * found.count("\n") or " "
    return re.sub(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', blank, text,
                  flags=re.S)


def joined(text):
    return text.replace("\\\n", " ")


DEFINITION = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)\(([^)]*)\)(.*)$", re.M)


def definitions(text):
    """(name, parameters, tokens of the body) of each macro with parameters."""
    for name, parameters, body in DEFINITION.findall(joined(plain(text))):
        names = [p.strip() for p in parameters.split(",")]
        if names[-1] == "...":
            names[-1:] = ["__VA_ARGS__"] * VARIABLE_MAX
        yield name, names, TOKEN.findall(body)


def system_definitions(headers, compiler="cc"):
    """All macros that these headers define, as the compiler sees them."""
    source = "".join(f"#include <{header}>\n" for header in headers)
    done = subprocess.run([compiler, "-E", "-dM", "-"], input=source, check=True, text=True,
                          capture_output=True)
    return list(definitions(done.stdout))


def arguments(tokens, at):
    """The arguments of the call whose opening parenthesis is tokens[at], and where it closes."""
    found, depth = [[]], 0
    for end in range(at, len(tokens)):
        token = tokens[end]
        if token in "([{":
            depth += 1
            if depth == 1:
                continue
        elif token in ")]}":
            depth -= 1
            if depth == 0:
                return found, end
        if token == "," and depth == 1:
            found.append([])
        else:
            found[-1].append(token)
    return found, len(tokens)


def is_call(tokens, i):
    return re.match(r"[A-Za-z_]", tokens[i]) and i + 1 < len(tokens) and tokens[i + 1] == "("


def count(tokens, parameter, known, loops):
    """How often the parameter is evaluated where these tokens are; 2 stands for more than once. One that is
    called is the name of a macro, such as COLUMN of a list of columns, and no value."""
    n = i = 0
    while i < len(tokens) and n < 2:
        token = tokens[i]
        if is_call(tokens, i) and (token in PURE or token in known):
            inner, end = arguments(tokens, i + 1)
            for position, argument in enumerate(inner):
                if token not in PURE and parameter in argument:
                    n += 2 if position in known[token] else count(argument, parameter, known, loops)
            i = end + 1
            continue
        called = i + 1 < len(tokens) and tokens[i + 1] == "("
        if token == parameter and not called and "##" not in tokens[max(i - 1, 0):i + 2] and (
                i == 0 or tokens[i - 1] not in ("#", ".", "->")):
            n += 2 if loops else 1
        i += 1
    return n


def repeating(found):
    """From definitions: {name: positions of the arguments that are evaluated more than once}. Both
    branches of a condition count, and what is in a loop counts as often as it likes."""
    known = {name: set() for name, _, _ in found}
    grew = True
    while grew:
        grew = False
        for name, parameters, body in found:
            text = " ".join(body)
            loops = "for (" in text or re.search(r"while \( (?!0 \))", text) is not None
            for position, parameter in enumerate(parameters):
                if position not in known[name] and count(body, parameter, known, loops) > 1:
                    known[name].add(position)
                    grew = True
    return {name: positions for name, positions in known.items() if positions}


def happens(argument, functions):
    """Why it must not be evaluated twice, or None. Macros of `functions` are looked through."""
    for i, token in enumerate(argument):
        if token in ("++", "--", "=") or re.fullmatch(r"[+\-*/%&|^]=|<<=|>>=", token):
            return token
        if is_call(argument, i) and token not in WORDS and token not in functions:
            return token + "()"
    return None


def wrong_uses(text, repeats, pure=frozenset()):
    """(line, macro, what) for each use that does twice what should be done once."""
    text = DEFINITION.sub(lambda m: "\n" * m[0].count("\n"), re.sub(
        r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*$", lambda m: "\n" * m[0].count("\n"), plain(text),
        flags=re.M))
    found = []
    for match in re.finditer(r"\b(\w+)\s*\(", text):
        if match[1] not in repeats:
            continue
        tokens = TOKEN.findall(text[match.end() - 1:match.end() + 4000])
        for position, argument in enumerate(arguments(tokens, 0)[0]):
            what = happens(argument, pure) if position in repeats[match[1]] else None
            if what:
                found.append((text.count("\n", 0, match.start()) + 1, match[1], what))
    return found
