import { CallBody } from './call-body.ts'
import { MarkerSearch } from './held-text.ts'
import type { AnswerParser, AnswerPart } from './contract.ts'

/** How a family marks a tool call. Without `close` calls follow each other with `;` until the end of the answer. */
export interface CallTags {
  readonly open: string
  readonly close?: string
}

/**
 * Reads `<tool_call>{"name": …, "arguments": …}</tool_call>` (Hermes, Qwen: vLLM tool parser `hermes`) or
 * `<|python_tag|>{…}; {…}` (vLLM tool parser `llama3_json`). Text before the first call is content; blanks between
 * calls are nothing; a tag with no call behind it is content.
 */
export class TaggedCalls implements AnswerParser {
  readonly #tags: CallTags
  #search: MarkerSearch
  #body: CallBody | undefined
  #calls = 0
  #closing = ''
  #resumed = false

  constructor(tags: CallTags) {
    this.#tags = tags
    this.#search = new MarkerSearch([tags.open])
  }

  push(text: string): AnswerPart[] {
    const parts: AnswerPart[] = []
    let rest: string | undefined = text
    while (rest !== undefined && rest !== '')
      rest = this.#body === undefined ? this.#pushText(rest, parts) : this.#pushBody(rest, parts)
    return parts
  }

  end(): AnswerPart[] {
    const parts: AnswerPart[] = []
    if (this.#body !== undefined && this.#body.unseen !== '') addContent(parts, this.#tags.open + this.#body.unseen)
    else if (this.#body === undefined) this.#between(this.#search.end(), parts)
    return parts
  }

  #pushText(text: string, parts: AnswerPart[]): string | undefined {
    if (this.#calls > 0 && this.#tags.close === undefined) return this.#pushSeparator(text)
    const { before, found } = this.#search.push(text)
    this.#between(before, parts)
    if (found === undefined) return undefined
    this.#closing = ''
    this.#resumed = false
    this.#body = new CallBody(this.#calls)
    return found.after
  }

  /** After a call the closing tag and blanks are dropped; anything else is content again. */
  #between(text: string, parts: AnswerPart[]): void {
    if (this.#calls === 0 || this.#resumed) {
      addContent(parts, text)
      return
    }
    const all = this.#closing + text
    const close = this.#tags.close ?? ''
    const after = all.trimStart()
    if (close.startsWith(after)) {
      this.#closing = all
      return
    }
    this.#closing = ''
    const shown = after.startsWith(close) ? after.slice(close.length) : after
    this.#resumed = shown.trim() !== ''
    if (this.#resumed) addContent(parts, shown.replace(/^\s+/, ''))
    else this.#closing = close
  }

  #pushSeparator(text: string): string | undefined {
    const next = text.indexOf('{')
    if (next === -1) return undefined
    this.#body = new CallBody(this.#calls)
    return text.slice(next)
  }

  #pushBody(text: string, parts: AnswerPart[]): string | undefined {
    const progress = this.#body?.push(text)
    if (progress === undefined) return undefined
    if (progress.kind === 'failed') {
      this.#body = undefined
      addContent(parts, this.#tags.open)
      return progress.text
    }
    parts.push(...progress.parts)
    if (progress.kind === 'more') return undefined
    this.#body = undefined
    this.#calls++
    return progress.rest
  }
}

function addContent(parts: AnswerPart[], text: string): void {
  if (text !== '') parts.push({ kind: 'content', text })
}
