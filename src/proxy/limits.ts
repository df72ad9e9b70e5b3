import type { ProxyLimits } from './contract.ts'

/** What holds where nothing else is said. */
export const defaultLimits: ProxyLimits = {
  maxInFlight: 4096,
  maxQueued: 8192,
  maxBodyBytes: 64 * 1024 * 1024,
  maxHeaderBytes: 64 * 1024,
  headersTimeoutMs: 10_000,
  requestTimeoutMs: 120_000,
  keepAliveMs: 10_000,
  stallMs: 600_000,
  stallTaintMs: 5000,
  replayWindow: 2,
}
