import type { EventBody, Id } from '../../core/index.ts'
import type { EngineAdapter } from '../engines/contract.ts'
import { editsBetween, editsOfPrompt } from './edits.ts'
import type { InjectedMessages } from './place.ts'

type Edits = Extract<EventBody, { kind: 'injected' }>['edits']

/** What is told of a prompt with texts put into it. */
export type InjectedEvent = Extract<EventBody, { kind: 'injected' }>

/** Renders of one prompt with what was put in and without; text: why there are none. */
export type BothRenders = { readonly full: Int32Array; readonly clean: Int32Array } | string

/** Has the engine render a request as it is sent and as the harness wrote it, beside its generation. Never rejects. */
export async function renderBoth(
  { promptIds }: Pick<EngineAdapter, 'promptIds'>,
  { full, clean }: { readonly full: Uint8Array; readonly clean: Uint8Array },
): Promise<BothRenders> {
  if (promptIds === undefined) return 'the engine has no route that renders a prompt'
  try {
    const [one, other] = await Promise.all([promptIds(full), promptIds(clean)])
    return { full: Int32Array.from(one), clean: Int32Array.from(other) }
  } catch (cause) {
    return cause instanceof Error ? cause.message : String(cause)
  }
}

/** `prompt`: what was sampled from; null where no ids came. */
export function injectedEvent(
  callId: Id,
  { labels }: InjectedMessages,
  {
    prompt,
    renders,
    spliced,
  }: { readonly prompt: Int32Array | null; readonly renders: BothRenders; readonly spliced: boolean },
): InjectedEvent {
  const told = (edits: Edits, detail: string): InjectedEvent => ({ kind: 'injected', callId, labels, edits, detail })
  if (prompt === null) return told(null, 'no ids of the prompt came')
  if (typeof renders === 'string') return told(null, renders)
  const { full, clean } = renders
  const isRendered = prompt.length === full.length && prompt.every((id, at) => id === full[at])
  if (!isRendered && !spliced)
    return told(null, 'the engine renders a prompt otherwise when it is only asked for its ids')
  return told(editsOfPrompt(prompt, full, editsBetween(full, clean)), '')
}
