import { scanElements, scanMembers } from '../../core/index.ts'

const encoder = new TextEncoder()
const decoder = new TextDecoder()

/** Values of an object as the JSON text that they were written in: numbers like `1.0` and the order of keys stay. */
export class RawObject {
  readonly text: string
  readonly #bytes: Uint8Array
  readonly #members: ReadonlyMap<string, { readonly valueStart: number; readonly valueEnd: number }>

  constructor(text: string) {
    this.text = text
    this.#bytes = encoder.encode(text)
    this.#members = new Map(scanMembers(this.#bytes).members.map((member) => [member.key, member]))
  }

  /** Null where it is not there or is `null`. */
  raw(key: string): string | null {
    const member = this.#members.get(key)
    if (member === undefined) return null
    const text = decoder.decode(this.#bytes.subarray(member.valueStart, member.valueEnd))
    return text === 'null' ? null : text
  }

  object(key: string): RawObject | null {
    const text = this.raw(key)
    return text === null ? null : new RawObject(text)
  }

  /** The elements of an array; none where it is not there. */
  elements(key: string): readonly string[] {
    const text = this.raw(key)
    return text === null ? [] : elementsOf(text)
  }
}

/** The elements of an array as they were written. */
export function elementsOf(text: string): readonly string[] {
  const bytes = encoder.encode(text)
  return scanElements(bytes, 0).map(({ start, end }) => decoder.decode(bytes.subarray(start, end)))
}

/** Whether a message's JSON text is one of the assistant. */
export function isAnswer(message: string): boolean {
  const { role } = JSON.parse(message) as { readonly role?: unknown }
  return role === 'assistant'
}
