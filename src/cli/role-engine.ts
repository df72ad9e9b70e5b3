import type { Config } from '../config/index.ts'
import { createProxy, probeEngine, type ProxyEvent } from '../proxy/index.ts'
import type { FindRoleEngine, RoleEngine } from '../rollout/index.ts'
import type { Store } from '../trajectory/index.ts'
import { Closers } from './closers.ts'
import { adapterFor } from './engine.ts'

/** Roles whose engines are asked in words, beside the policy's. */
type Role = 'judge' | 'user'

export interface RoleParts {
  readonly store: Pick<Store, 'recorder' | 'catalogue' | 'blobs'>
  readonly onEvent?: (event: ProxyEvent) => void
}

/** The configured engine of a role. */
export interface ConfiguredRole extends AsyncDisposable {
  /** Null: none is configured. */
  readonly find: FindRoleEngine | null
}

/**
 * The engine of a role behind a proxy and a loopback listener of its own, over the same record: its calls never wait for those of
 * the policy, and its weights are not the policy's. It is asked what it is when it is first needed, and again where it could not be.
 */
export function roleEngine(role: Role, config: Config, { store, onEvent }: RoleParts): ConfiguredRole {
  const named = config.engines[role]
  const closers = new Closers()
  const dispose = () => closers.close()
  if (named === null) return { find: null, [Symbol.asyncDispose]: dispose }
  const open = async (): Promise<RoleEngine> => {
    const report = await probeEngine(named.url, { apiKey: named.apiKey, model: named.model })
    const { stallMs, maxInFlight, maxQueued } = config.proxy
    const proxy = createProxy({
      recorder: store.recorder,
      blobs: store.blobs,
      putFingerprint: (fingerprint) => store.catalogue.putFingerprint(fingerprint),
      engine: adapterFor(named.kind === 'auto' ? report.kind : named.kind, report.url, named.apiKey, report),
      limits: { stallMs, maxInFlight, maxQueued },
      ...(onEvent === undefined ? {} : { onEvent }),
    })
    closers.add(() => proxy.close())
    const { origin } = await proxy.listen({ host: '127.0.0.1', port: 0 })
    return { proxy, origin, model: report.model }
  }
  let made: Promise<RoleEngine> | null = null
  const find = (): Promise<RoleEngine> => {
    made ??= open().catch((cause: unknown) => {
      made = null
      throw cause
    })
    return made
  }
  return { find, [Symbol.asyncDispose]: dispose }
}
