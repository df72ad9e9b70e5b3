import type { Replica } from './replica.ts'

/** Sessions and calls that are remembered; the oldest go first. */
const remembered = 100_000

/** Where sessions have their KV cache. A fork starts where the call ran that it forks from. */
export class Affinity {
  private readonly homes = new Map<string, Replica>()
  private readonly calls = new Map<string, Replica>()
  private readonly replicas: readonly Replica[]

  /** `replicas` as they are at any time. */
  constructor(replicas: readonly Replica[]) {
    this.replicas = replicas
  }

  /** The only replica there is: every call ran on it, and none needs to be remembered. */
  private get only(): Replica | null {
    return this.replicas.length === 1 ? (this.replicas[0] ?? null) : null
  }

  homeOf(sessionId: string): Replica | null {
    return this.homes.get(sessionId) ?? null
  }

  settle(sessionId: string, callId: string, replica: Replica): void {
    const before = this.homes.get(sessionId)
    const { only } = this
    if (before === replica && only !== null) return
    if (before !== replica) {
      if (before !== undefined) before.sessions -= 1
      replica.sessions += 1
    }
    keep(this.homes, sessionId, replica, (gone) => {
      gone.sessions -= 1
    })
    if (only === null) keep(this.calls, callId, replica)
  }

  /** A session that goes on from a call of another one. */
  fork(sessionId: string, callId: string): void {
    const home = this.only ?? this.calls.get(callId)
    if (home === undefined || this.homes.has(sessionId)) return
    home.sessions += 1
    this.homes.set(sessionId, home)
  }

  /** A replica is gone, and with it what was cached there. */
  leave(replica: Replica): void {
    for (const [session, home] of this.homes) if (home === replica) this.homes.delete(session)
    for (const [call, home] of this.calls) if (home === replica) this.calls.delete(call)
    replica.sessions = 0
  }

  forget(sessionId: string): void {
    const home = this.homes.get(sessionId)
    if (home === undefined) return
    home.sessions -= 1
    this.homes.delete(sessionId)
  }
}

/** Newest last, as far as that can matter: while much room is left an entry stays where it is. */
function keep(map: Map<string, Replica>, key: string, replica: Replica, dropped?: (replica: Replica) => void): void {
  if (2 * map.size > remembered) map.delete(key)
  map.set(key, replica)
  if (map.size <= remembered) return
  const [oldest] = map
  if (oldest === undefined) return
  map.delete(oldest[0])
  dropped?.(oldest[1])
}
