"""Markdown to test with: fragments that change what came before, a long answer with numbered words."""

import re
from collections import Counter

FRAGMENTS = [
    "[foo]: /url", "'tit", "le'", "| a | b |", "|---|---|", "| 1 | 2 |", "a | b", "--|--", "a", "b c", "# h",
    "#", "## h ##", "---", "===", "***", "- x", "- ", "-", "* y", "+ z", "1. one", "2. two", "7) q",
    "   - deep", "  - n", "    - n4", "> q", ">", "> - ql", "> ```", "```", "```py", "~~~", "````",
    "    code", "     code5", "", "", "", " ", "   ", "<div>", "</div>", "<!-- c", "-->", "<script>",
    "</script>", "<b>", "<?php", "?>", "[foo]:", "/url", '"t', "[foo]", "  continuation",
    "    continuation4", "      code in list", "  ```", "  > nested q", "1.  - a", "- - - x", "- # h",
    "- ```", "-     code", "10. ten", "*emph", "end*", "`code", "tick`", "\\", "<", "&amp;", "![i](x)",
    "[l](u", "\u2028", "\x0b", "👩‍💻 中文",
]  # fmt: skip

_SECTION = """\
## {0} section

{1} alpha **beta** `gamma` 中文字 delta {2} epsilon 👩‍💻 zeta eta theta iota {3} kappa lambda.
{4} second line with a [link](https://example.org/{0}) and more words to break.

- {5} first
- {6} second with rather more words than fit on a single narrow line of text
  - {7} nested
    still {8}

    new paragraph {9}
- {10} third

3. {11} three
4. {12} four

```python
def {13}(x):
    '''doc'''
    return {14}
```

| name | 值 |
|:---|---:|
| {15} | 1 |
| {16} 👩‍💻 | 22 |

> {17} quoted
> {18} lines

[{0}]: https://example.org "title"

    indented {19}

"""
_WORDS = 20


def numbered(sections: int) -> str:
    """An answer with every kind of block; its words W0001, W0002, ... stand once each in the text shown."""
    return "".join(
        _SECTION.format(*(f"W{section * _WORDS + word:04}" for word in range(_WORDS)))
        for section in range(sections)
    )


def shown_more_than_once_or_never(lines: list[str], sections: int) -> dict[str, int]:
    """The numbered words of `numbered` that `lines` do not hold exactly as often as they should."""
    # A terminal that takes an emoji for wider than it is breaks a line within a word.
    found = Counter(re.findall(r"W\d{4}", "".join(lines)))
    # The first word of each section also stands in a link's address and in a definition.
    wanted = {f"W{n:04}": 1 if n % _WORDS else 3 for n in range(sections * _WORDS)}
    return {word: found[word] for word, count in wanted.items() if found[word] != count}
