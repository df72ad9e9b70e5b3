/** The labelled pairs of `pairs.txt`. */
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

export interface Pair {
  readonly kind: string
  readonly gold: string
  readonly answer: string
  readonly equal: boolean
}

/** Every pair, in the order of the file. Throws for a line that is none. */
export function labelledPairs(): readonly Pair[] {
  const text = readFileSync(fileURLToPath(new URL('pairs.txt', import.meta.url)), 'utf8')
  let kind = ''
  return text.split('\n').flatMap((line) => {
    if (line.startsWith('## ')) kind = line.slice(3)
    if (line.trim() === '' || line.startsWith('#')) return []
    const [, gold, sign, answers] = /^(.*?) (==|=\/=) (.*)$/.exec(line) ?? []
    if (gold === undefined || answers === undefined) throw new Error(`pairs.txt: ${line}`)
    return answers.split(';;').map((answer) => ({ kind, gold, answer: answer.trim(), equal: sign === '==' }))
  })
}

/** Every sixth of the 3,000 pairs that `generate.py` makes, with labels that sympy has checked. */
export function generatedPairs(): readonly Pair[] {
  const text = readFileSync(fileURLToPath(new URL('generated.jsonl', import.meta.url)), 'utf8')
  return text.split('\n').flatMap((line) => (line === '' ? [] : [JSON.parse(line) as Pair]))
}
