import type { Config } from '../config/index.ts'
import type { DaemonOptions, SandboxEventSink, SandboxProvider } from '../sandbox/index.ts'

/** Where the configuration says that the daemon is. */
export function daemonOf({ sandbox }: Config): DaemonOptions {
  const { socketPath, host } = sandbox
  const { ca, cert, key } = sandbox.tls
  const tls = { ...(ca !== null && { ca }), ...(cert !== null && { cert }), ...(key !== null && { key }) }
  return {
    ...(socketPath !== null && { socketPath }),
    ...(host !== null && { host }),
    ...(Object.keys(tls).length > 0 && { tls }),
  }
}

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
    ...daemonOf(config),
    ...(onEvent === undefined ? {} : { onEvent }),
  })
}
