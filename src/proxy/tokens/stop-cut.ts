import type { ChoiceAnswer } from '../dialects/chat/answer.ts'

/** Where a stop string cut an answer. */
export interface StopCut {
  /** Tokens whose text the client saw whole: later prompts hang here. */
  readonly visible: number
  /** The cut lies between two tokens; else it lies inside one, and no ids stand for the visible text. */
  readonly exact: boolean
}

/**
 * Engines give the ids of a stop string, and of a token that it begins in, although the text ends before it. Null for
 * an answer that no stop string ended, or whose token texts are not known. Not every engine says which string it was:
 * `stops` are those of the request.
 */
export function stopCutOf(choice: ChoiceAnswer, stops: readonly string[]): StopCut | null {
  const { stopReason, tokenTexts, tokenIds } = choice
  if (tokenTexts.length !== tokenIds.length) return null
  const named = typeof stopReason === 'string' && stopReason !== ''
  const stop = named ? stopReason : stopAt(tokenTexts, stops)
  if (stop === null) return null
  const text = tokenTexts.join('')
  const found = text.indexOf(stop)
  if (found === -1) return null
  // `include_stop_str_in_output` shows the string itself.
  const cut = choice.content?.endsWith(stop) === true ? found + stop.length : found
  if (!named && (shownLength(choice) > cut || isLastToken(stop, tokenTexts))) return null
  let end = 0
  let visible = 0
  for (const token of tokenTexts) {
    if (end + token.length > cut) break
    end += token.length
    visible += 1
  }
  return { visible, exact: end === cut }
}

/** How many characters of an answer its client sees. If they are more than come before a stop, the engine did not stop there. */
function shownLength({ content, reasoning, toolCalls }: ChoiceAnswer): number {
  const calls = toolCalls.reduce((sum, call) => sum + call.name.length + call.arguments.length, 0)
  return (content ?? '').length + (reasoning ?? '').length + calls
}

/** The last token alone is the stop: an end of turn that the request names too. It was sampled, and nothing is behind it. */
function isLastToken(stop: string, tokenTexts: readonly string[]): boolean {
  return tokenTexts.at(-1) === stop && tokenTexts.join('').indexOf(stop) === tokenTexts.slice(0, -1).join('').length
}

/** The stop string that ended an answer, told by the texts of its tokens; the earliest one in them. */
export function stopAt(tokenTexts: readonly string[], stops: readonly string[]): string | null {
  if (stops.length === 0) return null
  const text = tokenTexts.join('')
  let best: { readonly at: number; readonly stop: string } | null = null
  for (const stop of stops) {
    const at = text.indexOf(stop)
    if (at !== -1 && (best === null || at < best.at)) best = { at, stop }
  }
  return best?.stop ?? null
}
