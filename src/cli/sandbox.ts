import type { Config } from '../core/index.ts'
import type { SandboxEventSink, SandboxProvider } from '../sandbox/index.ts'

/** The configured sandbox provider. Nothing is asked of its daemon yet. */
export async function sandboxOf(config: Config, onEvent?: SandboxEventSink): Promise<SandboxProvider> {
  const { dockerProvider } = await import('../sandbox/index.ts')
  const { warmBoxes, parkWarmBoxes, diskWatermark, runtime, images } = config.sandbox
  return dockerProvider({
    warmBoxes,
    parkWarmBoxes,
    diskWatermark,
    images,
    ...(runtime === null ? {} : { runtime }),
    ...(config.sandbox.socketPath === null ? {} : { socketPath: config.sandbox.socketPath }),
    ...(onEvent === undefined ? {} : { onEvent }),
  })
}
