import type { Config } from '../core/index.ts'
import { createProxy, probeEngine, type ProxyEvent } from '../proxy/index.ts'
import type { FindJudge, JudgeEngine } from '../rollout/index.ts'
import type { Store } from '../trajectory/index.ts'
import { Closers } from './closers.ts'
import { adapterFor } from './engine.ts'

export interface JudgeParts {
  readonly store: Pick<Store, 'recorder' | 'catalogue' | 'blobs'>
  readonly onEvent?: (event: ProxyEvent) => void
}

/** The configured engine of the role `judge`. */
export interface ConfiguredJudge extends AsyncDisposable {
  /** Null: none is configured. */
  readonly find: FindJudge | null
}

/**
 * The engine of the role `judge` behind a proxy and a loopback listener of its own, over the same record: its calls never wait for those of
 * the policy, and its weights are not the policy's. It is asked what it is when a judge is first needed, and again where it could not be.
 */
export function judgeOf(config: Config, { store, onEvent }: JudgeParts): ConfiguredJudge {
  const { judge } = config.engines
  const closers = new Closers()
  const dispose = () => closers.close()
  if (judge === null) return { find: null, [Symbol.asyncDispose]: dispose }
  const open = async (): Promise<JudgeEngine> => {
    const report = await probeEngine(judge.url, { apiKey: judge.apiKey, model: judge.model })
    const { stallMs, maxInFlight, maxQueued } = config.proxy
    const proxy = createProxy({
      recorder: store.recorder,
      blobs: store.blobs,
      putFingerprint: (fingerprint) => store.catalogue.putFingerprint(fingerprint),
      engine: adapterFor(judge.kind === 'auto' ? report.kind : judge.kind, report.url, judge.apiKey, report),
      limits: { stallMs, maxInFlight, maxQueued },
      ...(onEvent === undefined ? {} : { onEvent }),
    })
    closers.add(() => proxy.close())
    const { origin } = await proxy.listen({ host: '127.0.0.1', port: 0 })
    return { proxy, origin, model: report.model }
  }
  let made: Promise<JudgeEngine> | null = null
  const find = (): Promise<JudgeEngine> => {
    made ??= open().catch((cause: unknown) => {
      made = null
      throw cause
    })
    return made
  }
  return { find, [Symbol.asyncDispose]: dispose }
}
