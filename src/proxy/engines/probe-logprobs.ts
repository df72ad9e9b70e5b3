import type { LogprobKind } from '../../core/index.ts'
import { tryEngine } from './http.ts'
import type { LooseObject } from '../session/sampling.ts'

type Ask = (more: LooseObject) => Promise<{ readonly status: number; readonly body: LooseObject | null }>

/** Alternatives at one position: the token chosen before it, and logprob by token text. */
interface Position {
  readonly token: string
  readonly alternatives: ReadonlyMap<string, number>
}

/**
 * Finds out what a logprob is of. The gap between two alternatives at the same position is the same at every
 * temperature for `raw` logprobs and halves at temperature 2 for the others; with `top_k: 1` a `processed` logprob of
 * the best token is 0, a `temperature` one is not. `unknown` where the answers do not allow a comparison.
 */
export async function probeLogprobKind(ask: Ask): Promise<LogprobKind> {
  const sample = async (more: LooseObject) => {
    const reply = await ask({ logprobs: true, top_logprobs: 5, max_tokens: 8, seed: 11, ...more })
    return reply.status < 400 ? positionsOf(reply.body) : []
  }
  const [one, two, greedy] = await Promise.all([
    sample({ temperature: 1 }),
    sample({ temperature: 2 }),
    sample({ temperature: 1, top_k: 1 }),
  ])
  const ratio = gapRatio(one, two)
  if (ratio === null) return 'unknown'
  if (Math.abs(ratio - 1) < 0.05) return 'raw'
  if (Math.abs(ratio - 0.5) > 0.05) return 'unknown'
  const truncated = greedy.every(({ token, alternatives }) => (alternatives.get(token) ?? 0) > -1e-4)
  return truncated ? 'processed' : 'temperature'
}

/** {@link probeLogprobKind} over the chat route; null where it could not be found out. */
export async function foundKind(
  root: string,
  apiKey: string | null,
  model: string | null,
): Promise<LogprobKind | null> {
  const hello = { ...(model === null ? {} : { model }), messages: [{ role: 'user', content: 'Say hello.' }] }
  const kind = await probeLogprobKind((more) => tryEngine(root, '/v1/chat/completions', apiKey, { ...hello, ...more }))
  return kind === 'unknown' ? null : kind
}

/** Gap of the same two alternatives in `b` over that in `a`, at the first position where both can be compared. */
function gapRatio(a: readonly Position[], b: readonly Position[]): number | null {
  for (let i = 0; i < Math.min(a.length, b.length); i += 1) {
    const [left, right] = [a[i], b[i]]
    if (left === undefined || right === undefined) return null
    const pair = widest(left.alternatives, right.alternatives)
    if (pair !== null && Math.abs(pair.a) > 0.02) return pair.b / pair.a
    // After another token the positions no longer speak of the same context.
    if (left.token !== right.token) return null
  }
  return null
}

/** The two shared alternatives that `a` sets furthest apart, as gaps in both. Those at the top may be nearly alike. */
function widest(
  a: ReadonlyMap<string, number>,
  b: ReadonlyMap<string, number>,
): { readonly a: number; readonly b: number } | null {
  const shared = [...a].flatMap(([token, one]) => {
    const other = b.get(token)
    return other === undefined || one <= -50 || other <= -50 ? [] : [{ a: one, b: other }]
  })
  const [low, high] = [shared.toSorted((x, y) => x.a - y.a)[0], shared.toSorted((x, y) => y.a - x.a)[0]]
  return low === undefined || high === undefined ? null : { a: high.a - low.a, b: high.b - low.b }
}

function positionsOf(body: LooseObject | null): Position[] {
  const choices = body?.['choices']
  const choice: unknown = Array.isArray(choices) ? choices[0] : null
  const content = read(read(choice, 'logprobs'), 'content')
  if (!Array.isArray(content)) return []
  return content.map((entry: unknown) => {
    const alternatives = new Map<string, number>()
    const top = read(entry, 'top_logprobs')
    for (const item of Array.isArray(top) ? top : []) {
      const [token, logprob] = [read(item, 'token'), read(item, 'logprob')]
      if (typeof token === 'string' && typeof logprob === 'number') alternatives.set(token, logprob)
    }
    return { token: String(read(entry, 'token')), alternatives }
  })
}

function read(value: unknown, key: string): unknown {
  return typeof value === 'object' && value !== null ? Reflect.get(value, key) : undefined
}
