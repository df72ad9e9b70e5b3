import {
  type Found,
  type Metric,
  isRecord,
  NotComparable,
  one,
  pythonPattern,
  ruleOf,
  rulesOf,
  textOf,
  textsOf,
} from './contract.ts'
import { sequenceRatio } from './similarity.ts'

/** As Python's `str.splitlines`, for the line ends that files have. */
const linesOf = (text: string): readonly string[] => text.replace(/\r\n?/g, '\n').replace(/\n$/, '').split('\n')

/** Names and semantics: desktop_env/evaluators/metrics/general.py, table.py and vscode.py. */
export const fileMetrics: Readonly<Record<string, Metric>> = {
  compare_text_file: ({ result, expected, options }) => {
    const [actual, gold] = [textOf(result), textOf(expected)]
    if (actual === null || gold === null) return 0
    const plain = (text: string) => {
      const blanks =
        options['ignore_blanks'] === true
          ? text
              .replaceAll(/[\t\n]/g, ' ')
              .trim()
              .replaceAll(/\s+/g, ' ')
          : text
      return options['ignore_case'] === true ? blanks.toLowerCase() : blanks
    }
    return one(plain(newlines(actual)) === plain(newlines(gold)))
  },
  diff_text_file: ({ result, expected }) => {
    const [actual, gold] = [textOf(result), textOf(expected)]
    return actual === null || gold === null ? 0 : sequenceRatio(linesOf(actual), linesOf(gold))
  },
  compare_csv: ({ result, expected, options }) => {
    const actual = textOf(result)
    if (actual === null) return 0
    const plain = (text: string) =>
      linesOf(text.replace(/^\uFEFF/, '')).map((line) => {
        const stripped = options['strict'] === false ? line.trim() : line
        return options['ignore_case'] === true ? stripped.toLowerCase() : stripped
      })
    const golds: readonly Found[] = expected?.kind === 'files' ? expected.files : [expected]
    return one(golds.some((gold) => plain(textOf(gold) ?? '').join('\n') === plain(actual).join('\n')))
  },
  check_csv: ({ result, expected }) => {
    const text = textOf(result)
    if (text === null) return 0
    const records = recordsOf(text)
    const { expect, unexpect } = rulesOf(expected)
    const is = (wanted: Readonly<Record<string, unknown>>) =>
      records.some((record) => Object.entries(wanted).every(([key, value]) => record[key] === value))
    return one(patternsOf(expect).every(is) && !patternsOf(unexpect).some(is))
  },
  check_list: ({ result, expected }) => {
    const text = textOf(result)
    if (text === null) return 0
    const { expect, unexpect } = rulesOf(expected)
    const lines = text.match(/[^\n]*\n|[^\n]+$/g) ?? []
    const has = (pattern: string) => lines.some((line) => pythonPattern(pattern).test(line))
    return one(textsOf(expect).every(has) && !textsOf(unexpect).some(has))
  },
  file_contains: ({ result, expected }) => {
    const text = textOf(result)
    return text === null ? 0 : one(textsOf(ruleOf(rulesOf(expected), 'expected')).every((part) => text.includes(part)))
  },
  check_line_number: ({ result, expected }) => {
    const text = textOf(result)
    if (text === null) return 0
    const count = linesOf(text).filter((line) => /([01]\d|2[0-3]):[0-5]\d:([0-5]\d|60)/.test(line)).length
    return one(count === Number(ruleOf(rulesOf(expected), 'expected')))
  },
  compare_terminal_and_txt: ({ result, expected }) => {
    const [text, terminal] = [textOf(result), textOf(expected)]
    return one(text !== null && terminal !== null && text !== '' && text === terminal)
  },
  compare_python_pure_text: ({ result, expected }) => {
    const [code, gold] = [textOf(result), textOf(expected)]
    return code === null || gold === null ? 0 : one(pythonText(code) === pythonText(gold))
  },
  compare_result_files: ({ result, expected }) => {
    const [actual, gold] = [textOf(result)?.trim(), textOf(expected)?.trim()]
    if (actual === undefined || gold === undefined) return 0
    const [left, right] = [Number(actual), Number(gold)]
    if (gold === '' || Number.isNaN(right)) return one(actual === gold)
    return one(actual.includes(gold) || (actual !== '' && Math.abs(left - right) < 1e-4))
  },
  check_config_status: ({ result, expected }) => {
    const text = textOf(result)
    const rules = rulesOf(expected)
    const key = textsOf(ruleOf(rules, 'key'))
    if (text === null) return 0
    return one(
      linesOf(text)
        .filter((line) => !line.startsWith('#') && line.trim() !== '')
        .map((line) => line.trim().replace(/^\(+/, '').replace(/\)+$/, '').split(/\s+/))
        .some((items) => key.every((word, at) => items[at] === word) && items.at(-1) === rules['value']),
    )
  },
}

function newlines(text: string): string {
  return text.replaceAll(/\r\n?/g, '\n')
}

/** Without a leading `#!` or `coding` line, empty lines and blanks at line ends; tabs are four wide. */
function pythonText(text: string): string {
  const lines = [...linesOf(text)]
  for (let at = 0; at < 3 && /^(?:#!|# -\*- coding:|# coding[:=])/.test(lines[0]?.trim() ?? ''); at += 1) lines.shift()
  return lines
    .filter((line) => line.trim() !== '')
    .map((line) => expandTabs(line).trimEnd())
    .join('\n')
}

function expandTabs(line: string): string {
  let out = ''
  for (const sign of line) out += sign === '\t' ? ' '.repeat(4 - (out.length % 4)) : sign
  return out
}

function patternsOf(value: unknown): readonly Readonly<Record<string, unknown>>[] {
  const list: readonly unknown[] = Array.isArray(value) ? value : []
  if (list.every(isRecord)) return list
  throw new NotComparable('a list of records was expected')
}

/** Rows of comma-separated values (RFC 4180) by the names of the first, as Python's `csv.DictReader` gives them. */
function recordsOf(text: string): readonly Readonly<Record<string, string>>[] {
  const rows: string[][] = []
  let row: string[] = []
  for (const [, quoted, plain = '', end] of newlines(text).matchAll(/(?:"((?:[^"]|"")*)"|([^,\n"]*))(,|\n|$)/g)) {
    row.push(quoted === undefined ? plain : quoted.replaceAll('""', '"'))
    if (end === ',') continue
    if (row.some((cell) => cell !== '')) rows.push(row)
    row = []
  }
  const [names = [], ...rest] = rows
  return rest.map((cells) => Object.fromEntries(names.map((name, at) => [name, cells[at] ?? ''])))
}
