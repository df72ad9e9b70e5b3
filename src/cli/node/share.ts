import type { Config } from '../../config/index.ts'
import { defaultLimits } from '../../rollout/index.ts'

/** What falls to one of several: all shares together are the whole, and each is one at least. `index` from 0. */
export function shareOf(whole: number, index: number, count: number): number {
  return Math.max(1, Math.floor(whole / count) + (index < whole % count ? 1 : 0))
}

/** A node's configuration as one of its processes has it: what bounds this machine is divided. Places come with the process. */
export function shareOfConfig(config: Config, index: number, count: number): Config {
  const share = (whole: number): number => shareOf(whole, index, count)
  const { boot = defaultLimits().boot, verify = defaultLimits().verify } = config.run.limits
  const { maxInFlight, maxQueued } = config.proxy
  const { warmBoxes } = config.sandbox
  return {
    ...config,
    proxy: { ...config.proxy, maxInFlight: share(maxInFlight), maxQueued: share(maxQueued) },
    run: { ...config.run, limits: { ...config.run.limits, boot: share(boot), verify: share(verify) } },
    sandbox: { ...config.sandbox, warmBoxes: warmBoxes === 0 ? 0 : share(warmBoxes) },
  }
}
