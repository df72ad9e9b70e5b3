import { byteToUnicode } from '../src/tokenizer/byte-level.ts'

interface Word {
  symbols: string[]
  readonly count: number
}

/** Separates the two halves of a pair key: never part of the byte alphabet. */
const SEPARATOR = ' '

/**
 * Byte-level BPE training (Sennrich et al. 2016, over bytes as in GPT-2): cut the texts with `pattern`, then join the
 * most frequent neighbouring pair `count` times. Ties go to the pair that sorts first, so that the result does not
 * depend on the order of a hash table. Returns the merges in rank order; fewer when no pair repeats any more.
 */
export function trainMerges(texts: readonly string[], pattern: RegExp, count: number): [string, string][] {
  const words = countWords(texts, pattern)
  const pairCounts = new Map<string, number>()
  const pairWords = new Map<string, Set<number>>()
  const change = (pair: string, by: number, word: number): void => {
    pairCounts.set(pair, (pairCounts.get(pair) ?? 0) + by)
    if (by > 0) {
      const holders = pairWords.get(pair)
      if (holders === undefined) pairWords.set(pair, new Set([word]))
      else holders.add(word)
    }
  }
  for (const [index, word] of words.entries()) for (const pair of pairsOf(word)) change(pair, word.count, index)

  const merges: [string, string][] = []
  while (merges.length < count) {
    const best = mostFrequent(pairCounts)
    if (best === undefined) break
    const [left = '', right = ''] = best.split(SEPARATOR)
    merges.push([left, right])
    for (const index of pairWords.get(best) ?? []) {
      const word = words[index]
      if (word === undefined) continue
      for (const pair of pairsOf(word)) change(pair, -word.count, index)
      word.symbols = joinPair(word.symbols, left, right)
      for (const pair of pairsOf(word)) change(pair, word.count, index)
    }
    pairCounts.delete(best)
    pairWords.delete(best)
    if (merges.length % 500 === 0) for (const [pair, n] of pairCounts) if (n <= 1) pairCounts.delete(pair)
  }
  return merges
}

function countWords(texts: readonly string[], pattern: RegExp): Word[] {
  const alphabet = byteToUnicode()
  const counts = new Map<string, number>()
  for (const text of texts) for (const [word] of text.matchAll(pattern)) counts.set(word, (counts.get(word) ?? 0) + 1)
  return [...counts].map(([word, count]) => ({
    symbols: [...Buffer.from(word, 'utf8')].map((byte) => alphabet[byte] ?? ''),
    count,
  }))
}

function pairsOf(word: Word): string[] {
  const pairs: string[] = []
  for (let i = 0; i + 1 < word.symbols.length; i++) pairs.push(`${word.symbols[i]}${SEPARATOR}${word.symbols[i + 1]}`)
  return pairs
}

function joinPair(symbols: readonly string[], left: string, right: string): string[] {
  const joined: string[] = []
  for (let i = 0; i < symbols.length; i++) {
    const symbol = symbols[i] ?? ''
    if (symbol === left && symbols[i + 1] === right) {
      joined.push(left + right)
      i++
    } else {
      joined.push(symbol)
    }
  }
  return joined
}

function mostFrequent(counts: ReadonlyMap<string, number>): string | undefined {
  let best: string | undefined
  let bestCount = 1
  for (const [pair, count] of counts) {
    if (count > bestCount || (count === bestCount && best !== undefined && pair < best)) {
      best = pair
      bestCount = count
    }
  }
  return best
}
