import { isDeepStrictEqual } from 'node:util'
import {
  type Compared,
  type Metric,
  NotComparable,
  one,
  ruleOf,
  rulesOf,
  sameSet,
  textOf,
  textsOf,
  valueOf,
} from './contract.ts'
import { indelRatio } from './similarity.ts'

const expectedOf = ({ expected }: Compared) => ruleOf(rulesOf(expected), 'expected')

/** Whether Python's `part in whole` holds: a part of a text, an element of a list, a key of a dictionary. */
function within(part: unknown, whole: unknown): boolean {
  if (typeof whole === 'string') return typeof part === 'string' && whole.includes(part)
  if (Array.isArray(whole)) return whole.some((element) => isDeepStrictEqual(element, part))
  return typeof whole === 'object' && whole !== null && typeof part === 'string' && Object.hasOwn(whole, part)
}

function literal(value: unknown): string {
  if (typeof value === 'boolean') return value ? 'True' : 'False'
  if (value === null || value === undefined) return 'None'
  return typeof value === 'string' ? value : JSON.stringify(value)
}

/** Names and semantics: desktop_env/evaluators/metrics/general.py and basic_os.py. */
export const stringMetrics: Readonly<Record<string, Metric>> = {
  exact_match: (given) => one(isDeepStrictEqual(valueOf(given.result), expectedOf(given))),
  match_in_list: (given) => one(within(valueOf(given.result), expectedOf(given))),
  is_in_list: (given) => one(within(expectedOf(given), valueOf(given.result))),
  fuzzy_match: (given) => {
    const [result, expected] = [textOf(given.result), expectedOf(given)]
    return result === null || typeof expected !== 'string' ? 0 : indelRatio(result, expected)
  },
  literal_match: ({ result, expected, options }) => {
    const lower = (text: string) => (options['ignore_case'] === true ? text.toLowerCase() : text)
    const [left, right] = [valueOf(result), valueOf(expected)]
    if ((options['type'] ?? 'str') === 'str') return one(lower(literal(left)) === lower(literal(right)))
    if (options['type'] !== 'list') throw new NotComparable(`literal_match knows no type ${String(options['type'])}`)
    if (!Array.isArray(left) || !Array.isArray(right)) return 0
    return one(isDeepStrictEqual(left.map(literal).map(lower), right.map(literal).map(lower)))
  },
  check_include_exclude: ({ result, expected }) => {
    const text = textOf(result)
    const { include, exclude } = rulesOf(expected)
    if (text === null) return 0
    const has = (part: string) => text.includes(part)
    return one(textsOf(include).every(has) && !textsOf(exclude).some(has))
  },
  // Its arguments stand the other way round there.
  is_in_vm_clickboard: ({ result, expected }) => {
    const text = textOf(expected) ?? ''
    return one(textsOf(ruleOf(rulesOf(result), 'expected')).every((part) => text.includes(part)))
  },
  is_utc_0: ({ result }) => one((textOf(result) ?? '').split('\n')[3]?.endsWith('+0000)') ?? false),
  check_text_enlarged: ({ result }) => one(Number.parseFloat(textOf(result) ?? '') > 1),
  check_gnome_favorite_apps: (given) => {
    const found = Array.from((textOf(given.result) ?? '').matchAll(/'([^']*)'|"([^"]*)"/g), ([, a, b]) => a ?? b)
    const wanted = textsOf(expectedOf(given))
    return one(found.length === wanted.length && sameSet(found, wanted))
  },
  check_moved_jpgs: (given) => {
    const listed = valueOf(given.result)
    const children: unknown =
      typeof listed === 'object' && listed !== null && 'children' in listed ? listed.children : []
    const names = (Array.isArray(children) ? children : []).map((node: unknown) =>
      typeof node === 'object' && node !== null && 'name' in node ? node.name : null,
    )
    const wanted = textsOf(expectedOf(given))
    return one(names.length === wanted.length && wanted.every((name) => names.includes(name)))
  },
  is_extension_installed: ({ result, expected }) => {
    const rules = rulesOf(expected)
    const has = within(ruleOf(rules, 'expected'), valueOf(result))
    if (rules['type'] === 'contain') return one(has)
    if (rules['type'] === 'not_contain') return one(!has)
    throw new NotComparable(`is_extension_installed knows no type ${String(rules['type'])}`)
  },
}
