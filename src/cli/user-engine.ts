import type { Config } from '../core/index.ts'
import { createProxy, probeEngine } from '../proxy/index.ts'
import type { UserEngine } from '../rollout/index.ts'
import type { Store } from '../trajectory/index.ts'
import { adapterFor } from './engine.ts'

/** The engine that simulates users: asked for what it is when it is first needed, and again where it could not be. Null: none is configured. */
export function openUserEngine(
  { engines: { user }, proxy: limits }: Pick<Config, 'engines' | 'proxy'>,
  store: Pick<Store, 'recorder' | 'catalogue'>,
): { readonly find: () => Promise<UserEngine>; close(): Promise<void> } | null {
  if (user === null) return null
  let made: Promise<UserEngine & { close(): Promise<void> }> | null = null
  const open = async (): Promise<UserEngine & { close(): Promise<void> }> => {
    const report = await probeEngine(user.url, { apiKey: user.apiKey, model: user.model })
    const proxy = createProxy({
      recorder: store.recorder,
      engine: adapterFor(user.kind === 'auto' ? report.kind : user.kind, report.url, user.apiKey, report),
      putFingerprint: (fingerprint) => store.catalogue.putFingerprint(fingerprint),
      limits: { maxInFlight: limits.maxInFlight, maxQueued: limits.maxQueued, stallMs: limits.stallMs },
    })
    try {
      const listener = await proxy.listen({ host: '127.0.0.1', port: 0 })
      const close = async (): Promise<void> => {
        await listener.close()
        await proxy.close()
      }
      return { proxy, origin: listener.origin, model: report.model, close }
    } catch (error) {
      await proxy.close()
      throw error
    }
  }
  return {
    find: () => {
      made ??= open().catch((error: unknown) => {
        made = null
        throw error
      })
      return made
    },
    close: async () => {
      await (await made?.catch(() => null))?.close()
    },
  }
}
