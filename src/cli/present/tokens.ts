import type { TokenTexts } from '../../read/index.ts'
import { type Paint, printableText } from './colour.ts'

/** One token, readable: white space is visible, an unknown id prints as `⟨123⟩`, a part of a character as its bytes. */
export function tokenText(id: number, texts: TokenTexts): string {
  const bytes = texts.get(id)
  if (bytes === undefined) return `⟨${id}⟩`
  try {
    return visible(new TextDecoder('utf-8', { fatal: true }).decode(bytes))
  } catch {
    return [...bytes].map((byte) => `\\x${byte.toString(16).padStart(2, '0')}`).join('')
  }
}

function visible(text: string): string {
  return printableText(text.replaceAll('\r', '␍')).replaceAll('\n', '⏎').replaceAll('\t', '⇥')
}

/** A token with whether a trainer would learn from it. */
export interface MaskedToken {
  readonly id: number
  readonly trained: boolean
}

/**
 * Tokens in a line, `│` between them, runs of trained ones inside `⟦ ⟧` (so that it reads without colour too). After
 * `most` tokens the rest is counted.
 */
export function tokenStrip(tokens: readonly MaskedToken[], texts: TokenTexts, most: number, paint: Paint): string {
  const shown = tokens.slice(0, most)
  const runs: { trained: boolean; texts: string[] }[] = []
  for (const token of shown) {
    const last = runs.at(-1)
    const text = tokenText(token.id, texts)
    if (last !== undefined && last.trained === token.trained) last.texts.push(text)
    else runs.push({ trained: token.trained, texts: [text] })
  }
  const strip = runs
    .map((run) => (run.trained ? paint('trained', `⟦${run.texts.join('│')}⟧`) : paint('dim', run.texts.join('│'))))
    .join(' ')
  const rest = tokens.length - shown.length
  return rest === 0 ? strip : `${strip} ${paint('dim', `… ${rest} more`)}`
}

const barWidth = 48

/** A row at a glance: `░` not sampled, `▒` sampled and masked, `▓` trained. Each cell shows what most of its tokens are. */
export function maskBar(kinds: readonly ('prompt' | 'masked' | 'trained')[]): string {
  const cells = Math.min(barWidth, kinds.length)
  let bar = ''
  for (let cell = 0; cell < cells; cell += 1) {
    const from = Math.floor((cell * kinds.length) / cells)
    const to = Math.floor(((cell + 1) * kinds.length) / cells)
    const part = kinds.slice(from, Math.max(to, from + 1))
    const trained = part.filter((kind) => kind === 'trained').length
    const masked = part.filter((kind) => kind === 'masked').length
    const prompt = part.length - trained - masked
    bar += trained > 0 && trained >= prompt && trained >= masked ? '▓' : masked > prompt ? '▒' : '░'
  }
  return bar
}
