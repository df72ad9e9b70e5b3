import { isDeepStrictEqual } from 'node:util'
import {
  type Metric,
  isRecord,
  jsonIn,
  NotComparable,
  one,
  pythonPattern,
  ruleOf,
  rulesOf,
  sameSet,
  textOf,
  textsOf,
  valueOf,
} from './contract.ts'

/** Names and semantics: desktop_env/evaluators/metrics/general.py, vscode.py and utils.py (`_match_value_to_rule`). */
export const jsonMetrics: Readonly<Record<string, Metric>> = {
  check_json: ({ result, expected, options }) => {
    if (options['is_yaml'] === true) throw new NotComparable('check_json reads JSON only')
    const data = jsonIn(textOf(result))
    if (data === undefined) return 0
    const rules = rulesOf(expected)
    const holds = (rule: Rule) => {
      const found = below(data, rule.key)
      return found !== undefined && follows(found, rule)
    }
    return one(listOf(rules['expect']).every(holds) && !listOf(rules['unexpect']).some(holds))
  },
  check_direct_json_object: ({ result, expected }) => {
    const said = valueOf(result)
    // There, every ' of a text becomes a " before it is read.
    const found = typeof said === 'string' ? jsonIn(said.trim().replaceAll("'", '"')) : said
    const rules = rulesOf(expected)
    const wanted = ruleOf(rules, 'expected')
    if (!isRecord(found)) return 0
    if (!isRecord(wanted)) throw new NotComparable('expected is no object')
    if (Object.values(wanted).includes('__EVALUATION_FAILED__'))
      throw new NotComparable('the expected value could not be found out')
    const pairs = Object.entries(wanted)
    if (rules['expect_in_result'] === true) return one(pairs.every(([key, value]) => isIn(value, found[key])))
    if (wanted['ignore_list_order'] === true) {
      // There, the word itself is compared as a list too, so that such a rule never holds unless it is the only key.
      return one(pairs.every(([key, value]) => isDeepStrictEqual(sorted(value), sorted(found[key]))))
    }
    return one(pairs.every(([key, value]) => isDeepStrictEqual(value, found[key])))
  },
  is_included_all_json_objects: ({ result, expected }) => {
    const [gold, found] = [jsonIn(textOf(result)), jsonIn(textOf(expected))]
    return one(
      isRecord(gold) &&
        isRecord(found) &&
        Object.entries(gold).every(([key, value]) => isDeepStrictEqual(found[key], value)),
    )
  },
  check_json_settings: ({ result, expected }) => {
    const [data, wanted] = [jsonIn(textOf(result)), ruleOf(rulesOf(expected), 'expected')]
    if (!isRecord(wanted)) throw new NotComparable('expected is no object')
    if (!isRecord(data)) return 0
    return one(
      Object.entries(wanted).every(([key, value]) => Object.hasOwn(data, key) && isDeepStrictEqual(data[key], value)),
    )
  },
  check_json_keybindings: ({ result, expected }) => {
    const text = textOf(result) ?? ''
    const wanted = ruleOf(rulesOf(expected), 'expected')
    // The editor puts a comment before the list.
    const found = [text, text.slice(text.indexOf('\n') + 1)].map(jsonIn).find((data) => Array.isArray(data))
    return one(Array.isArray(found) && found.some((binding) => isDeepStrictEqual(binding, wanted)))
  },
  compare_config: ({ result, expected, options }) => {
    const [text, wanted] = [textOf(result), rulesOf(expected)['expected']]
    if (text === null || typeof wanted !== 'string' || wanted === '') return 0
    const [left, right] = [jsonIn(wanted), jsonIn(text)]
    const both = left !== undefined && right !== undefined
    if (options['containment_ok'] === false) return one(text === wanted || (both && isDeepStrictEqual(left, right)))
    return one(both ? isPart(left, right) : text.includes(wanted.trim()))
  },
}

interface Rule {
  readonly key: readonly (string | number)[]
  readonly method: string
  readonly ref: unknown
}

function listOf(value: unknown): readonly Rule[] {
  const list: readonly unknown[] = Array.isArray(value) ? value : []
  return list.map((rule) => {
    if (!isRecord(rule) || !Array.isArray(rule['key']) || typeof rule['method'] !== 'string') {
      throw new NotComparable('a rule needs key, method and ref')
    }
    return { key: rule['key'], method: rule['method'], ref: rule['ref'] }
  })
}

/** Undefined: there is no such member. */
function below(data: unknown, path: Rule['key']): unknown {
  let value = data
  for (const key of path) {
    if (Array.isArray(value) && typeof key === 'number') value = value.at(key)
    else if (isRecord(value) && Object.hasOwn(value, key)) value = value[key]
    else return undefined
  }
  return value
}

const orders: Readonly<Record<string, (a: number | string, b: number | string) => boolean>> = {
  le: (a, b) => a <= b,
  lt: (a, b) => a < b,
  ge: (a, b) => a >= b,
  gt: (a, b) => a > b,
  te: (a, b) => a <= b,
}

/** Exported for the tests: one value against one rule. */
export function follows(value: unknown, { method, ref }: Pick<Rule, 'method' | 'ref'>): boolean {
  if (method === 'eq') return isDeepStrictEqual(value, ref)
  if (method === 'ne') return !isDeepStrictEqual(value, ref)
  if (method.startsWith('range.')) {
    const [least, most]: readonly unknown[] = Array.isArray(ref) ? ref : []
    const [left, right] = [`l${method[6] ?? ''}`, `l${method[7] ?? ''}`]
    return ordered(left, least, value) && ordered(right, value, most)
  }
  if (method in orders) return ordered(method, value, ref)
  if (method.startsWith('approx:')) {
    const number = typeof value === 'string' && value.trim() === '' ? Number.NaN : Number(value)
    return typeof ref === 'number' && Math.abs(number - ref) <= Number(method.slice('approx:'.length))
  }
  if (method === 'str_list_eq' || method === 'str_set_eq') {
    if (typeof value !== 'string') return false
    const parts = value.replaceAll(/^["']+|["']+$/g, '').split(',')
    const wanted = textsOf(ref)
    return method === 'str_list_eq' ? isDeepStrictEqual(parts, [...wanted]) : sameSet(parts, wanted)
  }
  if (method.startsWith('re')) {
    const known: Readonly<Record<string, string>> = {
      I: 'i',
      IGNORECASE: 'i',
      M: 'm',
      MULTILINE: 'm',
      S: 's',
      DOTALL: 's',
    }
    const flags = method
      .split('.')
      .slice(1)
      .map((flag) => known[flag] ?? '')
    return typeof value === 'string' && typeof ref === 'string' && pythonPattern(ref, flags.join('')).test(value)
  }
  throw new NotComparable(`there is no method ${method}`)
}

function ordered(name: string, a: unknown, b: unknown): boolean {
  const order = orders[name]
  if (order === undefined) throw new NotComparable(`there is no order ${name}`)
  if (typeof a === 'number' && typeof b === 'number') return order(a, b)
  return typeof a === 'string' && typeof b === 'string' && order(a, b)
}

function isIn(wanted: unknown, found: unknown): boolean {
  if (typeof wanted === 'string') return typeof found === 'string' && found.includes(wanted)
  if (!Array.isArray(wanted)) return false
  const held: readonly unknown[] = Array.isArray(found) ? found : [found]
  return wanted.some((value: unknown) => held.some((other) => isDeepStrictEqual(other, value)))
}

function sorted(value: unknown): unknown {
  return Array.isArray(value)
    ? value.map((one: unknown) => JSON.stringify(one)).toSorted((a, b) => (a < b ? -1 : 1))
    : value
}

/** Whether all members of an object are in another, at any depth; what is no object must be equal. */
function isPart(part: unknown, whole: unknown): boolean {
  if (!isRecord(part)) return isDeepStrictEqual(part, whole)
  return (
    isRecord(whole) &&
    Object.entries(part).every(([key, value]) => Object.hasOwn(whole, key) && isPart(value, whole[key]))
  )
}
