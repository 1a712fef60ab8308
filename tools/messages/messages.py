#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Lists every message that the program can show to a client, caller or operator.

Prints the texts of at least two words in string literals of src/, folder by folder, as FILE:LINE and the
text; values that are put into it at run time are in braces. Read the list as a whole after a change of
messages: each should say what is wrong, the value, and what to do.

Example: tools/messages/messages.py src/config src/cli
"""
import pathlib
import re
import sys

TOKEN = re.compile(
    r'(?P<comment>//[^\n]*|/\*.*?\*/)'
    r'|(?P<raw>R"(?P<mark>[^()\s]*)\((?P<body>.*?)\)(?P=mark)")'
    r'|(?P<string>"(?:\\.|[^"\\\n])*")'
    r"|(?P<char>'(?:\\.|[^'\\\n])+')"
    r'|(?P<word>[A-Za-z_][\w:.]*|\d[\w.\']*)'
    r'|(?P<punct><<|->|&&|\|\||==|!=|[^\s])',
    re.S)
LUA = re.compile(r"(?P<comment>--[^\n]*)|(?P<string>'(?:\\.|[^'\\\n])*'|\"(?:\\.|[^\"\\\n])*\")"
                 r'|(?P<word>[A-Za-z_][\w:.]*|\d[\w.]*)|(?P<punct>\.\.|[^\s])', re.S)
OPENING = {'(': ')', '{': '}', '[': ']'}
ENDS = {',', ';', '?', ':', '=', '&&', '||', 'return', '+=', '==', '!='}
JOINS = {'+', '<<', '..'}


class Text(str):
    """The content of a string literal."""


def tokens(source, pattern):
    """Yields (line, token): a Text for a literal, a str for the rest."""
    line, seen = 1, 0
    for match in pattern.finditer(source):
        line += source.count('\n', seen, match.start())
        seen = match.start()
        kind = match.lastgroup if match.lastgroup not in ('mark', 'body') else 'raw'
        if match.group('comment'):
            continue
        if kind == 'raw' or (pattern is TOKEN and match.group('raw')):
            yield line, Text(match.group('body'))
        elif kind == 'string':
            yield line, Text(match.group()[1:-1].replace('\\"', '"').replace('\\\\', '\\'))
        else:
            yield line, match.group()


def nest(stream, closing=None):
    """Groups tokens by brackets: [(line, token or list)]."""
    group = []
    for line, token in stream:
        if not isinstance(token, Text):
            if token == closing:
                return group
            if token in OPENING:
                group.append((line, nest(stream, OPENING[token])))
                continue
        group.append((line, token))
    return group


def pieces(group, separators):
    """Splits a group at the separators."""
    piece = []
    for line, token in group:
        if isinstance(token, str) and not isinstance(token, Text) and token in separators:
            yield piece
            piece = []
        else:
            piece.append((line, token))
    yield piece


def value(operand):
    """The name of a value that is put into a message."""
    words = [t for _, t in operand if isinstance(t, str) and re.match(r'[A-Za-z_]', t)]
    inner = [t for _, t in operand if isinstance(t, list)]
    if words and words[-1].split('::')[-1] in ('to_string', 'string', 'Ticked', 'Backticked') and inner:
        return value(inner[-1])
    return '{' + (words[-1].split('::')[-1].rstrip('_.') if words else '...') + '}'


def messages(group):
    """Yields (line, text) of the messages in a group and in those inside it."""
    for expression in pieces(group, ENDS):
        text, line = '', 0
        for operand in pieces(expression, JOINS):
            literal = [t for _, t in operand if isinstance(t, Text)]
            if literal and len(literal) == len(operand):
                line = line or operand[0][0]
                text += ''.join(literal)
            elif operand:
                text += value(operand)
        if line and re.search(r'[A-Za-z]{2,}[^A-Za-z{]+.*[A-Za-z]{2,}', re.sub(r'\{\w+\}', '', text)):
            yield line, text
        for _, token in expression:
            if isinstance(token, list):
                yield from messages(token)


def is_prose(text):
    """False for JSON, HTTP, SQL-like and metric texts, which have their own documents."""
    plain = re.sub(r'\{[\w.]*\}', '', text)
    return ' ' in plain.strip() and not re.match(r'\s*[{\[<"]|,?"\w+":', plain.replace('\\r\\n', ' '))


def main(roots):
    count = 0
    for root in roots:
        print(f'\n## {root}\n')
        files = sorted(p for p in pathlib.Path(root).rglob('*') if p.suffix in ('.cpp', '.hpp', '.lua'))
        for path in files:
            source = re.sub(r'^\s*#[^\n]*', '', path.read_text(), flags=re.M)
            stream = tokens(source, LUA if path.suffix == '.lua' else TOKEN)
            for line, text in messages(nest(stream)):
                if is_prose(text):
                    count += 1
                    print(f'{path}:{line}: {text.strip()}')
    print(f'\n{count} messages')


if __name__ == '__main__':
    arguments = sys.argv[1:]
    if arguments and arguments[0] in ('-h', '--help'):
        print(__doc__.strip())
    else:
        folders = sorted(str(p) for p in pathlib.Path('src').iterdir() if p.is_dir())
        main(arguments or folders)
