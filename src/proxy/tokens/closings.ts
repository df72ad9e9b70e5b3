import type { ChatBody } from './chat-body.ts'
import { closingOf, type Closing } from './splice-ids.ts'

/** Renders a chat request to ids; null where the engine refuses. */
export type Render = (chat: Buffer) => Promise<Int32Array | null>

/**
 * How templates end an assistant turn, learned from two small renders that differ in one letter. Shared by the
 * sessions of an engine.
 */
export class Closings {
  private readonly known = new Map<string, Promise<Closing & { readonly terminators: Set<number> }>>()

  of(chat: ChatBody, render: Render): Promise<Closing & { readonly terminators: Set<number> }> {
    const key = `${chat.text('model') ?? ''}\u0000${chat.text('chat_template_kwargs') ?? ''}`
    const found = this.known.get(key)
    if (found !== undefined) return found
    const learned = learn(chat, render)
    this.known.set(key, learned)
    learned.catch(() => this.known.delete(key))
    return learned
  }
}

async function learn(chat: ChatBody, render: Render): Promise<Closing & { readonly terminators: Set<number> }> {
  const ask = (letter: string) =>
    render(
      chat.over(
        [
          { role: 'user', content: 'x' },
          { role: 'assistant', content: letter },
        ].map((message) => Buffer.from(JSON.stringify(message))),
        { open: false },
      ),
    )
  const [one, other] = [await ask('a'), await ask('b')]
  const closing = one === null || other === null ? null : closingOf(one, other)
  const [terminator, ...tail] = closing ?? []
  return { terminators: new Set(terminator === undefined ? [] : [terminator]), tail: Int32Array.from(tail) }
}
