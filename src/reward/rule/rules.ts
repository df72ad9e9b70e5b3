import type { JsonGoldOptions } from './json.ts'
import type { Tolerance } from './numeric.ts'
import type { RegexOptions } from './regex.ts'
import { beginMathVerify } from './math-verify/process.ts'
import { type Normalisation, quote, type Rule, tooLong, verdictOf } from './rule.ts'
import type { SetOptions } from './set.ts'
import type { CompareOptions, Comparison, ResultTable, StateOptions } from './sql/index.ts'
import { type ChangedDatabase, textRules } from './text-rules.ts'
import { RulePool } from './thread/pool.ts'

const pool = new RulePool()
let made = 0

/** Longest answer that any rule compares, and longest gold, in UTF-16 units. */
const longest = 1_000_000

/** A rule that runs in a thread. Throws at once what the rule throws for its arguments. */
function inThread<Name extends keyof typeof textRules>(
  name: Name,
  ...args: Parameters<(typeof textRules)[Name]>
): Rule {
  const make = textRules[name] as (...given: typeof args) => unknown
  make(...args)
  const gold = [args[0]].flat().find((one) => typeof one === 'string' && one.length > longest)
  if (typeof gold === 'string')
    throw new RangeError(`The gold ${quote(gold)} has ${gold.length} characters; at most ${longest} are compared.`)
  const rule = { id: (made += 1), name, args: structuredClone(args) }
  return async (answer) => (answer.length > longest ? tooLong(answer, longest) : pool.run({ rule, answer }))
}

/**
 * 1 when the answer equals one of the golds after normalisation (default: trimmed, NFC).
 *
 * @example
 * await exact(['Paris', 'Lutetia'])('Paris') // { value: 1, why: 'equals "Paris"' }
 */
export function exact(golds: string | readonly string[], steps?: Normalisation): Rule {
  return inThread('exact', golds, steps)
}

/**
 * 1 when the answer is one number within tolerance of gold, by their digits: `9007199254740992.0` is not `9007199254740993`,
 * and 1.1 is 0.1 from 1. A fraction that a double prints as is also met by the same double (0.1 by `0.10000000000000001`).
 *
 * @throws RangeError for a gold that is no number, or a JavaScript number too large to keep its digits: give it as text.
 */
export function numeric(gold: number | string, tolerance?: Tolerance): Rule {
  return inThread('numeric', gold, tolerance)
}

/**
 * 1 when the pattern matches the answer. `whole`: it must match all of the answer but white space at its ends, also with
 * the flag `m`. An answer longer than `maxLength` (default 100,000 UTF-16 units) does not match. The pattern is the task author's. One that is
 * too slow for an answer, as with nested quantifiers, ends at the deadline: the rule then throws `RULE_FAILED`.
 */
export function regex(pattern: RegExp, o?: RegexOptions): Rule {
  return inThread('regex', pattern, o)
}

/**
 * Compares the answer's items with gold as sets. F1 = 2PR/(P+R) over distinct items, so repeating a right item gains
 * nothing and listing everything costs precision. Two empty sets are equal.
 */
export function set(golds: readonly string[], o: SetOptions): Rule {
  return inThread('set', golds, o)
}

/**
 * 1 when the answer is JSON and means the same as gold: key order, white space and the spelling of a number do not count, array order does.
 * Numbers are compared by their digits, so 9007199254740993 is not 9007199254740992. An answer with a key twice in an object does not match.
 *
 * @throws RangeError for a gold that is no JSON, and for a number in it too large to keep its digits: give a bigint, or JSON text with
 * `{ text: true }`.
 */
export function jsonEqual(gold: unknown, o?: JsonGoldOptions): Rule {
  return inThread('jsonEqual', gold, o)
}

/**
 * 1 when the answer is JSON that a JSON schema allows (draft 2020-12, `format` included). Numbers are compared by their digits, so 0.3 is
 * a multiple of 0.1.
 *
 * @throws RangeError for a schema that is invalid, or has a keyword or a format that would have no effect: it is named.
 * @example
 * const rule = jsonSchema({ type: 'object', required: ['a'] })
 */
export function jsonSchema(schema: Readonly<Record<string, unknown>>): Rule {
  return inThread('jsonSchema', schema)
}

/**
 * 1 when an answer means what gold means. It is compared by value only as far as the grammar understands both whole, LaTeX or
 * plain: numbers, closed forms in roots, π and e (to 90 of 110 digits), rational functions over letters and functions with
 * exact coefficients, tuples, sets and lists, intervals, unions and inequalities, matrices, cases, equations up to a factor,
 * residues, and units from a table. Anything else equals the same text only; words of a language without regard to case.
 * Of an answer with `\boxed{…}` the last box counts.
 *
 * A unit may be left off, another unit is another answer; `50\%` is 0.5, and 50 if gold asks for percent; `25_8` is not
 * 25. A rounded decimal is not the fraction or root that it was rounded from, unless it is all that a double holds. No identity
 * across functions is assumed: `\sin^2 x + \cos^2 x` is not 1, `\sqrt{x^2}` is not x. Common factors cancel, `x/x` is 1.
 *
 * @throws RangeError for a gold that is empty, or longer than 1,000 UTF-16 units.
 * @example
 * const rule = math('\\frac{1}{2}')
 * const { value } = await rule('\\boxed{0.5}') // 1
 */
export function math(gold: string): Rule {
  return inThread('math', gold)
}

const pythons = new Map<string, RulePool>()

/**
 * 1 when math-verify 0.9.0 takes the answer for the gold, for numbers that are comparable with those of others who use it. It takes more
 * wrong answers for right than {@link math} does. A gold without `\\boxed{…}` is put into one; the answer is read as math-verify reads
 * it, so LaTeX counts in a box or between dollar signs only.
 *
 * It runs in processes of Python, which start at the first answer and are used again. An answer that takes longer than
 * 10 seconds, or for which math-verify raises, has no value.
 *
 * @param gold - The right answer.
 * @param o - `python`: a Python that has math-verify; default `python3` of the `PATH`.
 * @returns A rule that throws `RULE_FAILED` if it has no value; if the package is missing, the error says what to run.
 * @example
 * const rule = mathVerify('\\frac{1}{2}')
 * const { value } = await rule('So it is $0.5$.') // 1
 */
export function mathVerify(gold: string, o: { readonly python?: string } = {}): Rule {
  const { python = 'python3' } = o
  const known = pythons.get(python) ?? new RulePool({ begin: beginMathVerify(python) })
  pythons.set(python, known)
  if (gold.trim() === '') throw new RangeError('The gold is empty.')
  const rule = { id: (made += 1), name: 'mathVerify', args: [gold] } as const
  return async (answer) => {
    if (answer.length > longest) return tooLong(answer, longest)
    const { value } = await known.run({ rule, answer })
    return verdictOf(value === 1, `math-verify: ${quote(answer)} ${value === 1 ? 'is' : 'is not'} ${quote(gold)}`)
  }
}

/** 1 when the answer equals a gold after `normaliseAnswer`: `em` of SQuAD, Search-R1 and most that followed. */
export function answerMatch(golds: readonly string[]): Rule {
  return inThread('answerMatch', golds)
}

/**
 * 1 when a gold is a part of the answer, both normalised (`subem_check` of Search-R1). A longer answer can only gain:
 * good for reading evidence, easily gamed as a reward. A gold that is only an article must be the whole answer.
 */
export function answerContains(golds: readonly string[]): Rule {
  return inThread('answerContains', golds)
}

/**
 * The best F1 over the golds: words of the answer and of the gold, normalised, counted with repetition (`f1_score` of the
 * SQuAD script). `yes`, `no` and `noanswer`, as answer or as gold, meet themselves only, as in HotpotQA's
 * (`hotpot_evaluate_v1.py`): "yes no" is worth nothing.
 */
export function answerF1(golds: readonly string[]): Rule {
  return inThread('answerF1', golds)
}

/**
 * Compares a result with gold's, in a thread.
 *
 * @throws PaddockError `RULE_FAILED` where it takes longer than 10 seconds.
 */
export async function compareTables(gold: ResultTable, answer: ResultTable, o: CompareOptions): Promise<Comparison> {
  const { value, why } = await pool.run({ rule: { id: (made += 1), name: 'tables', args: [gold, o] }, answer })
  return { equal: value === 1, why }
}

/** Compares what databases hold after two scripts, and what probes did on them, in a thread. */
export async function compareDatabases(
  gold: ChangedDatabase,
  answer: ChangedDatabase,
  o: StateOptions,
): Promise<Comparison> {
  const { value, why } = await pool.run({ rule: { id: (made += 1), name: 'databases', args: [gold, o] }, answer })
  return { equal: value === 1, why }
}
