import { createHash, type Hash, hash } from 'node:crypto'
import { canonicalOrRaw, canonicalText, parseLossless, skipSpace } from '../../../core/index.ts'
import { type ChoiceAnswer, messageOf } from './answer.ts'

/**
 * Structural identity of chat messages: six of seven harnesses send a model's answer back re-serialised (compact
 * arguments, `1` for `1.0`, other key order, content as parts), and it is still the same turn. Reasoning, ids of
 * tool calls and cache marks do not count.
 */
export function turnDigest(message: unknown): string {
  const turn = loose(message)
  let text = `${String(turn['role'])}\u0000${contentText(turn['content'])}`
  const calls = turn['tool_calls']
  if (Array.isArray(calls)) {
    for (const call of calls) {
      const fn = loose(loose(call)['function'])
      const args = fn['arguments']
      // Some clients send the object itself.
      const written = typeof args === 'string' ? args : (JSON.stringify(args) ?? '')
      text += `\u0000call\u0000${String(fn['name'])}\u0000${canonicalOrRaw(written)}`
    }
  }
  return hash('sha1', text, 'base64')
}

/** The digests of a request's messages, made when somebody first asks. */
export class Turns {
  readonly messages: readonly unknown[]
  private text: MessagesText | null
  private readonly digests: string[] = []
  private readonly links: string[] = []
  /** Of the text up to the end of what was taken over. */
  private begun: { readonly hash: Hash; readonly end: number } | null = null

  /** `text`: what the messages were read from, where that is at hand. */
  constructor(messages: readonly unknown[], text: MessagesText | null = null) {
    this.messages = messages
    this.text = text
  }

  /** The digest of each message. */
  get each(): readonly string[] {
    this.make()
    return this.digests
  }

  /**
   * Running digests of the conversation: element i identifies messages 0..i. A request extends an earlier call exactly when
   * one of its elements equals that call's digest with the answer appended.
   */
  get chain(): readonly string[] {
    this.make()
    return this.links
  }

  /** Of all messages together; empty where there are none. */
  get whole(): string {
    return this.chain.at(-1) ?? ''
  }

  /** What a later request can begin with; null where the text is not at hand. */
  known(): KnownTurns | null {
    const { text, each, chain } = this
    if (text === null) return null
    const { bytes, start, end } = text
    const digested = this.begun ?? { hash: createHash('sha256'), end: start }
    this.begun = null
    const digest = digested.hash.update(bytes.subarray(digested.end, end - 1)).digest('base64')
    return { size: end - 1 - start, digest, each, chain }
  }

  /**
   * Takes over what is known of the messages of an earlier request where this one begins with all of them, byte for byte:
   * a harness sends the whole conversation again with every turn. False where it does not.
   */
  follow(earlier: KnownTurns): boolean {
    if (this.text === null || this.digests.length > 0) return false
    const { bytes, start } = this.text
    const end = start + earlier.size
    if (!endsElement(this.text, end)) return false
    const digested = createHash('sha256').update(bytes.subarray(start, end))
    if (digested.copy().digest('base64') !== earlier.digest) return false
    this.begun = { hash: digested, end }
    this.digests.push(...earlier.each)
    this.links.push(...earlier.chain)
    return true
  }

  letGoOfText(): void {
    this.text = null
  }

  /**
   * Makes the digests that are not there yet; `of` may take a message for another one that says the same. It is given the
   * message's own digest and the chain before it.
   */
  digestBy(of: (message: unknown, index: number, own: { digest: string; before: string }) => string): void {
    const { messages, digests, links } = this
    for (let at = digests.length; at < messages.length; at += 1) {
      const message = messages[at]
      const before = links[at - 1] ?? ''
      const turn = of(message, at, { digest: turnDigest(message), before })
      digests.push(turn)
      links.push(extendChain(before, turn))
    }
  }

  private make(): void {
    if (this.digests.length < this.messages.length) this.digestBy((_message, _index, { digest }) => digest)
  }
}

/** Where in a body the list of messages lies, brackets included. It has a message. */
export interface MessagesText {
  readonly bytes: Buffer
  readonly start: number
  readonly end: number
}

/** Digests of messages, and of the text that they were read from: all of the list but its closing bracket. */
export interface KnownTurns {
  readonly size: number
  readonly digest: string
  readonly each: readonly string[]
  readonly chain: readonly string[]
}

/** What stands at `at`, if it is behind a whole element of the list, does not belong to that element. */
function endsElement({ bytes, end }: MessagesText, at: number): boolean {
  const behind = at < end ? bytes[skipSpace(bytes, at)] : undefined
  return behind === comma || behind === closeBracket
}

const comma = 0x2c
const closeBracket = 0x5d

/** The digest of a choice that has ended, as the engine wrote its message or put together from its deltas. */
export function answeredTurn(choice: ChoiceAnswer): string {
  choice.turn ??= turnDigest(choice.message ?? messageOf(choice))
  choice.message = null
  return choice.turn
}

/** The chain digest after one more turn; `before` is empty where there is none. */
export function extendChain(before: string, turn: string): string {
  if (before === '') return turn
  return hash('sha1', `${before}\u0000${turn}`, 'base64')
}

function contentText(content: unknown): string {
  if (content === null || content === undefined) return ''
  if (typeof content === 'string') return content === '' ? '' : `t${content}`
  if (!Array.isArray(content)) return JSON.stringify(content)
  let text = ''
  const other: string[] = []
  for (const part of content) {
    const { cache_control: _mark, ...rest } = loose(part)
    if (rest['type'] === 'text' && typeof rest['text'] === 'string') text += rest['text']
    else other.push(canonicalText(parseLossless(JSON.stringify(rest))))
  }
  return [text === '' ? '' : `t${text}`, ...other].join('\u0001')
}

function loose(value: unknown): Readonly<Record<string, unknown>> {
  return isObject(value) ? value : nothing
}

const nothing = {}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null
}
