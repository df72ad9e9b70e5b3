/** A part of an answer as a client may see it. */
export type AnswerPart =
  | { readonly kind: 'reasoning'; readonly text: string }
  | { readonly kind: 'content'; readonly text: string }
  | { readonly kind: 'call'; readonly index: number; readonly name: string }
  | { readonly kind: 'arguments'; readonly index: number; readonly text: string }

/** Text in, parts out, in pieces of any size: the parts joined do not depend on how the text was cut. */
export interface AnswerParser {
  push(text: string): AnswerPart[]
  /** Releases what was held back. Call once, after the last text. */
  end(): AnswerPart[]
}

/** A whole answer. Argument strings are the raw text that was sampled. */
export interface ParsedAnswer {
  readonly reasoning: string | null
  readonly content: string | null
  readonly calls: readonly { readonly name: string; readonly arguments: string }[]
}

/** Joins parts to a whole answer; absent parts are null. */
export function joinParts(parts: readonly AnswerPart[]): ParsedAnswer {
  let reasoning = ''
  let content = ''
  const calls: { name: string; arguments: string }[] = []
  for (const part of parts) {
    if (part.kind === 'reasoning') reasoning += part.text
    else if (part.kind === 'content') content += part.text
    else if (part.kind === 'call') calls[part.index] = { name: part.name, arguments: '' }
    else {
      const call = calls[part.index]
      if (call !== undefined) call.arguments += part.text
    }
  }
  return { reasoning: reasoning || null, content: content || null, calls }
}

/** Parses a whole text: the incremental parser fed at once, so that both ways agree by construction. */
export function parseWhole(parser: AnswerParser, text: string): ParsedAnswer {
  return joinParts([...parser.push(text), ...parser.end()])
}
