"""Chat templates and what jinja2 makes of them in the environment of transformers: tests/golden/chat_templates.json.

    python -m venv venv && venv/bin/pip install jinja2==3.1.6 && venv/bin/python tests/golden/chat_templates.py

With --check, each case is also rendered by transformers itself (5.24 was used), which must give the same.
"""

import datetime
import json
import pathlib
import sys

import jinja2
from jinja2.ext import Extension, loopcontrols
from jinja2.nodes import CallBlock
from jinja2.sandbox import ImmutableSandboxedEnvironment

NOW = datetime.datetime(2024, 7, 26, 9, 5, 3)
CHAT = [
    {"role": "system", "content": "You are kind.\n"},
    {"role": "user", "content": " Hi <b> & \"you\" it's "},
    {"role": "assistant", "content": "Größe 1 < 2\n"},
    {"role": "user", "content": "And\tthen?"},
]
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "get_weather",
            "description": "Get the <current> weather & 'sky'.",
            "parameters": {
                "type": "object",
                "properties": {
                    "location": {"type": "string", "description": "City, e.g. \"Zürich\""},
                    "unit": {"type": "string", "enum": ["celsius", "fahrenheit"], "default": None},
                    "days": {"type": "array", "items": {"type": "integer"}, "minItems": 1},
                    "exact": {"type": ["boolean", "null"], "default": False},
                },
                "required": ["location"],
            },
        },
    }
]
CALLS = [
    {"role": "user", "content": "Weather?"},
    {
        "role": "assistant",
        "content": "",
        "tool_calls": [
            {"id": "abc123def", "type": "function",
             "function": {"name": "get_weather", "arguments": {"location": "Bern", "days": [1, 2], "exact": True}}}
        ],
    },
    {"role": "tool", "name": "get_weather", "tool_call_id": "abc123def", "content": "21.5"},
    {"role": "assistant", "content": "It is 21.5 degrees."},
]
DATA = {
    "n": None, "t": True, "f": False, "i": 7, "x": 2.5, "big": 1e20, "small": 1e-7, "whole": 3.0, "s": "ab cd",
    "l": [3, 1, 2], "e": [], "d": {"b": 1, "a": [1, 2.0, "x"], "items": "own"},
    "people": [{"name": "Zoe", "age": 30, "tags": ["x", "y"]}, {"name": "adam", "age": 25, "tags": []},
               {"name": "Bob", "age": 30}],
}


class Names(jinja2.utils.Namespace):
    """A namespace without names that begin with an underscore."""

    def __init__(*args, **names):
        self, args = args[0], args[1:]
        jinja2.utils.Namespace.__init__(self, *args, **names)
        for name in dict(*args, **names):
            refuse_underscore(name)

    def __setitem__(self, name, value):
        refuse_underscore(name)
        super().__setitem__(name, value)


def refuse_underscore(name):
    if str(name).startswith("_"):
        raise jinja2.exceptions.SecurityError(name)


class Generation(Extension):
    """The statement `generation`: its text is that of its body."""

    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return CallBlock(self.call_method("_text"), [], [], body).set_lineno(line)

    def _text(self, caller):
        return caller()


def environment():
    """What transformers renders chat templates in."""

    def refuse(message):
        raise jinja2.exceptions.TemplateError(message)

    def to_json(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
        return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)

    made = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[Generation, loopcontrols])
    made.filters["tojson"] = to_json
    made.globals["namespace"] = Names
    made.globals["dict"] = dict
    made.globals["raise_exception"] = refuse
    made.globals["strftime_now"] = NOW.strftime
    return made


def expressions():
    """Each in a template of its own, `{{ … }}`."""
    return """
    n ~ t ~ f ~ i ~ x ~ big ~ small ~ whole
    [n, t, i, x, big, small, whole, s, "it's", 'say "x"', '\\'"']
    d
    {'a': 1, 2: 'b', none: 1.5, (1, 2): [()], 'n': {'x': {}}}
    (1,) ~ () ~ (1, 'a')
    range(3) ~ range(1, 10, 3) ~ (range(5) | list)
    1e16 ~ ' ' ~ 1e15 ~ ' ' ~ 123456789.123 ~ ' ' ~ 0.1 ~ ' ' ~ 1e-4 ~ ' ' ~ 1e-5 ~ ' ' ~ 5e-324
    0.1 + 0.2 ~ ' ' ~ 1 / 3 ~ ' ' ~ 2 / 1
    7 // 2 ~ ' ' ~ -7 // 2 ~ ' ' ~ 7 % 3 ~ ' ' ~ -7 % 3 ~ ' ' ~ 7 % -3 ~ ' ' ~ -7.5 // 2 ~ ' ' ~ -7.5 % 2
    2 ** 10 ~ ' ' ~ 2 ** -1 ~ ' ' ~ -2 ** 2 ~ ' ' ~ 2 ** 3 ** 2
    1 + 2 ~ 3
    1 < 2 < 3 and not 3 > 4
    1 == 1.0 and 'a' < 'b' and [1, 2] < [1, 3] and true == 1
    'a' in 'abc' and 'x' not in ['a'] and 'b' in d
    5 in l or 3 in l
    'x' if f else 'y'
    'x' if f
    ('x' if f) is defined
    'a' if f else 'b' if t else 'c'
    t and 'yes' or 'no'
    n or e or 'last'
    not e
    s[0] ~ s[-1] ~ s[1:3] ~ s[::-1] ~ s[::2] ~ s[-3:]
    l[::-1] ~ l[1:] ~ l[:-1] ~ l[5:] ~ l[-1]
    l[9] is defined
    d.items ~ ''
    d['items']
    d.a[1] ~ d['b'] ~ d.get('zz', 'none there') ~ d.get('q')
    d.items() | list
    d.keys() | list
    d.values() | list
    d.items()
    d.keys()
    nothing
    nothing.more
    nothing ~ 'x'
    nothing + 'x'
    nothing == other_nothing
    nothing is defined or nothing is none
    n.attribute is defined
    'Größe'[2:4] ~ ('Größe' | length)
    'a' 'b' "c"
    '\\n\\t\\x41\\u00e9\\\\' | length
    'tab\\there' ~ '\\101' ~ '\\q'
    0x1F + 0b11 + 0o17 + 1_000
    s.upper() ~ s.title() ~ s.capitalize() ~ 'ABC'.lower() ~ 'aB'.swapcase()
    'they\\'re hello-world x2y'.title()
    'they\\'re hello-world (x) x2y' | title
    '  a b  '.strip() ~ '|' ~ '  a '.lstrip() ~ '|' ~ ' a  '.rstrip() ~ '|'
    'xxaxx'.strip('x') ~ 'abcab'.lstrip('ab') ~ 'abcab'.rstrip('ba')
    'a,b,,c'.split(',') ~ 'a b  c '.split() ~ 'a,b,c'.split(',', 1) ~ ' a b c '.split(none, 1)
    'a,b,c'.rsplit(',', 1) ~ ' a b c '.rsplit(maxsplit=1) ~ 'abc'.split('x')
    ''.split() ~ ''.split(',') ~ 'a'.split(',')
    'a\\nb\\r\\nc\\n'.splitlines() ~ 'a\\nb'.splitlines(true)
    'abcabc'.find('c') ~ 'abc'.find('z') ~ 'abcabc'.rfind('c') ~ 'abcabc'.find('a', 1) ~ 'abcabc'.index('b', 2, 6)
    'abc'.startswith('ab') ~ 'abc'.endswith(('x', 'c')) ~ 'abc'.startswith('b', 1)
    'aXbXc'.replace('X', '--') ~ 'aaa'.replace('a', 'b', 2) ~ 'ab'.replace('', '.')
    'abcab'.count('ab') ~ 'aaa'.count('aa') ~ 'abc'.count('')
    '-'.join(['a', 'b']) ~ ''.join([]) ~ ', '.join(d.keys())
    '-'.join([1, 2])
    'a=b=c'.partition('=') ~ 'a=b=c'.rpartition('=') ~ 'abc'.partition('x')
    'prefix-x'.removeprefix('prefix-') ~ 'x.py'.removesuffix('.py')
    '7'.zfill(3) ~ '-7'.zfill(4) ~ 'ab'.center(7, '*') ~ 'ab'.ljust(4) ~ '|' ~ 'ab'.rjust(4, '.')
    'abc'.center(6) ~ '|' ~ 'abcd'.center(7) ~ '|'
    'abc'.isalpha() ~ 'ab1'.isalnum() ~ '12'.isdigit() ~ ' '.isspace() ~ 'Ab'.isupper() ~ 'ab'.islower() ~ ''.isalpha()
    'a\\tb'.expandtabs(4) ~ 'ab'.isascii() ~ 'é'.isascii()
    '{} {}'.format('a', 1) ~ '{0}{1}{0}'.format('x', 'y') ~ '{name}'.format(name='n') ~ '{{}}'.format()
    '{:>5}|{:<5}|{:^5}|{:*^7}'.format('a', 'b', 'c', 'd')
    '{:.2f} {:5.1f} {:d} {:05d} {:+d} {:,} {:x} {:%} {:e} {:g}'.format(1.005, 2.25, 7, 42, 3, 1234567, 255, 0.25, 12345.678, 0.00001)
    '{!r} {!s:>4} {0[0]}'.format('a', 'b')
    '{0[0]} {1.name} {1[age]}'.format([5], people[0])
    '%s is %d years, %5.2f %% and %r' % ('Al', 42, 3.14159, 'x')
    '%(a)s-%(b)03d' % {'a': 'x', 'b': 5}
    '%-5s|%5s|%+d|%x|%e|%g' % ('a', 'b', 5, 255, 1234.5, 0.0001)
    '%s' % s ~ '%s' % [1]
    '%d' % 'a'
    '%s %s' % ('a',)
    s | upper | lower | capitalize
    '  x ' | trim ~ ('xxaxx' | trim('x')) ~ (none | trim) ~ (5 | trim)
    nothing | default('D') ~ (n | default('D')) ~ ('' | default('D', true)) ~ (e | d('x', boolean=true))
    l | first ~ (l | last) ~ (l | length) ~ (l | sum) ~ (l | max) ~ (l | min) ~ (e | first is defined)
    l | sort ~ (l | sort(reverse=true)) ~ (['b', 'A', 'c'] | sort) ~ (['b', 'A', 'c'] | sort(case_sensitive=true))
    people | sort(attribute='age') | map(attribute='name') | list
    people | sort(attribute='age,name') | map(attribute='name') | join(',')
    people | map(attribute='tags', default='none') | list
    people | map(attribute='tags.0', default='-') | join('|')
    people | selectattr('age', 'gt', 26) | map(attribute='name') | list
    people | selectattr('tags') | list | length
    people | rejectattr('tags', 'defined') | map(attribute='name') | first
    people | selectattr('name', 'in', ['Bob', 'adam']) | map(attribute='name') | map('upper') | join(' ')
    l | select('odd') | list ~ (l | reject('odd') | list) ~ ([0, 1, '', 'a'] | select | list)
    l | map('string') | join('+') ~ (['a', 'b'] | map('replace', 'a', 'c') | list)
    people | groupby('age')
    people | groupby('tags', default=[]) | length
    ['a', 'B', 'A', 'b'] | unique | list ~ ([1, 1.0, true, '1'] | unique | list)
    range(7) | batch(3) | list ~ (range(7) | batch(3, 'x') | list)
    range(7) | slice(3) | list ~ (range(7) | slice(3, 'x') | list)
    {'b': 2, 'A': 1, 'c': 0} | dictsort ~ ({'b': 2, 'A': 1} | dictsort(by='value')) ~ ({'b': 2, 'A': 1} | dictsort(true, 'key', true))
    d | items | list ~ (nothing | items | list)
    l | join(', ') ~ ([1, none, 'a', 2.0] | join('|')) ~ (people | join(',', attribute='name'))
    l | reverse | list ~ ('abc' | reverse)
    'a\\nb\\n\\nc' | indent ~ '|' ~ ('a\\nb' | indent(2, true)) ~ '|' ~ ('a\\n\\nb' | indent('>', blank=true))
    2.5 | round ~ ' ' ~ (3.5 | round) ~ ' ' ~ (2.675 | round(2)) ~ ' ' ~ (2.1 | round(0, 'ceil')) ~ ' ' ~ (42 | round) ~ ' ' ~ (-2.7 | round(1, 'floor'))
    '42' | int ~ ('4.7' | int) ~ ('x' | int) ~ ('x' | int(-1)) ~ (3.9 | int) ~ ('1f' | int(0, 16)) ~ (' 7 ' | int) ~ (none | int)
    '1.5' | float ~ ('x' | float) ~ (3 | float) ~ ('1e3' | float) ~ (none | float(2.5))
    -5 | abs ~ (-2.5 | abs)
    [1, 2] | string ~ ('x' | string | length) ~ (none | string)
    s | replace('a', 'b') ~ ('aaa' | replace('a', 'b', 2)) ~ (123 | replace(2, 'x'))
    'a b  c' | wordcount ~ ('x y' | urlencode) ~ ('ab' | center(6)) ~ '|'
    'the quick brown fox jumps' | truncate(12) ~ ('the quick brown fox jumps' | truncate(12, true)) ~ ('short' | truncate(5))
    '%s-%s' | format('a', 1) ~ ('%(a)s' | format(a=2))
    '<a href="x">' | escape ~ ('<' | safe)
    l | list is sameas l
    i is odd and 4 is even and 9 is divisibleby 3 and i is number and x is float and i is integer
    t is boolean and t is true and f is false and n is none and s is string and l is sequence and d is mapping
    s is sequence ~ (d is iterable) ~ (i is iterable) ~ (d is sequence) ~ (t is number) ~ (t is integer) ~ (nothing is sequence)
    'a' is eq 'a' and 1 is lt 2 and 2 is in [1, 2] and 'ab' is lower and 'AB' is upper and 3 is ne 4 and 1 is == 1
    i is not string and nothing is not defined and s.upper is callable and range is callable and 'tojson' is filter
    'abc' is startingwith 'a'
    s | unknown_filter
    s | tojson ~ (d | tojson) ~ (n | tojson) ~ (t | tojson) ~ (big | tojson) ~ (whole | tojson)
    '<&>\\'" é \\\\ \\n \\x01 \\u2028 😀' | tojson
    '<é😀' | tojson(ensure_ascii=true)
    d | tojson(indent=2)
    [[], {}, [[]], {'a': {}}] | tojson(indent=4)
    d | tojson(separators=(',', ':')) ~ (d | tojson(sort_keys=true)) ~ (d | tojson(indent=1, separators=(', ', '=')))
    {1: 'a', none: 'b', true: 'c', 2.5: 'd'} | tojson
    (1, [2]) | tojson ~ ('x' | tojson(true))
    nothing | tojson
    range(3) | tojson
    d.items() | tojson
    messages | tojson
    tools | tojson(indent=4)
    messages | length ~ messages[0].role ~ messages[-1]['content'] ~ messages[1:][0].role
    (messages | last).content ~ (messages | first).role
    messages | map(attribute='role') | unique | join(',')
    messages | selectattr('role', 'equalto', 'user') | list | length
    messages[0] == {'role': 'system', 'content': 'You are kind.\\n'}
    strftime_now('%d %b %Y') ~ strftime_now('|%Y-%m-%d %H:%M:%S %A %B %j %y %p %I %a %-d')
    namespace(a=1, b='x').b ~ namespace().c ~ dict(a=1, b=2) ~ dict([('x', 1)])
    dict(a=1) | length ~ dict({'a': 1}, b=2)
    raise_exception('Roles must alternate')
    l.append(4)
    d.update({'a': 1})
    s.__class__
    s.__class__.__mro__
    ().__class__.__bases__[0]
    range(100001) | list | length
    'a' + 1
    'a' * 3 ~ [1] * 2 ~ 2 * 'b' ~ 'a' * -1
    [1] + [2] ~ ((1,) + (2,))
    1 / 0
    'a' < 1
    l['x'] is defined ~ l.count(3) ~ l.index(1) ~ (1, 2).count(2)
    1 if 2 else 3 if 4 else 5
    (1 if t else 2) + 3
    l | first + 1
    (l | first) + 1
    -l[0] ~ +2 ~ -x | abs
    true ~ True ~ none ~ None ~ false
    'it''s'
    "a" ~ 1 ~ 2.0 ~ [1] ~ n
    people[0].tags[0] ~ people[1].tags | length
    people[0]['na' ~ 'me']
    s is defined and s
    [1, 2, 3,] | length ~ {'a': 1,} | length
    caller is defined ~ (loop is defined) ~ (self is defined)
    cycler is defined ~ (joiner is defined) ~ (lipsum is defined) ~ (zip is defined)
    1.0 ~ 1.50 ~ 100000000000000000000 ~ 1e400 ~ -0.0
    'ǆ ß ŉ'.title() ~ 'ß'.upper() ~ 'İ'.lower() | length
    'a b c'.split(' ')[1:] | join(' ')
    'x: ' ~ (nothing or 'fallback')
    {'a': nothing} ~ [nothing]
    d == {'a': [1, 2, 'x'], 'b': 1.0, 'items': 'own'}
    [1, [2, [3]]] | string | replace('[', '(')
    people | sum(attribute='age') ~ ([[1], [2]] | sum(start=[]))
    ['a', 1] | sort
    range(10)[2:8:2] ~ range(10)[-1] ~ (3 in range(5))
    'A' ~ 'é'.encode('utf-8')
    s | attr('upper') is defined
    people | map('attr', 'name') | list
    messages.role is defined ~ messages.items is defined ~ s.items is defined
    """.strip().split("\n    ")


def statements():
    chatml = "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\\n' + m['content'] + '<|im_end|>\\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
    return [
        # White space.
        "a {%- if t -%} b {%- endif -%} c",
        "a\n  {% if t %}\n  b\n  {% endif %}\nc\n",
        "a\n  {%+ if t %}\n  b\n  {%+ endif %}\nc\n\n",
        "a\n{{ s }}\n  {{ s }}  \n\n",
        "a\n  {# note #}\nb {# x -#}  \n c {#- y #} d\n{# end +#}\ne",
        "{% if t +%}\nb{% endif %}",
        "x  {%- set y = 1 +%}\n z",
        "{% raw %} {{ x }} {% if %} {% endraw %}|",
        "a\n  {%- raw -%}\n {{ x }}\n {%- endraw -%}\n b",
        "a {% raw %}\n b {% endraw %}\n c",
        "  {% if t %}x{% endif %}",
        "\t{% if t %}\n\t\tx\n\t{% endif %}\n",
        "a {% if t %}\n\n b {% endif %}\n\n\nc\n\n",
        "{{ s }}{# \n #}\n\n{{- s -}} \n x",
        "{{-s-}} {{+i}}",
        "a\r\n{% if t %}\r\n b\r\n{% endif %}\r\nc\r\n",
        "a\r{% for m in messages %}\r{{ m.role }}\r{% endfor %}\r",
        "{% for m in messages %}\r\n{{ m.content }}\r\n{% endfor %}",
        "{{ 'a\r\nb' | length }}",
        "\ufeff{% if t %}x{% endif %}",
        "\u00a0{% if t %}x{% endif %}\u2003{%- if t %}y{% endif %}",
        "a\n{%- for x in l %}\n{{ x }}\n{%- endfor %}\n",
        "{{ {'a': {'b': 1}} }}{{ {'a':{'b':1}}['a']['b'] }}",
        "{{ '}}' }}{{ '%}' }}{% if '%}' %}x{% endif %}{{ \"{#\" }}",
        "no tags { % } } {",
        "",
        "\n",
        "\n\n",
        # Statements.
        chatml,
        "{% set x = 1 %}{% if t %}{% set x = 2 %}{% endif %}{{ x }}{% for i in l %}{% set x = 3 %}{% endfor %}{{ x }}",
        "{% set ns = namespace(n=0, seen=[]) %}{% for i in l %}{% set ns.n = ns.n + i %}{% set ns.seen = ns.seen + [i] %}{% endfor %}{{ ns.n }}{{ ns.seen }}{{ ns.none }}",
        "{% set ns = namespace() %}{% set ns._x = 1 %}",
        "{% set d.x = 1 %}",
        "{% set a, b = 1, 2 %}{{ a }}{{ b }}{% set (c, d2) = [3, 4] %}{{ c ~ d2 }}",
        "{% set a, b = [1] %}",
        "{% set x %}  text {{ i }}\n{% endset %}[{{ x }}]{{ x | length }}",
        "{% set x | upper | trim %}  text {% endset %}[{{ x }}]",
        "{% for x in l %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }}{{ loop.depth }};{% endfor %}",
        "{% for x in l %}{{ loop.previtem }}-{{ x }}-{{ loop.nextitem }}{{ loop.cycle('a', 'b') }}{{ loop.changed(x > 1) }};{% endfor %}",
        "{% for x in l %}{{ loop.previtem is defined }}{{ loop.nextitem is undefined }}{{ loop }} {% endfor %}",
        "{% for x in e %}a{% else %}none{% endfor %}{% for x in l if x > 5 %}a{% else %}none{% endfor %}",
        "{% for x in l if x != 1 %}{{ loop.index }}/{{ loop.length }}:{{ x }} {% endfor %}",
        "{% for x in l %}{% if x == 1 %}{% continue %}{% endif %}{{ x }}{% if loop.index == 3 %}{% break %}{% endif %},{% endfor %}",
        "{% for x in l %}{% break %}{% else %}never{% endfor %}|",
        "{% break %}",
        "{% for k, v in d.items() %}{{ k }}={{ v }};{% endfor %}{% for k in d %}{{ k }}{% endfor %}",
        "{% for k, v in d | dictsort %}{{ k }}{{ v }}{% endfor %}{% for (a, b), c in [((1, 2), 3)] %}{{ a + b + c }}{% endfor %}",
        "{% for x in [[1, [2]], [3]] recursive %}{{ loop.depth }}{% if x is iterable %}({{ loop(x) }}){% else %}{{ x }}{% endif %}{% endfor %}",
        "{% for x in l %}{{ loop(l) }}{% endfor %}",
        "{% for a in l %}{% for b in l %}{{ loop.index }}{% endfor %}{{ loop.index }};{% endfor %}",
        "{% for a in l %}{% set outer = loop %}{% for b in l %}{{ outer.index }}{% endfor %}{% endfor %}",
        "{% for c in 'héy' %}{{ c }}.{% endfor %}{% for x in nothing %}a{% endfor %}|",
        "{% for x in 5 %}{% endfor %}",
        "{% for x in none %}{% endfor %}",
        "{% for x in l[::-1] %}{{ x }}{% endfor %}{% for x in range(3) %}{{ x }}{% endfor %}{% for x in 1, 2 %}{{ x }}{% endfor %}",
        "{% for x in (l if t else e) %}{{ x }}{% endfor %}{% for x in l + [9] %}{{ x }}{% endfor %}",
        "{% for x in l %}{{ x }}{% if not loop.last %}, {% endif %}{% endfor %}",
        "{% set xs = l | select('odd') %}{% for x in xs %}{{ x }}{% endfor %}|{% for x in xs %}{{ x }}{% endfor %}|{{ xs | list }}",
        "{% set xs = l | map('string') %}{{ xs | first }}{{ xs | join('-') }}{% if xs %}true{% endif %}",
        "{{ l | map('string') | length }}",
        "{% if n %}a{% elif f %}b{% elif i > 5 and s == 'ab cd' %}c{% else %}d{% endif %}",
        "{% if nothing %}a{% elif not nothing %}b{% endif %}{% if nothing is defined and nothing.x %}c{% endif %}",
        "{% macro f(a, b='B', c=a) %}{{ a }}{{ b }}{{ c }};{% endmacro %}{{ f(1) }}{{ f(1, 2) }}{{ f(b=3, a=4) }}{{ f() }}{{ f.name }}",
        "{% macro f() %}{{ varargs }}{{ kwargs }}{% endmacro %}{{ f(1, 2, x=3) }}",
        "{% macro f(a) %}{{ a }}{% endmacro %}{{ f(1, 2) }}",
        "{% macro f(a) %}{{ a }}{% endmacro %}{{ f(z=2) }}",
        "{% macro f(x) %}<{{ caller(x) }}>{% endmacro %}{% call(y) f(1) %}[{{ y }}{{ i }}]{% endcall %}",
        "{% macro f() %}{{ caller() }}{{ caller is defined }}{% endmacro %}{% call f() %}body{% endcall %}",
        "{% macro f() %}x{% endmacro %}{% call f() %}body{% endcall %}",
        "{% macro f(n) %}{{ n }}{% if n > 0 %}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(3) }}",
        "{% macro f() %}{{ y }}{% endmacro %}{% set y = 5 %}{{ f() }}",
        "{% for x in l %}{% macro g() %}{{ x }}{% endmacro %}{{ g() }}{% endfor %}{{ g is defined }}",
        "{% macro f(a) -%}\n  {{ a }}\n{%- endmacro %}[{{ f('x') | upper }}]",
        "{% macro f(x) %}{% set s = x %}{{ s }}{% endmacro %}{{ f(9) }}{{ s }}",
        "{% filter upper | replace('A', 'x') %}ab{{ s }}{% endfilter %}",
        "{% with a=1, b=i %}{{ a }}{{ b }}{% set c = 3 %}{% endwith %}{{ a is defined }}{{ c is defined }}",
        "{% with %}{% set i = 1 %}{{ i }}{% endwith %}{{ i }}",
        "{% print i, s %}",
        "{% generation %}a {{ i }}\n{% endgeneration %}b",
        "{% for m in messages %}{% if m.role == 'assistant' %}{% generation %}\n{{ m.content }}{% endgeneration %}\n{% else %}{{ m.role }}{% endif %}{% endfor %}",
        "{% generation %}{% set q = 5 %}{{ q }}{% endgeneration %}{{ q is defined }}",
        "{%- generation -%} x {%- endgeneration -%} y",
        # Errors.
        "{% for m in messages %}",
        "{% if %}x{% endif %}",
        "{{ 1 + }}",
        "{{ a b }}",
        "{% unknown %}",
        "{% endif %}",
        "{{ 'abc }}",
        "{{ (1, 2 }}",
        "{{ {1: } }}",
        "{# never closed",
        "{{ x | }}",
        "{{ x.'a' }}",
        "{% include 'x' %}",
        "{% if f %}{% include 'x' %}{% endif %}ok",
        "{% if f %}{{ x | no_filter }}{% endif %}ok",
        "{% if f %}{% for x in l %}{{ x | no_filter }}{% endfor %}{% endif %}ok",
        "{{ (x | no_filter) if f else 'ok' }}",
        "{{ foo() }}",
        "{{ messages[0].nothing.more }}",
        "{{ messages[0]['nothing'] }}{{ messages[0].get('nothing') }}",
        "{% macro f(a=1, b) %}{% endmacro %}",
        "{{ f(a=1, a=2) }}",
        "{% set true = 1 %}",
        # In the manner of published templates.
        "{% if messages[0]['role'] == 'system' %}{% set loop_messages = messages[1:] %}{% set system_message = messages[0]['content'] | trim %}{% else %}{% set loop_messages = messages %}{% endif %}{% for message in loop_messages %}{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('Conversation roles must alternate user/assistant/user/assistant/...') }}{% endif %}{% if loop.index0 == 0 and system_message is defined %}{% set content = '<<SYS>>\\n' + system_message + '\\n<</SYS>>\\n\\n' + message['content'] %}{% else %}{% set content = message['content'] %}{% endif %}{% if message['role'] == 'user' %}{{ bos_token + '[INST] ' + content.strip() + ' [/INST]' }}{% elif message['role'] == 'assistant' %}{{ ' ' + content.strip() + ' ' + eos_token }}{% endif %}{% endfor %}",
        "{{- bos_token }}\n{%- if tools is not none and tools %}\n    {{- '<|start|>system\\n' }}\n    {%- if date_string is not defined %}{% set date_string = strftime_now('%d %b %Y') %}{% endif %}\n    {{- 'Today: ' + date_string + '\\n\\n' }}\n    {%- for t in tools %}\n        {{- t | tojson(indent=4) }}\n        {{- '\\n\\n' }}\n    {%- endfor %}\n{%- endif %}\n{%- for message in messages %}\n    {{- '<|start|>' + message.role + '<|end|>\\n\\n' + message.content | trim + '<|eot|>' }}\n{%- endfor %}\n{%- if add_generation_prompt %}\n    {{- '<|start|>assistant<|end|>\\n\\n' }}\n{%- endif %}\n",
        "{%- if tools %}\n    {{- '<|im_start|>system\\n' }}\n    {%- if messages[0].role == 'system' %}\n        {{- messages[0].content + '\\n\\n' }}\n    {%- endif %}\n    {{- '# Tools\\n<tools>' }}\n    {%- for tool in tools %}\n        {{- '\\n' }}\n        {{- tool | tojson }}\n    {%- endfor %}\n    {{- '\\n</tools><|im_end|>\\n' }}\n{%- endif %}\n{%- set ns = namespace(multi_step=true, last=messages|length - 1) %}\n{%- for message in messages[::-1] %}\n    {%- set index = (messages|length - 1) - loop.index0 %}\n    {%- if ns.multi_step and message.role == 'user' and message.content is string and not (message.content.startswith('<r>') and message.content.endswith('</r>')) %}\n        {%- set ns.multi_step = false %}\n        {%- set ns.last = index %}\n    {%- endif %}\n{%- endfor %}\n{%- for message in messages %}\n    {%- if message.role == 'assistant' and message.tool_calls %}\n        {{- '<|im_start|>assistant' }}\n        {%- for tool_call in message.tool_calls %}\n            {%- if tool_call.function %}{%- set tool_call = tool_call.function %}{%- endif %}\n            {{- '\\n<tool_call>\\n{\"name\": \"' + tool_call.name + '\", \"arguments\": ' }}\n            {%- if tool_call.arguments is string %}{{- tool_call.arguments }}{%- else %}{{- tool_call.arguments | tojson }}{%- endif %}\n            {{- '}\\n</tool_call>' }}\n        {%- endfor %}\n        {{- '<|im_end|>\\n' }}\n    {%- elif message.role == 'tool' %}\n        {%- if loop.first or messages[loop.index0 - 1].role != 'tool' %}{{- '<|im_start|>user' }}{%- endif %}\n        {{- '\\n<tool_response>\\n' + message.content + '\\n</tool_response>' }}\n        {%- if loop.last or messages[loop.index0 + 1].role != 'tool' %}{{- '<|im_end|>\\n' }}{%- endif %}\n    {%- else %}\n        {{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>' + '\\n' }}\n    {%- endif %}\n{%- endfor %}{{ ns.last }}\n",
        "{{ bos_token }}{% for message in messages %}{% set role = 'model' if message['role'] == 'assistant' else message['role'] %}{{ '<start_of_turn>' + role + '\\n' + message['content'] | trim + '<end_of_turn>\\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<start_of_turn>model\\n' }}{% endif %}",
        "{% for message in messages %}{% if message['role'] == 'assistant' and '</think>' in message['content'] %}{% set content = message['content'].split('</think>')[-1].lstrip('\\n') %}{% else %}{% set content = message.content %}{% endif %}{{ '<|' + message.role + '|>' + content + '<|end|>' }}{{ '\\n' if not loop.last }}{% endfor %}",
        "{%- macro param(name, spec) -%}\n{{ name }}: {{ spec.type if spec.type is string else spec.type | join(' | ') }}\n{%- if spec.enum %} = {{ spec.enum | map('tojson') | join(' | ') }}{% endif %}\n{%- if spec.default is defined %} (default {{ spec.default }}){% endif %}\n{%- endmacro %}\n{%- for tool in tools or [] %}\n{{ tool.function.name }}({% for name, spec in tool.function.parameters.properties.items() %}{{ param(name, spec) }}{% if name not in tool.function.parameters.required %}?{% endif %}{{ ', ' if not loop.last else '' }}{% endfor %})\n{%- endfor %}",
        "{%- for tool in tools %}{%- for key, val in tool.function.items() %}{%- if key != 'parameters' %}{{ '\"' ~ key ~ '\": ' ~ val | tojson }}{{ ', ' if not loop.last }}{%- endif %}{%- endfor %}{% endfor %}",
        "{%- for tool in tools %}{% for k, v in tool['function']['parameters']['properties'] | items %}{{ k }}:{{ v['items']['type'] if v['type'] == 'array' else v }};{% endfor %}{% endfor %}",
        "{% for m in messages %}{% if m.tool_calls is defined and m.tool_calls is not none %}{% for c in m.tool_calls %}{% if c.id | length != 9 %}{{ raise_exception('Tool call IDs should be 9 characters') }}{% endif %}[TOOL_CALLS] [{{ c.function | tojson }}, \"id\": \"{{ c.id }}\"]{% endfor %}{% elif m.role == 'tool' %}[TOOL_RESULTS] {\"content\": {{ m.content | string }}, \"call_id\": \"{{ m.tool_call_id }}\"}[/TOOL_RESULTS]{% else %}{{ m.content }}{% endif %}{% endfor %}",
    ]


def cases():
    base = BASE
    for expression in expressions():
        tools = TOOLS if "tools" in expression else None
        yield "{{ " + expression + " }}", {**base, "tools": tools}
    for template in statements():
        yield template, base
        if "tools" in template or "tool_calls" in template:
            yield template, {**base, "messages": CALLS, "tools": TOOLS}
            yield template, {**base, "tools": TOOLS, "add_generation_prompt": False}


def outcome(render):
    try:
        return {"text": render()}
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"}


def main():
    made = environment()
    rows = []
    for template, values in cases():
        found = outcome(lambda: made.from_string(template).render(**values))
        if " at 0x" in found.get("text", ""):
            # The address of an object, which is another each time.
            found = {"error": "prints an address"}
        own = {name: value for name, value in values.items() if value != BASE[name]}
        rows.append({"template": template, "values": text(own), **found})
    if "--check" in sys.argv:
        check(rows)
    path = pathlib.Path(__file__).with_suffix(".json")
    whole = {"values": text(BASE), "cases": rows}
    path.write_text(json.dumps(whole, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    print(len(rows), "cases,", sum("error" in row for row in rows), "of them errors")


BASE = {"messages": CHAT, "tools": None, "documents": None, "add_generation_prompt": True, "bos_token": "<s>",
        "eos_token": "</s>", **DATA}


def text(values):
    """JSON as a text, whose order of keys a reader cannot lose."""
    return json.dumps(values, ensure_ascii=False)


def check(rows):
    """Compares with transformers, whose dates are those of the day."""
    from transformers.utils import chat_template_utils

    for row in rows:
        values = {**BASE, **json.loads(row["values"])}

        def render():
            compiled = chat_template_utils._compile_jinja_template(row["template"])
            compiled.environment.globals["strftime_now"] = NOW.strftime
            compiled.globals["strftime_now"] = NOW.strftime
            return compiled.render(**values)
        found = outcome(render)
        if " at 0x" in found.get("text", ""):
            found = {"error": "prints an address"}
        assert ("text" in found) == ("text" in row) and found.get("text") == row.get("text"), (row, found)


if __name__ == "__main__":
    main()
