"""Writes labelled pairs of a gold and an answer, one JSON object per line: `generate.py COUNT [SEED]`. Half are right, by
rewriting; half are wrong, by one change of a right one. Every label is checked with sympy: two sides of a right pair have the
same value, set, matrix or truth, and those of a wrong one have not. What sympy cannot see (the name of a unit, a word) is
labelled by how the pair was made. Written without regard to any grader."""

import json
import random
import re
import sys

import sympy as sp

R = random.Random(int(sys.argv[2]) if len(sys.argv) > 2 else 20261128)
pick = R.choice
x, y, z, t, n, k, a, b, r = sp.symbols("x y z t n k a b r")
LETTERS = [x, y, z, t, n, k, a, b, r]


class Skip(Exception):
    pass


# ---- Checks


def points(*sides):
    names = sorted(set().union(*(side.free_symbols for side in sides)), key=str)
    for _ in range(6):
        yield {name: sp.Rational(R.randint(-40, 40) * 2 + 1, pick([3, 7, 11])) for name in names}


def same(p, q):
    p, q = sp.sympify(p), sp.sympify(q)
    if p == q:
        return True
    told = 0
    for point in points(p, q):
        d = sp.N((p - q).subs(point), 40)
        if d.is_number and not d.has(sp.nan, sp.zoo, sp.oo) and not d.atoms(sp.core.function.AppliedUndef):
            if abs(sp.re(d)) + abs(sp.im(d)) > sp.Float("1e-25"):
                return False
            told += 1
    if told == 0:
        return bool(sp.expand(p - q) == 0)
    return True


def right(p, q):
    if not same(p, q):
        raise Skip
    return True


def wrong(p, q):
    if same(p, q):
        raise Skip
    return True


# ---- Ways to write


CLEAN = False


def clean(way, *given):
    """As a gold is written: in lowest terms, in one style."""
    global CLEAN
    CLEAN = True
    try:
        return way(*given)
    finally:
        CLEAN = False


def tex(e):
    if CLEAN:
        return sp.latex(e, ln_notation=True, inv_trig_style="full").replace("\\left", "").replace("\\right", "")
    o = sp.latex(
        e,
        order=pick(["lex", "grlex", "rev-lex", None]),
        mul_symbol=pick([None, None, None, "dot", "times"]),
        fold_short_frac=pick([False, False, False, True]),
        inv_trig_style="full",
        ln_notation=True,
    )
    o = o.replace(r"\log", r"\ln")
    if pick([0, 0, 1]):
        o = o.replace(r"\left", "").replace(r"\right", "")
    if pick([0, 0, 0, 1]):
        o = o.replace(r"\frac", pick([r"\dfrac", r"\tfrac"]))
    return o


def plain(e):
    o = str(e).replace("**", "^").replace("log(", "ln(")
    if pick([0, 1]):
        o = re.sub(r"(?<=\d)\*(?=[a-z(])", "", o)
    if pick([0, 1]):
        o = o.replace(" ", "")
    return o


def dress(o):
    """Puts around a formula what answers have around them."""
    return pick(
        [lambda s: s] * 5
        + [
            lambda s: f"${s}$",
            lambda s: f"\\boxed{{{s}}}",
            lambda s: f"The answer is $\\boxed{{{s}}}$.",
            lambda s: f" {s} ",
            lambda s: f"\\displaystyle {s}",
        ]
    )(o)


def form(e):
    """The same value in another form."""
    ways = [sp.expand, sp.factor, sp.together, lambda v: v, lambda v: v]
    if len(e.free_symbols) == 1 and e.is_rational_function():
        ways += [sp.apart, sp.horner if e.is_polynomial() else sp.cancel]
    return pick(ways)(e)


def write(e):
    if CLEAN:
        return tex(e)
    if e.has(sp.I) or e.has(sp.log) or e.has(sp.Abs) or e.is_number:
        return tex(e)
    return pick([tex, tex, tex, plain])(e)


def integer(low=-30, high=30):
    while (v := R.randint(low, high)) == 0:
        pass
    return sp.Integer(v)


def rational():
    return sp.Rational(int(integer()), R.randint(2, 24))


def frac(p, q):
    sign = "-" if (p < 0) != (q < 0) else ""
    p, q = abs(p), abs(q)
    return sign + pick([f"\\frac{{{p}}}{{{q}}}", f"\\frac{{{p}}}{{{q}}}", f"\\dfrac{{{p}}}{{{q}}}", f"{p}/{q}"])


def decimal(v):
    """Digits of a fraction that ends."""
    v = sp.Rational(v)
    for places in range(0, 9):
        if (v * 10**places).q == 1:
            digits = str(abs(int(v * 10**places))).rjust(places + 1, "0")
            text = digits if places == 0 else f"{digits[:-places]}.{digits[-places:]}"
            return ("-" if v < 0 else "") + text
    raise Skip


def commas(v):
    return pick([f"{v:,}", f"{v:,}".replace(",", "{,}"), f"{v:,}".replace(",", "\\,"), f"{v:,}".replace(",", ",\\!")])


def number(v):
    """One way to write a rational number."""
    v = sp.Rational(v)
    if CLEAN:
        return str(v) if v.q == 1 else f"{'-' if v < 0 else ''}\\frac{{{abs(v.p)}}}{{{v.q}}}"
    m = R.randint(2, 5)
    ways = [lambda: frac(v.p, v.q), lambda: frac(v.p * m, v.q * m)]
    if v.q == 1:
        ways = [lambda: str(v), lambda: f"{v}.0", lambda: frac(v.p * m, m), lambda: f"{v.p - m}+{m}"]
        if abs(v) >= 1000:
            ways += [lambda: commas(int(v))] * 3
    else:
        ways.append(lambda: decimal(v))
        if abs(v) > 1:
            whole, rest = divmod(abs(v.p), v.q)
            sign = "-" if v < 0 else ""
            ways.append(lambda: f"{sign}{whole}\\frac{{{rest}}}{{{v.q}}}")
            ways.append(lambda: f"{sign}{whole} {rest}/{v.q}")
    try:
        return pick(ways)()
    except Skip:
        return frac(v.p, v.q)


# ---- Kinds: each gives (gold, right answer, wrong answer, what was changed)


def numbers():
    v = pick([rational(), rational(), integer(), sp.Integer(R.randint(1000, 9_999_999)), sp.Rational(int(integer()), pick([4, 5, 8, 20, 25, 40]))])
    changes = {
        "sign": lambda: number(-v),
        "digit": lambda: number(v + pick([1, -1, 10, -10])),
        "inverse": lambda: number(1 / v),
        "place": lambda: number(v * pick([10, 100, sp.Rational(1, 10)])),
        "rounded": lambda: f"{float(v):.{R.randint(1, 3)}f}",
        "percent": lambda: f"{number(v)}\\%",
        "denominator": lambda: frac(v.p, v.q + 1),
        "exponent": lambda: f"{number(v)}\\times 10^{{{R.randint(2, 6)}}}",
    }
    how = pick(list(changes))
    other = changes[how]()
    if how == "rounded":
        wrong(v, sp.Rational(other))
    if how == "percent" and abs(v) >= 1:
        raise Skip  # 25 for 25% is a matter of the question.
    if how == "place" and abs(v) == 0:
        raise Skip
    if how == "inverse":
        wrong(v, 1 / v)
    if how == "denominator":
        wrong(v, sp.Rational(v.p, v.q + 1))
    answer = number(v)
    if v.q == 1 and abs(v) >= 1000 and pick([0, 1]):
        digits = str(abs(v)).rstrip("0")
        shown = f"{digits[0]}.{digits[1:] or '0'}"
        answer = f"{'-' if v < 0 else ''}{shown}\\times 10^{{{len(str(abs(v))) - 1}}}"
    if 0 < abs(v) < 1 and pick([0, 0, 0, 1]):
        try:
            answer = f"{decimal(v * 100)}\\%"
        except Skip:
            pass
    return pick([clean(number, v), clean(number, v), number(v)]), answer, other, how


def closed():
    c, d = integer(-9, 9), integer(-9, 9)
    p = sp.Integer(pick([2, 3, 5, 6, 7, 10, 11, 13]))
    q = sp.Integer(pick([2, 3, 5, 7, 11]))
    s = R.randint(2, 6)
    root = sp.sqrt(p)
    shape = pick(["sum", "scaled", "over", "pi", "cube", "nested", "exp", "log", "power", "mixed", "golden", "pisum"])
    def fr(top, bottom):
        return f"\\frac{{{top}}}{{{bottom}}}"
    if shape == "sum":
        v, gold = c + d * root, f"{c}{'+' if d > 0 else '-'}{abs(d)}\\sqrt{{{p}}}"
        answer = pick([f"{d}\\sqrt{{{p}}}{'+' if c > 0 else '-'}{abs(c)}", f"{c}{'+' if d > 0 else '-'}\\sqrt{{{p * d * d}}}", f"{c}{'+' if d > 0 else '-'}{abs(d)}\\cdot {p}^{{1/2}}"])
    elif shape == "scaled":
        v, gold = abs(d) * root, f"{abs(d)}\\sqrt{{{p}}}"
        answer = pick([f"\\sqrt{{{p * d * d}}}", f"\\sqrt {{{p}}}\\cdot {abs(d)}", fr(abs(d) * p, f"\\sqrt{{{p}}}"), f"{abs(d)}*sqrt({p})"])
    elif shape == "over":
        v, gold = root / p, fr(f"\\sqrt{{{p}}}", p)
        answer = pick([fr(1, f"\\sqrt{{{p}}}"), f"1/\\sqrt{{{p}}}", f"{p}^{{-1/2}}", f"\\sqrt{{\\frac{{1}}{{{p}}}}}", f"sqrt({p})/{p}"])
    elif shape == "pi":
        w = rational()
        v, gold = w * sp.pi, f"{'-' if w < 0 else ''}\\frac{{{abs(w.p)}\\pi}}{{{w.q}}}"
        answer = pick([f"{frac(w.p, w.q)}\\pi", f"\\frac{{{w.p * s}}}{{{w.q * s}}}\\pi", f"{w.p}\\pi/{w.q}", f"{w.p}pi/{w.q}"])
    elif shape == "pisum":
        v, gold = c + d * sp.pi, f"{c}{'+' if d > 0 else '-'}{abs(d)}\\pi"
        answer = pick([f"{d}\\pi{'+' if c > 0 else '-'}{abs(c)}", f"{d}π{'+' if c > 0 else '-'}{abs(c)}"])
    elif shape == "cube":
        v, gold = s * sp.cbrt(p), f"{s}\\sqrt[3]{{{p}}}"
        answer = pick([f"\\sqrt[3]{{{p * s**3}}}", f"{s}\\cdot {p}^{{1/3}}", f"{s}\\cdot {p}^{{\\frac{{1}}{{3}}}}"])
    elif shape == "nested":
        if p == q:
            raise Skip
        v, gold = sp.sqrt(p) + sp.sqrt(q), f"\\sqrt{{{p}}}+\\sqrt{{{q}}}"
        answer = pick([f"\\sqrt{{{p + q}+2\\sqrt{{{p * q}}}}}", f"\\sqrt{{{q}}}+\\sqrt{{{p}}}", fr(p - q, f"\\sqrt{{{p}}}-\\sqrt{{{q}}}")])
    elif shape == "exp":
        v, gold = d * sp.E ** s, f"{d}e^{{{s}}}"
        answer = pick([f"{d}e^{{{s - 1}}}\\cdot e", f"{d}\\exp({s})", f"e^{{{s}}}\\cdot ({d})", fr(f"{d}", f"e^{{-{s}}}")])
    elif shape == "log":
        v, gold = sp.log(p) * s, f"{s}\\ln {p}"
        answer = pick([f"\\ln {p**s}", f"\\ln({p**s})", f"{s}\\ln({p})", f"-{s}\\ln\\frac{{1}}{{{p}}}", f"{s} \\log_{{e}} {p}"])
    elif shape == "power":
        v, gold = sp.Integer(2) ** sp.Rational(2 * s + 1, 2), f"{2**s}\\sqrt{{2}}"
        answer = f"2^{{{2 * s + 1}/2}}"
    elif shape == "mixed":
        v, gold = (c + root) / (abs(d) + 1), fr(f"{c}+\\sqrt{{{p}}}", abs(d) + 1)
        answer = pick([f"\\frac{{{c}}}{{{abs(d) + 1}}}+\\frac{{\\sqrt{{{p}}}}}{{{abs(d) + 1}}}", fr(f"\\sqrt{{{p}}}{'+' if c > 0 else '-'}{abs(c)}", abs(d) + 1), f"({c}+sqrt({p}))/{abs(d) + 1}"])
    else:
        if c * c == p:
            raise Skip
        v, gold = (c + root) / (c * c - p), fr(f"{c}+\\sqrt{{{p}}}", c * c - p) if c * c > p else f"-\\frac{{{c}+\\sqrt{{{p}}}}}{{{p - c * c}}}"
        answer = fr(1, f"{c}-\\sqrt{{{p}}}")
    how = pick(["sign", "digit", "rounded", "radicand", "scale", "constant"])
    if how == "sign":
        other = f"-({gold})" if pick([0, 1]) else gold[1:] if gold.startswith("-") else f"-{gold}"
        if other.startswith("-") and ("+" in gold[1:] or "-" in gold[1:]) and not other.startswith("-("):
            raise Skip
    elif how == "rounded":
        other = f"{float(v):.{R.randint(2, 10)}f}"
        wrong(v, sp.Rational(other))
    elif how == "scale":
        other = pick([f"2({gold})", f"\\frac{{{gold}}}{{2}}", f"{gold}+1"])
    elif how == "constant":
        other = gold.replace("\\pi", "e") if "\\pi" in gold else gold.replace("e^", "\\pi^") if "e^" in gold else gold.replace("\\ln", "\\log") if "\\ln" in gold else gold.replace("\\sqrt", "\\sqrt[4]", 1) if "\\sqrt{" in gold else None
        if other is None or other == gold:
            raise Skip
    else:
        digits = list(re.finditer(r"\d", gold))
        at = pick(digits)
        other = gold[: at.start()] + str((int(at[0]) + R.randint(1, 3)) % 10) + gold[at.end() :]
        # A root of a square, or a zero, may have the same value by chance.
        w = as_value(other)
        if w is None:
            raise Skip
        wrong(v, w)
    return gold, answer, other, how


def as_value(text):
    """The value of what `closed` writes."""
    o = re.sub(r"\\frac\{((?:[^{}]|\{[^{}]*\})*)\}\{((?:[^{}]|\{[^{}]*\})*)\}", r"((\1)/(\2))", text)
    o = re.sub(r"\\sqrt\[(\d)\]\{([^{}]*)\}", r"(\2)**(1/Integer(\1))", o)
    o = re.sub(r"\\sqrt\{([^{}]*)\}", r"sqrt(\1)", o)
    o = re.sub(r"e\^\{([^{}]*)\}", r"E**(\1)", o)
    o = re.sub(r"\\ln (\d+)", r"log(\1)", o).replace("\\pi", "pi")
    o = re.sub(r"(?<=[\d)])(?=[a-zE(])", "*", o)
    o = re.sub(r"\*\*\(1/\*?Integer\*?\(", "**(1/Integer(", o).replace("Integer*(", "Integer(").replace("sqrt*(", "sqrt(").replace("log*(", "log(")
    o = re.sub(r"\b0+(?=\d)", "", o)
    try:
        v = sp.sympify(o)
        return v if v.is_finite else None
    except Exception:
        return None


def poly(letters=None, degree=3):
    letters = letters or R.sample(LETTERS, pick([1, 1, 2, 2, 3]))
    e = sp.Integer(0)
    for _ in range(R.randint(2, 4)):
        term = integer(-9, 9)
        for one in letters:
            term *= one ** R.randint(0, degree)
        e += term
    if pick([0, 0, 1]):
        e = sp.expand((letters[0] + integer(-5, 5)) * (letters[-1] + integer(-5, 5)))
    if not e.free_symbols:
        raise Skip
    return e


def mutate(e):
    """Another expression than `e`, and what was changed."""
    how = pick(["sign", "digit", "exponent", "case", "letter", "dropped", "order"])
    letters = sorted(e.free_symbols, key=str)
    terms = sp.Add.make_args(e)
    if how == "sign":
        at = pick(terms)
        o = e - 2 * at
    elif how == "digit":
        at = pick(terms)
        o = e + pick([at / 2, at * 2, 1, -1])
    elif how == "exponent":
        one = pick(letters)
        o = e.subs(one, one**2) if pick([0, 1]) else e - pick(terms) + pick(terms) * one
    elif how == "case":
        one = pick(letters)
        o = e.subs(one, sp.Symbol(str(one).upper()))
    elif how == "letter":
        one = pick(letters)
        o = e.subs(one, pick([s for s in LETTERS if s not in letters]))
    elif how == "order":
        if len(letters) < 2:
            raise Skip
        p, q = R.sample(letters, 2)
        o = e.subs({p: q, q: p}, simultaneous=True)
    else:
        if len(terms) < 2:
            raise Skip
        o = e - pick(terms)
    wrong(e, o)
    return o, how


def polynomials():
    e = poly()
    o, how = mutate(e)
    f = form(e)
    right(e, f)
    return clean(write, e), write(f), write(form(o)), how


def fractions_of_letters():
    letters = R.sample(LETTERS, pick([1, 1, 2]))
    e = sp.cancel(poly(letters, 2) / poly(letters, pick([1, 2])))
    if e.is_polynomial():
        raise Skip
    top, bottom = sp.fraction(sp.together(e))
    how = pick(["inside", "inverse", "below", "sign"])
    if how == "inside":
        o, how = mutate(e)
    elif how == "inverse":
        o = 1 / e
    elif how == "below":
        o = top / (bottom + pick([1, letters[0]]))
    else:
        o = -e
    wrong(e, o)
    f = form(e)
    right(e, f)
    return clean(write, e), write(f), write(o), how


FUNCTIONS = [sp.sin, sp.cos, sp.tan, sp.exp, sp.log, sp.sqrt, sp.Abs, sp.asin, sp.atan]
SWAPS = {sp.sin: sp.cos, sp.cos: sp.sin, sp.tan: sp.cot, sp.asin: sp.acos, sp.atan: sp.asin}


def functions():
    one = pick([x, t, a, n])
    x_ = sp.Symbol(str(one), real=True)
    inner = pick([x_, 2 * x_, 3 * x_ + 1, x_**2, x_**2 - 1, 1 - x_**2, x_ / 2, (x_ + 1) * (x_ + 2), 1 - x_, x_ + sp.pi / 5])
    f = pick(FUNCTIONS)
    c, d = integer(-7, 7), integer(-7, 7)
    inner = sp.expand(inner)
    e = pick([c * f(inner) + d, c * f(inner) + d * x_, x_ * f(inner) + d, f(inner) / (x_ + 3), c * f(inner) ** 2 + d * f(inner), f(inner) + pick([sp.sin, sp.cos, sp.exp])(x_)])
    if not e.has(f) and f not in (sp.exp, sp.sqrt):
        raise Skip
    how = pick(["function", "argument", "moved", "sign", "power", "domain", "case", "digit"])
    if how == "function":
        if f not in SWAPS:
            raise Skip
        o = e.replace(f, SWAPS[f])
    elif how == "argument":
        o = e.subs(x_, pick([2 * x_, x_ + 1, -x_]))
    elif how == "moved":
        o = e.subs(f(inner), f(2 * inner) / 2) if pick([0, 1]) else e.subs(f(inner), 2 * f(inner) - f(2 * inner) + f(inner) * 0)
    elif how == "sign":
        o = e - 2 * pick(sp.Add.make_args(e))
    elif how == "power":
        o = e.subs(f(inner), f(inner**2)) if pick([0, 1]) else e.subs(f(inner), f(inner) ** 2)
    elif how == "domain":
        if f == sp.log:
            o = e.subs(sp.log(inner), sp.log(sp.Abs(inner)))
        elif f == sp.Abs:
            o = e.subs(sp.Abs(inner), inner)
        elif f == sp.sqrt:
            o = e.subs(sp.sqrt(inner), sp.sqrt(sp.Abs(inner)))
        else:
            raise Skip
    elif how == "case":
        o = e.subs(x_, sp.Symbol(str(one).upper(), real=True))
    else:
        o = e + pick([1, -1, x_])
    wrong(e, o)
    ways = [lambda v: v, sp.factor_terms, sp.together, lambda v: v.subs(inner, sp.factor(inner)), lambda v: v]
    if pick([0, 0, 0, 1]):
        ways = [sp.expand, sp.factor]
    g = pick(ways)(e)
    right(e, g)
    return clean(write, e), write(g), write(o), how


def identities():
    """Right by an identity across functions; a few, as answers have them."""
    e, g = pick(
        [
            (sp.sin(2 * x), 2 * sp.sin(x) * sp.cos(x)),
            (sp.sin(x) ** 2, 1 - sp.cos(x) ** 2),
            (sp.tan(x), sp.sin(x) / sp.cos(x)),
            (sp.cos(2 * x), 1 - 2 * sp.sin(x) ** 2),
            (sp.exp(x + 1), sp.E * sp.exp(x)),
            (sp.sec(x), 1 / sp.cos(x)),
            (sp.log(x) / sp.log(2), sp.log(x, 2)),
        ]
    )
    right(e, g)
    c = integer(2, 9)
    return clean(tex, c * e), tex(c * g), tex(c * e.subs(x, 2 * x)), "argument"


def letter_functions():
    name = pick(["f", "g", "h", "p", "P", "T", "u", "F", "\\sigma", "\\mu", "\\varphi", "E", "Q", "v", "w", "y", "L"])
    p, q = R.sample(["x", "y", "m", "n", "a", "b", "s", "t"], 2)
    c = R.randint(2, 9)
    shape = pick(["sum", "product", "scaled", "two", "inner", "prime", "case"])
    if shape == "sum":
        return f"{name}({p}+{q})", pick([f"{name}({q}+{p})", f"{name}( {p} + {q} )", f"{name}\\left({p}+{q}\\right)"]), f"{name}({p})+{name}({q})", "distributed"
    if shape == "product":
        return f"{name}({p}{q})", pick([f"{name}({q}{p})", f"{name}({p} \\cdot {q})"]), pick([f"{p}{name}({q})", f"{q}{name}({p})", f"{name}({p}){name}({q})"]), "distributed"
    if shape == "scaled":
        return f"{c}{name}({p})", pick([f"{c}\\cdot {name}({p})", f"{name}({p})\\cdot {c}"]), f"{name}({c}{p})", "moved"
    if shape == "two":
        other = pick(["G", "H", "q", "W"])
        return f"{name}({p}){other}({q})", pick([f"{other}({q}){name}({p})", f"{name}({p})\\cdot {other}({q})"]), f"{name}({q}){other}({p})", "order"
    if shape == "inner":
        return f"{name}({p}^2-1)+{p}", pick([f"{p}+{name}({p}^2-1)", f"{p}+{name}(({p}-1)({p}+1))"]), pick([f"{name}({p}^2+1)+{p}", f"{name}({p}^2-1)-{p}", f"{name}({p}-1)+{p}"]), "argument"
    if shape == "prime":
        return f"{name}'({p})+{q}", f"{q}+{name}'({p})", pick([f"{name}({p})+{q}", f"{name}''({p})+{q}", f"{name}'({q})+{p}"]), "prime"
    if name.startswith("\\"):
        raise Skip
    return f"{name}({p})+{c}", f"{c}+{name}({p})", f"{name.swapcase()}({p})+{c}", "case"


def products_of_letters():
    """Formulas in which the case of a letter is its meaning."""
    gold = pick(["nRT", "PV=nRT", "kT", "mgh", "mg", "qvB", "AaBb", "Aa", "aB", "hf", "IR", "mv", "Gm", "CO", "CO_2", "Co", "HF", "NaCl", "NO", "Mn", "BaCl_2", "abC", "pQ", "rS", "Vt", "sT", "kA"])
    letters = [i for i, c in enumerate(gold) if c.isalpha()]
    at = pick(letters)
    other = pick([gold[:at] + gold[at].swapcase() + gold[at + 1 :], gold.swapcase(), gold.lower(), gold.upper()])
    if other == gold:
        raise Skip
    return gold, pick([f"${gold}$", f" {gold}", f"\\boxed{{{gold}}}", f"\\mathrm{{{gold}}}", f"\\text{{{gold}}}", gold]), other, "case"


def entries(count):
    return [pick([integer(-12, 12), integer(-12, 12), rational(), integer(-5, 5) * sp.sqrt(pick([2, 3, 5]))]) for _ in range(count)]


def item(v):
    v = sp.sympify(v)
    return number(v) if v.is_Rational else tex(v)


def tuples():
    vs = entries(R.randint(2, 4))
    how = pick(["order", "sign", "digit", "bracket", "dropped", "added"])
    ws = list(vs)
    if how == "order":
        R.shuffle(ws)
    elif how == "sign":
        i = R.randrange(len(ws))
        ws[i] = -ws[i]
    elif how == "digit":
        i = R.randrange(len(ws))
        ws[i] = ws[i] + pick([1, -1, 2])
    elif how == "dropped":
        ws.pop()
    elif how == "added":
        ws.append(integer())
    else:
        return f"({','.join(clean(item, v) for v in vs)})", f"({', '.join(map(item, vs))})", f"\\{{{','.join(map(item, vs))}\\}}", how
    if sp.Tuple(*ws) == sp.Tuple(*vs) or len(ws) < 2:
        raise Skip
    gold = f"({', '.join(clean(item, v) for v in vs)})"
    answer = pick(["({})", "\\left({}\\right)", "\\left( {} \\right)", "\\langle {} \\rangle"]).format(",".join(map(item, vs)))
    if len(vs) in (2, 3) and pick([0, 0, 1]):
        answer = f"({','.join('xyz'[: len(vs)])})={answer}" if "langle" not in answer else answer
    return gold, answer, f"({','.join(map(item, ws))})", how


def sets():
    vs = list(sp.FiniteSet(*entries(R.randint(2, 4))))
    if len(vs) < 2:
        raise Skip
    braces = pick([True, False])
    how = pick(["sign", "digit", "dropped", "added", "ordered"])
    ws = list(vs)
    i = R.randrange(len(ws))
    if how == "sign":
        ws[i] = -ws[i]
    elif how == "digit":
        ws[i] += pick([1, -1, 2])
    elif how == "dropped":
        ws.pop(i)
    elif how == "added":
        ws.append(integer())
    if how != "ordered" and sp.FiniteSet(*ws) == sp.FiniteSet(*vs):
        raise Skip
    R.shuffle(ws)
    mixed = list(vs)
    R.shuffle(mixed)
    if braces and pick([0, 0, 1]):
        mixed.append(mixed[0])
    gold = ",".join(clean(item, v) for v in vs)
    answer = ", ".join(map(item, mixed))
    bad = ",".join(map(item, ws))
    if braces:
        return f"\\{{{gold}\\}}", pick([f"\\{{{answer}\\}}", f"\\left\\{{{answer}\\right\\}}"]), f"({bad})" if how == "ordered" else f"\\{{{bad}\\}}", how
    if how == "ordered":
        raise Skip
    words = ", ".join(f"x={item(v)}" for v in mixed)
    return gold, pick([answer, words, answer if len(mixed) > 2 else answer.replace(", ", " \\text{ and } ")]), bad, how


def bound(v):
    return "\\infty" if v == sp.oo else "-\\infty" if v == -sp.oo else item(v)


def interval(s):
    o = "(" if s.left_open else "["
    c = ")" if s.right_open else "]"
    text = f"{o}{bound(s.start)}{pick([',', ', '])}{bound(s.end)}{c}"
    return text if pick([0, 1, 1]) else f"\\left{text[:-1]}\\right{c}"


def inequality(s, name="x"):
    lo, hi = ("<" if s.left_open else pick(["\\le", "\\leq"])), ("<" if s.right_open else pick(["\\le", "\\leq"]))
    if s.start == -sp.oo:
        return pick([f"{name} {hi} {item(s.end)}", f"{item(s.end)} {hi.replace('<', '>').replace('l', 'g', 1)} {name}"])
    if s.end == sp.oo:
        return pick([f"{item(s.start)} {lo} {name}", f"{name} {lo.replace('<', '>').replace('l', 'g', 1)} {item(s.start)}"])
    return f"{item(s.start)} {lo} {name} {hi} {item(s.end)}"


def random_interval():
    p = pick([sp.Integer(R.randint(-12, 8)), sp.Rational(R.randint(-20, 10), R.randint(2, 5)), -sp.oo])
    q = pick([p + R.randint(1, 9), sp.oo]) if p != -sp.oo else sp.Integer(R.randint(-9, 9))
    return sp.Interval(p, q, pick([True, False]), pick([True, False]))


def ends(s, how):
    if how == "end":
        return sp.Interval(s.start, s.end, not s.left_open, s.right_open) if s.start != -sp.oo else sp.Interval(s.start, s.end, s.left_open, not s.right_open)
    if how == "digit":
        return sp.Interval(s.start + 1, s.end + 1, s.left_open, s.right_open) if pick([0, 1]) or s.end == sp.oo else sp.Interval(s.start, s.end + 1, s.left_open, s.right_open)
    if how == "sign":
        return sp.Interval(-s.end, -s.start, s.right_open, s.left_open)
    return sp.Interval(-sp.oo, s.start, True, not s.left_open) if s.start != -sp.oo else sp.Interval(s.end, sp.oo, not s.right_open, True)


def intervals():
    s = random_interval()
    how = pick(["end", "digit", "sign", "direction"])
    o = ends(s, how)
    if o == s or o == sp.EmptySet or not isinstance(o, sp.Interval) or not isinstance(s, sp.Interval):
        raise Skip
    as_relation = pick([True, False])
    gold = clean(inequality if as_relation else interval, s)
    answer = pick([inequality(s), f"x \\in {interval(s)}", interval(s) if not as_relation else inequality(s)])
    return gold, answer, pick([inequality, interval])(o), how


def unions():
    p, q = sorted([sp.Integer(R.randint(-9, 9)), sp.Integer(R.randint(-9, 9))])
    if p == q:
        raise Skip
    lo, ro = pick([True, False]), pick([True, False])
    outer = pick([True, False])
    if outer:
        parts = [sp.Interval(-sp.oo, p, True, lo), sp.Interval(q, sp.oo, ro, True)]
    else:
        parts = [sp.Interval(p, q, lo, ro)]
    u = sp.Union(*parts)

    def joined(word, ps):
        return pick(["{1} {0} {2}", "{1} \\text{{ {0} }} {2}"]).format(word, *ps)

    how = pick(["logic", "end", "digit", "sign", "direction"])
    if outer:
        rel = [clean(inequality, s) for s in parts]
        gold = pick([f"{clean(interval, parts[0])} \\cup {clean(interval, parts[1])}", joined("or", rel)])
        answer = pick([f"{interval(parts[1])}\\cup {interval(parts[0])}", joined("or", [inequality(parts[1]), inequality(parts[0])]), f"x\\in {interval(parts[0])}\\cup {interval(parts[1])}"])
        if how == "logic":
            return gold, answer, joined("and", rel), how
        i = pick([0, 1])
        o = ends(parts[i], how)
        changed = [o if j == i else s for j, s in enumerate(parts)]
        if sp.Union(*changed) == u or not isinstance(o, sp.Interval):
            raise Skip
        return gold, answer, f"{interval(changed[0])}\\cup{interval(changed[1])}", how
    left, rightward = sp.Interval(p, sp.oo, lo, True), sp.Interval(-sp.oo, q, True, ro)
    gold = joined("and", [clean(inequality, left), clean(inequality, rightward)])
    answer = pick([inequality(parts[0]), interval(parts[0]), joined("and", [inequality(rightward), inequality(left)])])
    return gold, answer, joined("or", [inequality(left), inequality(rightward)]), "logic"


def punctured():
    p = sp.Integer(R.randint(-9, 9))
    gold = pick([f"\\mathbb{{R}}\\setminus\\{{{p}\\}}", f"(-\\infty,{p})\\cup({p},\\infty)", f"x\\ne {p}"])
    answer = pick([f"(-\\infty,{p})\\cup({p},\\infty)", f"\\mathbb{{R}} \\setminus \\{{{p}\\}}", f"x \\neq {p}"])
    other = pick([f"(-\\infty,{p}]\\cup({p},\\infty)", f"\\mathbb{{R}}\\setminus\\{{{p + 1}\\}}", f"x = {p}", f"\\{{{p}\\}}", f"x \\neq {p - 1}", "\\mathbb{R}"])
    return gold, answer, other, "domain"


def equations():
    p, q = R.sample([x, y, z, t, a, b], 2)
    e = poly([p, q], 2)
    if len(e.free_symbols) < 2:
        raise Skip
    rest = integer(-9, 9)
    o, how = mutate(e)
    s = pick([2, 3, -1, -2, 5])
    if pick([0, 0, 1]):
        one = integer(-9, 9)
        e = one * p + rest
        gold = f"{q} = {clean(tex, e)}"
        answer = pick([f"{q}={tex(e)}", f"{tex(e)} = {q}", f"{tex(e - q)} = 0", f"{s}{q} = {tex(sp.expand(s * e))}"])
        o, how = mutate(e)
        return gold, answer, pick([f"{q} = {tex(o)}", f"{tex(o)} = {q}"]), how
    # Not the same equation by a factor.
    if sp.expand(sp.expand(o - rest) / sp.expand(e - rest)).is_number or sp.cancel((o - rest) / (e - rest)).is_number:
        raise Skip
    gold = f"{clean(tex, e)} = {rest}"
    answer = pick([f"{tex(e - rest)} = 0", f"{rest} = {tex(e)}", f"{tex(sp.expand(s * e))} = {s * rest}", f"{tex(form(e))} = {rest}"])
    return gold, answer, f"{tex(o)} = {rest}", how


def solutions():
    name = pick(["x", "y", "t", "n", "k", "\\theta", "r", "A"])
    v = pick([integer(), rational(), integer(-5, 5) * sp.sqrt(3)])
    how = pick(["sign", "digit", "letter", "case"])
    gold = f"{name} = {clean(item, v)}"
    answer = pick([item(v), f"{name}={item(v)}", f"{item(v)} = {name}", f"= {item(v)}"])
    if how == "letter":
        return gold, answer, f"{pick(['u', 'w', 'q'])} = {item(v)}", how
    if how == "case":
        if name.startswith("\\"):
            raise Skip
        return gold, answer, f"{name.swapcase()} = {item(v)}", how
    w = -v if how == "sign" else v + pick([1, -1, 3])
    wrong(v, w)
    return gold, answer, pick([f"{name} = {item(w)}", item(w)]), how


def matrix(rows, kind=None):
    kind = kind or pick(["pmatrix", "bmatrix", "pmatrix"])
    return f"\\begin{{{kind}}} " + " \\\\ ".join(" & ".join(item(v) for v in row) for row in rows) + f" \\end{{{kind}}}"


def matrices():
    h, w = pick([(2, 2), (2, 2), (3, 1), (2, 1), (3, 3), (2, 3)])
    m = sp.Matrix(h, w, entries(h * w))
    how = pick(["order", "sign", "digit", "shape", "bars", "scaled"])
    o = m.copy()
    i, j = R.randrange(h), R.randrange(w)
    if how == "order":
        o = m.T if pick([0, 1]) else m[::-1, :]
    elif how == "sign":
        o[i, j] = -o[i, j]
    elif how == "digit":
        o[i, j] += pick([1, -1])
    elif how == "shape":
        o = m.reshape(1, h * w)
    elif how == "scaled":
        o = m * 2
    else:
        if h != w:
            raise Skip
        return clean(matrix, m.tolist()), matrix(m.tolist()), matrix(m.tolist(), "vmatrix"), how
    if o == m:
        raise Skip
    answer = matrix(m.tolist())
    if pick([0, 0, 0, 1]):
        s = R.randint(2, 6)
        answer = f"\\frac{{1}}{{{s}}}" + matrix((m * s).tolist())
    return clean(matrix, m.tolist()), answer, matrix(o.tolist()), how


# By dimension and scale, so that other names of one unit are not taken for other units.
UNITS = {
    "mg": (["milligrams"], ["Mg", "kg", "g", "\\mu g"]),
    "mm": (["millimeters", "millimetres"], ["Mm", "m", "cm", "mm^2"]),
    "m": (["meters", "metres"], ["M", "km", "m^2", "cm", "mi"]),
    "s": (["seconds"], ["S", "ms", "min", "h"]),
    "h": (["hours"], ["H", "min", "s"]),
    "g": (["grams"], ["G", "kg", "mg"]),
    "mL": (["milliliters", "millilitres"], ["ML", "L", "kL"]),
    "L": (["liters", "litres"], ["mL", "ML"]),
    "cm": (["centimeters", "centimetres"], ["Cm", "cm^2", "cm^3", "m", "km", "mm"]),
    "km": (["kilometers", "kilometres"], ["Km^2", "m", "mi", "km^2"]),
    "cm^2": (["square centimeters"], ["cm", "m^2", "cm^3"]),
    "m^2": (["square meters"], ["m", "km^2", "m^3"]),
    "kg": (["kilograms"], ["g", "mg", "lb", "KG^2"]),
    "J": (["joules"], ["j^2", "kJ", "N", "W"]),
    "kJ": (["kilojoules"], ["J", "MJ", "kj/s"]),
    "MJ": (["megajoules"], ["mJ", "kJ", "J"]),
    "W": (["watts"], ["kW", "MW", "J"]),
    "MW": (["megawatts"], ["mW", "kW", "W"]),
    "N": (["newtons"], ["n", "kN", "J"]),
    "m/s": (["meters per second"], ["M/s", "m/S", "km/h", "m/s^2", "s/m"]),
    "m/s^2": (["meters per second squared"], ["m/s", "m^2/s", "km/s^2"]),
    "km/h": (["kilometers per hour"], ["m/s", "mph", "h/km"]),
    "mol": (["moles"], ["mmol", "Mmol", "kmol"]),
    "Hz": (["hertz"], ["kHz", "MHz", "GHz"]),
    "V": (["volts"], ["mV", "kV", "A"]),
    "Mbps": ([], ["MBps", "mbps^2", "kbps", "Gbps"]),
    "GB": (["gigabytes"], ["Gb", "MB", "TB"]),
    "inches": (["in", "inch"], ["feet", "cm", "yards"]),
    "feet": (["ft"], ["inches", "meters", "miles"]),
    "dollars": ([], ["cents", "euros", "pounds"]),
    "degrees": (["^\\circ"], ["radians", "^\\circ\\text{C}", "\\%"]),
    "minutes": (["min"], ["seconds", "hours", "days"]),
}


def units():
    sign = pick(list(UNITS))
    names, others = UNITS[sign]
    v = pick([sp.Integer(R.randint(2, 90)), sp.Rational(R.randint(5, 300), 10), sp.Integer(R.randint(1000, 40000))])

    def as_text(u):
        power = re.fullmatch(r"([A-Za-z]+)\^(\d)", u)
        if u.startswith("^") or u.startswith("\\"):
            return u
        if power and pick([0, 1]):
            return f"\\text{{ {power[1]}}}^{power[2]}"
        return pick([f"\\text{{ {u}}}", f"\\,\\mathrm{{{u}}}", f"\\ \\text{{{u}}}", f"~\\mathrm{{{u}}}", f" \\mbox{{ {u}}}"])

    def bare(u):
        return u if u.startswith("^") or u.startswith("\\") else f" {u}"

    shown = number(v) if v.q == 1 else decimal(v)
    gold = f"{decimal(v)}{as_text(sign)}"
    answer = pick([f"{number(v)}{as_text(sign)}", f"{decimal(v)}{bare(pick([sign] + names))}", f"{decimal(v)}{as_text(pick([sign] + names))}", number(v)])
    how = pick(["unit", "unit", "unit", "value", "sign"])
    if how == "unit":
        return gold, answer, f"{shown}{pick([as_text, as_text, bare])(pick(others))}", how
    w = v + 1 if how == "value" else -v
    return gold, answer, f"{number(w)}{as_text(sign)}", how


MONEY = {"\\$": ["dollars"], "€": ["euros"], "£": ["pounds"]}


def money():
    sign = pick(list(MONEY))
    v = pick([sp.Integer(R.randint(2, 99)), sp.Rational(R.randint(101, 9999), 100), sp.Integer(R.randint(1000, 99999))])
    shown = decimal(v)
    gold = f"{sign}{shown}"
    answer = pick([shown, f"{sign}{shown}", f"{shown} {MONEY[sign][0]}", f"{shown} \\text{{ {MONEY[sign][0]}}}", f"{sign}{commas(int(v))}" if v.q == 1 and v > 999 else shown])
    other = pick([f"{pick([s for s in MONEY if s != sign])}{shown}", f"{shown} cents", f"{sign}{decimal(v + 1)}", f"{sign}{decimal(v * 10)}", f"-{sign}{shown}", f"{sign}{shown} million", f"{sign}{shown}\\text{{ thousand}}", f"{sign}{shown}k"])
    return gold, answer, other, "unit"


def choices():
    letter = pick("ABCDE")
    other = pick([c for c in "ABCDE" if c != letter])
    style = ["{}", "({})", "\\text{{{}}}", "\\text{{({})}}", "\\mathrm{{{}}}", "\\textbf{{{}}}", "({}).", "{}."]
    bad = pick([pick(style).format(other), f"{letter} and {other}", f"not {letter}", f"{letter}{other}", f"{letter} or {other}", f"{letter}, {other}"])
    return pick(style[:4]).format(letter), pick(style + ["\\boxed{{{}}}"]).format(letter), bad, "word"


WORDS = {
    "yes": ["no", "not yes", "yse"],
    "no": ["yes", "on", "not no"],
    "even": ["odd", "not even", "neither"],
    "odd": ["even", "ood"],
    "increasing": ["decreasing", "not increasing", "constant"],
    "convergent": ["divergent", "not convergent", "conditionally convergent"],
    "ellipse": ["circle", "parabola", "hyperbola"],
    "Monday": ["Tuesday", "Sunday", "not Monday"],
    "east": ["west", "seat", "south east"],
    "no solution": ["one solution", "solution", "no solution exists for x<0", "infinitely many solutions"],
    "isosceles": ["equilateral", "scalene", "not isosceles"],
    "true": ["false", "not true", "untrue"],
    "independent": ["dependent", "not independent"],
    "Alice": ["Bob", "Alicia", "not Alice", "Alice and Bob"],
    "right triangle": ["triangle right", "acute triangle", "not a right triangle"],
    "rhombus": ["square", "rectangle"],
    "undefined": ["defined", "0", "\\infty"],
    "Mars": ["Venus", "not Mars"],
    "acute": ["obtuse", "right"],
}


def words():
    word = pick(list(WORDS))
    bad = pick(WORDS[word])
    styles = ["{}", "\\text{{{}}}", "\\textbf{{{}}}", "\\text{{ {} }}", "{}.", "\\mathrm{{{}}}"]
    shown = pick([word, word, word.capitalize(), word.upper()])
    style = pick(styles if " " not in word else [s for s in styles if "mathrm" not in s])
    wrapped = bad if bad.startswith("\\") else pick(styles[:2]).format(bad)
    return pick(styles[:2]).format(word), style.format(shown), wrapped, "word"


MULTIPLIERS = (
    "septillion, octillion, googol, zillion, millions, trillions, billionth, millionth, tenth, ninths, quarters, halves, sixteenths, dozen, score, gross, "
    "Milliarden, Tausend, Dutzend, mille, milliers, millions de, milliards, miles de, millones, mil, mila, milioni, cientos, "
    "ppm, ppb, permille, basis points, bn, mn, k, million, thousand, hundred, squared, cubed, factorial, double, twice, fold, "
    "pairs of socks, percent more, orders of magnitude, or more, or less, at most, exactly not, minus one, plus one, mod 3, base 8"
).split(", ")
NEGATIONS = "wrong, false, incorrect, not, impossible, never, nope, no es, falsch, faux, nicht, isn't, is not the answer, is too small, is wrong, ruled out, excluded, invalid, rejected, unlikely".split(", ")


def multiplied():
    v = sp.Integer(R.randint(2, 99))
    bad = pick(pick([MULTIPLIERS, MULTIPLIERS, NEGATIONS]))
    style = pick(["{} {}", "{} \\text{{ {}}}", "{}\\text{{ {}}}"])
    scaled = pick([("million", 10**6), ("thousand", 1000), ("billion", 10**9), ("hundred", 100), ("dozen", 12)])
    if pick([0, 1]):
        return str(v), pick(["{}", "{}.", "{}.0", "${}$", "\\boxed{{{}}}", "= {}"]).format(v), style.format(v, bad), "multiplier"
    return str(v * scaled[1]), pick([f"{v} {scaled[0]}", f"{v}\\text{{ {scaled[0]}}}", commas(int(v * scaled[1])) if v * scaled[1] > 999 else str(v * scaled[1])]), style.format(v * scaled[1], bad), "multiplier"


def complexes():
    p, q = integer(-12, 12), integer(-12, 12)
    v = p + q * sp.I
    gold = f"{p}{'+' if q > 0 else '-'}{abs(q)}i"
    c, d = integer(-4, 4), integer(-4, 4)
    e = c + d * sp.I
    w = sp.expand(v * e)
    answer = pick([f"{q}i{'+' if p > 0 else '-'}{abs(p)}", gold.replace("+", " + ").replace("-", " - ").strip(), f"{gold.replace('i', '')}\\,i", f"\\frac{{{sp.re(w)}{'+' if sp.im(w) >= 0 else '-'}{abs(sp.im(w))}i}}{{{c}{'+' if d > 0 else '-'}{abs(d)}i}}"])
    o, how = pick([(sp.conjugate(v), "conjugate"), (q + p * sp.I, "order"), (-v, "sign"), (v + 1, "digit"), (v + sp.I, "digit")])
    wrong(v, o)
    return gold, answer, f"{sp.re(o)}{'+' if sp.im(o) >= 0 else '-'}{abs(sp.im(o))}i", how


def plus_minus():
    p, q = integer(-9, 9), integer(1, 9)
    root = pick([str(q), f"\\sqrt{{{pick([2, 3, 5, 7])}}}", f"{q}\\sqrt{{{pick([2, 3, 5])}}}"])
    gold = f"{p} \\pm {root}"
    answer = pick([f"{p}+{root}, {p}-{root}", f"{p}-{root},{p}+{root}", f"{p}\\pm{root}", f"\\{{{p}-{root},{p}+{root}\\}}", f"x = {p} \\pm {root}"])
    other = pick([f"{p}+{root}", f"{p}-{root}", f"{-p} \\pm {root}", f"{p}\\pm 2{root}" if root[0] == "\\" else f"{p + 1}\\pm{root}", f"({p}-{root},{p}+{root})", f"\\pm {root}"])
    return gold, answer, other, "sign"


def moduli():
    m = R.randint(3, 19)
    v = R.randint(0, m - 1)
    style = ["{} \\pmod{{{}}}", "{}\\pmod {}" if m < 10 else "{} \\pmod{{{}}}", "{} \\bmod {}", "{} \\mod {}"]
    gold = style[0].format(v, m)
    answer = pick([style[0].format(v, m), style[1].format(v, m), f"x\\equiv {v} \\pmod{{{m}}}", str(v)])
    other = pick([style[0].format(v + 1, m), style[0].format(v, m + 1), f"x\\equiv {v + 1}\\pmod{{{m}}}", str(v + 1), f"-{v + 1} \\pmod{{{m}}}" if (2 * v + 1) % m else str(v + 2)])
    return gold, answer, other, "digit"


def bases():
    base = R.randint(3, 9)
    digits = "".join(str(R.randint(1, base - 1)) for _ in range(R.randint(2, 5)))
    gold = f"{digits}_{base}"
    other = pick([f"{digits}_{{{base + 1}}}", f"{digits[::-1]}_{base}", f"{int(digits, base) + 0}", f"{digits[:-1]}0_{base}"])
    if other in (gold, digits):
        raise Skip
    return gold, pick([f"{digits}_{{{base}}}", gold, f"{digits}_{{({base})}}", f"{digits}_{{\\text{{{base}}}}}"]), other, "base"


def piecewise():
    c, d = sorted([int(integer(-9, 9)), int(integer(-9, 9))])
    e, f = poly([x], 2), poly([x], 1)
    gold = f"\\begin{{cases}} {tex(e)} & x < {c} \\\\ {tex(f)} & x \\ge {c} \\end{{cases}}"
    answer = pick(
        [
            f"\\begin{{cases}} {tex(e)}, & x < {c} \\\\ {tex(f)}, & x \\geq {c} \\end{{cases}}",
            f"\\begin{{cases}} {tex(e)} & \\text{{if }} x < {c} \\\\ {tex(f)} & \\text{{if }} x \\ge {c} \\end{{cases}}",
        ]
    )
    other = pick([gold.replace("<", "\\le", 1).replace("\\ge ", "> ", 1), gold.replace(f"x < {c}", f"x < {c + 1}"), f"\\begin{{cases}} {tex(f)} & x < {c} \\\\ {tex(e)} & x \\ge {c} \\end{{cases}}"])
    if other == gold or same(e, f):
        raise Skip
    return gold, answer, other, "domain"


KINDS = {
    numbers: 14, closed: 12, polynomials: 12, fractions_of_letters: 7, functions: 10, identities: 1, letter_functions: 6, products_of_letters: 4,
    tuples: 5, sets: 5, intervals: 6, unions: 4, punctured: 1.5, equations: 5, solutions: 4, matrices: 4, units: 9, money: 3, choices: 3, words: 4,
    multiplied: 6, complexes: 3, plus_minus: 2, moduli: 1, bases: 1, piecewise: 1,
}  # fmt: skip


def main():
    half = int(sys.argv[1]) // 2
    seen = set()
    made = {True: 0, False: 0}
    while min(made.values()) < half:
        kind = R.choices(list(KINDS), list(KINDS.values()))[0]
        try:
            gold, good, bad, how = kind()
        except Skip:
            continue
        for answer, equal in ((dress(good), True), (dress(bad), False)):
            key = (gold, answer)
            if made[equal] >= half or key in seen or (not equal and answer.strip("$ ") == gold):
                continue
            seen.add(key)
            made[equal] += 1
            print(json.dumps({"kind": kind.__name__.replace("_", " "), "gold": gold, "answer": answer, "equal": equal, "change": None if equal else how}))


main()
