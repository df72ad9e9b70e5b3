import { createHash } from 'node:crypto'
import { editObject, scanElements, scanMembers } from '../../core/index.ts'
import type { ChatText } from '../engines/token-engine.ts'

/** Members that decide how messages become text, beside the messages themselves. */
const renderInputs = ['model', 'tools', 'chat_template_kwargs', 'chat_template', 'documents', 'reasoning_effort']

/** The engine's chat request, cut at its messages: every message keeps its bytes. */
export class ChatBody implements ChatText {
  readonly bytes: Buffer
  readonly messages: readonly Buffer[]
  private readonly scanned: ReturnType<typeof scanMembers>
  private readonly members: ReadonlyMap<string, Buffer>
  private digest: string | null = null

  /** Throws `BODY_INVALID_JSON`. */
  constructor(bytes: Buffer) {
    this.bytes = bytes
    this.scanned = scanMembers(bytes)
    this.members = new Map(
      this.scanned.members.map(({ key, valueStart, valueEnd }) => [key, bytes.subarray(valueStart, valueEnd)]),
    )
    const list = this.members.get('messages')
    this.messages = list === undefined ? [] : scanElements(list, 0).map(({ start, end }) => list.subarray(start, end))
  }

  /** Names of the members. */
  get names(): readonly string[] {
    return [...this.members.keys()]
  }

  text(name: string): string | null {
    const value = this.members.get(name)?.toString() ?? 'null'
    return value === 'null' ? null : value
  }

  flag(name: string): boolean {
    return this.text(name) === 'true'
  }

  /** What the client bounded the answer to, null where it did not. */
  get maxTokens(): number | null {
    const asked: unknown = JSON.parse(this.text('max_completion_tokens') ?? this.text('max_tokens') ?? 'null')
    return typeof asked === 'number' ? asked : null
  }

  /** The last message is to be gone on with, and no new turn opened. */
  get continuesLast(): boolean {
    return this.flag('continue_final_message')
  }

  /** Stop strings end an answer in the middle of a token, which no step-by-step derenderer can take back. */
  get hasStops(): boolean {
    const stop = this.text('stop')
    return stop !== null && stop !== '[]' && stop !== '""'
  }

  get stops(): readonly string[] {
    const stop: unknown = JSON.parse(this.text('stop') ?? '[]')
    return (Array.isArray(stop) ? stop : [stop]).filter((text) => typeof text === 'string' && text !== '')
  }

  /** vLLM's and SGLang's wish to see the stop string in the text. */
  get showsStops(): boolean {
    return this.flag('include_stop_str_in_output')
  }

  /** Two requests with equal inputs and equal messages render alike. */
  get renderDigest(): string {
    if (this.digest !== null) return this.digest
    const digest = createHash('sha1')
    for (const name of renderInputs) digest.update(`${name}\u0000${this.text(name) ?? ''}\u0000`)
    this.digest = digest.digest('base64')
    return this.digest
  }

  message(index: number): unknown {
    return JSON.parse(this.messages[index]?.toString() ?? 'null')
  }

  get lastOnly(): string {
    const last = this.messages.at(-1)
    if (last === undefined) return this.bytes.toString()
    return editObject(this.bytes, { set: { messages: `[${last.toString()}]` } }, this.scanned).toString()
  }

  /** The same request over other messages. `open`: a new turn of the assistant is opened at the end. */
  over(messages: readonly Buffer[], { open }: { readonly open: boolean }): Buffer {
    const set = {
      messages: `[${messages.map(String).join()}]`,
      stream: 'false',
      ...(open ? {} : { add_generation_prompt: 'false', continue_final_message: 'false' }),
    }
    return editObject(this.bytes, { set, remove: ['stream_options'] }, this.scanned)
  }
}

/** Some message holds images, sound or files: ids alone would not say what the model sees. */
export function hasMedia(messages: readonly unknown[]): boolean {
  return messages.some((message) => {
    const content: unknown =
      typeof message === 'object' && message !== null && 'content' in message ? message.content : null
    return Array.isArray(content) && content.some((part: unknown) => !isTextPart(part))
  })
}

function isTextPart(part: unknown): boolean {
  if (typeof part === 'string') return true
  return (
    typeof part === 'object' &&
    part !== null &&
    ('text' in part || 'refusal' in part || ('type' in part && part.type === 'thinking'))
  )
}
