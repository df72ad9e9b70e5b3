import zlib from 'node:zlib'
import { type Clock, type EventBody, type Id, newId } from '../core/index.ts'
import type { Blobs, Recorder, SessionRecord } from '../trajectory/index.ts'
import type { Answer, ChoiceAnswer } from './dialects/chat/answer.ts'

/** Whose answer it is, and how many alternatives per token were asked for. */
export interface SideChannelSubject {
  readonly callId: Id
  readonly session: SessionRecord
  readonly topLogprobs: number
}

/** Where what is too large for the log goes. */
export interface SideChannelStore {
  readonly blobs: Pick<Blobs, 'put'>
  readonly recorder: Pick<Recorder, 'appendEvent'>
  readonly clock: Clock
}

type SideChannel = Pick<Extract<EventBody, { kind: 'side_channel' }>, 'what' | 'encoding'> & {
  readonly choice: number
  readonly bytes: Uint8Array
}

/**
 * Stores what an engine gave beside ids and logprobs as blobs, and an event `side_channel` that names each: alternatives
 * per token, and the experts that each token was routed to, in the engine's own layout. Null where there is nothing.
 */
export function storeSideChannels(
  answer: Answer,
  about: SideChannelSubject,
  store: SideChannelStore,
): Promise<void> | null {
  const found = answer.choices.flatMap((choice) => sideChannelsOf(choice, about.topLogprobs))
  return found.length === 0 ? null : storeAll(found, about, store)
}

async function storeAll(
  found: readonly SideChannel[],
  about: SideChannelSubject,
  { blobs, recorder, clock }: SideChannelStore,
): Promise<void> {
  for (const { what, encoding, choice, bytes } of found) {
    const sha256 = await blobs.put(bytes)
    await recorder.appendEvent({
      id: newId(),
      at: clock.now(),
      rolloutId: about.session.rolloutId,
      sessionId: about.session.id,
      kind: 'side_channel',
      callId: about.callId,
      choice,
      what,
      encoding,
      sha256,
      sizeBytes: bytes.length,
    })
  }
}

function sideChannelsOf(choice: ChoiceAnswer, topLogprobs: number): readonly SideChannel[] {
  const { index, routedExperts, alternatives } = choice
  const found: SideChannel[] = []
  // Unasked, engines list the sampled token alone.
  if (topLogprobs > 0 && alternatives.some((at) => at.length > 0)) {
    const bytes = zlib.zstdCompressSync(Buffer.from(JSON.stringify(alternatives)))
    found.push({ what: 'top_logprobs', encoding: 'json+zstd', choice: index, bytes })
    const entropies = Float32Array.from(alternatives, entropyOf)
    found.push({ what: 'entropies', encoding: 'float32le', choice: index, bytes: new Uint8Array(entropies.buffer) })
  }
  if (routedExperts !== null) {
    const bytes = Buffer.from(routedExperts, 'base64')
    // vLLM writes a NumPy file, SGLang bare 32-bit numbers, rows of layers of experts.
    const encoding = bytes.subarray(0, 6).equals(numpyMark) ? 'npy' : 'int32le'
    found.push({ what: 'routed_experts', encoding, choice: index, bytes })
  }
  return found
}

/** Mean over the tokens of an answer that show one; null where none does. */
export function meanEntropyOf(choices: readonly Pick<ChoiceAnswer, 'alternatives'>[]): number | null {
  const known = choices.flatMap(({ alternatives }) => alternatives.map(entropyOf)).filter((one) => !Number.isNaN(one))
  return known.length === 0 ? null : known.reduce((sum, one) => sum + one, 0) / known.length
}

/**
 * The entropy of the distribution that alternatives show, in nats: all that they leave out counts as one token, so that the whole
 * distribution has this or more. NaN where there are none or they are no probabilities.
 */
function entropyOf(alternatives: readonly unknown[]): number {
  let rest = 1
  let entropy = 0
  for (const one of alternatives) {
    const logprob: unknown = typeof one === 'object' && one !== null ? Reflect.get(one, 'logprob') : null
    if (typeof logprob !== 'number' || !(logprob <= 0)) return Number.NaN
    const probability = Math.exp(logprob)
    rest -= probability
    if (probability > 0) entropy -= probability * logprob
  }
  // Sums of float32 values are off by so much.
  if (alternatives.length === 0 || rest < -1e-3) return Number.NaN
  return rest > 0 ? entropy - rest * Math.log(rest) : entropy
}

const numpyMark = Buffer.from('\u0093NUMPY', 'latin1')
