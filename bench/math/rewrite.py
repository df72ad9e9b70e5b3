"""Rewrites published golds as answers give them: reads a JSON list of golds, writes one JSON object {kind, gold, answer, equal}
per line. A gold that sympy reads (through latex2sympy) is printed by sympy again; others change in spelling only. Beside every
gold stands that of another question, which is wrong unless sympy says that both are equal."""

import json
import re
import sys

import sympy as sp
from math_verify import parse, verify

golds = json.load(sys.stdin)


def value_of(gold):
    """What sympy makes of a gold; None for what it does not read, or reads as something else than an expression."""
    if re.search(r"text|mbox|_|%|\$|circ|pm|,|=|in\b|cup|begin|\[|\{,\}|[A-Za-z]{3,}", re.sub(r"\\(?:frac|dfrac|tfrac|sqrt|pi|cot|left|right|infty)", "", gold)):
        return None
    if re.fullmatch(r"[A-Za-z .]{2,}", gold):
        return None
    try:
        found = parse(f"${gold}$", parsing_timeout=None)
        # It reads R as r, and has functions that LaTeX has not.
        known = found and isinstance(found[0], sp.Expr) and all(str(one) in gold for one in found[0].free_symbols)
        return found[0] if known and not found[0].has(sp.factorial, sp.binomial) else None
    except Exception:
        return None


def spelled(gold):
    yield f"$ {gold} $"
    yield f"The answer is $\\boxed{{{gold}}}$."
    if "\\frac" in gold:
        yield re.sub(r"\\frac\s*(?=\{)", r"\\dfrac", gold)
        yield re.sub(r"(?<!\d)\\frac\{(\d+)\}\{(\d+)\}$", r"\1/\2", gold)
    if "," in gold and not re.search(r"[a-z]{2} ", gold):
        yield gold.replace(",", " , ") if "!" not in gold and not re.search(r"\d,\d{3}", gold) else gold.replace("\\!", "").replace(" ", "")
    if gold.startswith(("(", "[")) and gold.endswith((")", "]")):
        yield "\\left" + gold[:-1] + "\\right" + gold[-1] if "\\left" not in gold else gold.replace("\\left", "").replace("\\right", "")
    if re.fullmatch(r"-?\d+", gold):
        yield f"{gold}.0"
        if abs(int(gold)) > 999:
            yield f"{int(gold):,}"
        yield f"\\frac{{{int(gold) * 3}}}{{3}}"
    if re.search(r"\\text\{[^{}]*\}$|^[A-Za-z ]+$", gold):
        yield re.sub(r"\\text\{([^{}]*)\}", r"\1", gold)
    if "circ" in gold:
        yield gold.replace("^\\circ", "°")
        yield gold.replace("^\\circ", " degrees")
    if "pmatrix" in gold:
        yield gold.replace("pmatrix", "bmatrix")
        yield re.sub(r"(?<=[ {])(-?)(\d+)/(\d+)", r"\1\\frac{\2}{\3}", gold)
    if "_" in gold and re.fullmatch(r"\d+_\{?\d\}?", gold):
        yield re.sub(r"_(\d)$", r"_{\1}", gold)
    if "\\cup" in gold:
        yield "\\cup".join(reversed(gold.split("\\cup")))
    if "\\pm" in gold and "\\{" not in gold:
        yield ", ".join([gold.replace("\\pm", "+"), gold.replace("\\pm", "-")])


for i, gold in enumerate(golds):
    value = value_of(gold)
    answers = list(dict.fromkeys(spelled(gold)))
    if value is not None:
        answers += [sp.latex(value), sp.latex(sp.expand(value), order="rev-lex"), sp.latex(sp.factor(value)), str(value).replace("**", "^")]
    for answer in dict.fromkeys(answers):
        if answer != gold:
            print(json.dumps({"kind": "rewritten", "gold": gold, "answer": answer, "equal": True}))
    other = golds[(i + 1) % len(golds)]
    if not verify(parse(f"\\boxed{{{gold}}}", parsing_timeout=None), parse(f"\\boxed{{{other}}}", parsing_timeout=None), timeout_seconds=None):
        print(json.dumps({"kind": "another question's", "gold": gold, "answer": other, "equal": False}))
