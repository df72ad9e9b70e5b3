/**
 * Options of a bench. Each has a size for a measurement and one for `--smoke`, which goes the whole way with the least
 * amount: it shows that the bench still runs, and its figures say nothing.
 */
import { parseArgs } from 'node:util'
import { nearest } from '../src/config/nearest.ts'

type Value = string | number | boolean
type Sizes = Readonly<Record<string, Value>>
type Widened<T extends Sizes> = {
  readonly [K in keyof T]: T[K] extends number ? number : T[K] extends string ? string : boolean
}

/** Reads the options of this process: `toolMs: 150` is `--tool-ms 150`, `quick: false` is `--quick`. A slip ends the process. */
export function readFlags<T extends Sizes>(
  full: T,
  smoke: Partial<Widened<T>>,
): Widened<T> & { readonly smoke: boolean } {
  const [, bench = '', ...given] = process.argv
  const known = { ...full, smoke: false }
  const options = Object.fromEntries(
    Object.entries(known).map(([name, value]) => [
      flagOf(name),
      { type: typeof value === 'boolean' ? ('boolean' as const) : ('string' as const) },
    ]),
  )
  const { values, tokens } = parseArgs({ args: given, options, strict: false, allowPositionals: true, tokens: true })
  const command = `node ${bench.slice(bench.lastIndexOf('bench/'))}`
  for (const token of tokens) {
    if (token.kind === 'positional') misuse(command, `takes no ${JSON.stringify(token.value)}`, listed(options))
    if (token.kind !== 'option') continue
    const option = options[token.name]
    if (option === undefined) {
      const near = nearest(token.name, Object.keys(options))
      misuse(command, `has no option ${token.rawName}`, near === null ? listed(options) : `use --${near}.`)
    }
    if ((option?.type === 'boolean') !== (token.value === undefined)) {
      const wants = option?.type === 'boolean' ? 'takes no value' : 'needs a value'
      misuse(
        command,
        `got ${token.rawName}, which ${wants}`,
        `write --${token.name}${wants === 'needs a value' ? ' VALUE' : ''}.`,
      )
    }
  }
  const sizes: Sizes = values['smoke'] === true ? { ...known, ...smoke } : known
  const read = Object.entries(sizes).map(([name, value]): readonly [string, Value] => {
    const told = values[flagOf(name)]
    if (told === undefined || typeof value === 'boolean') return [name, told === true || (told === undefined && value)]
    if (typeof value === 'string') return [name, String(told)]
    const number = Number(told)
    if (!(number > 0)) misuse(command, `got --${flagOf(name)} ${String(told)}`, 'give a number above 0.')
    return [name, number]
  })
  return Object.fromEntries(read) as unknown as Widened<T> & { readonly smoke: boolean }
}

function flagOf(name: string): string {
  return name.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)
}

function listed(options: Readonly<Record<string, unknown>>): string {
  return `the options are ${Object.keys(options)
    .map((name) => `--${name}`)
    .join(', ')}.`
}

function misuse(command: string, what: string, fix: string): never {
  console.error(`USAGE: ${command} ${what}. Fix: ${fix}`)
  process.exit(2)
}
