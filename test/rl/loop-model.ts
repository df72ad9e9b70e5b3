// A reference model of the trainer's clock, from LOOP.md alone. "Decision" marks what the page leaves open.
// Scope: one run, one policy, one engine set; a group has one row, one round and never fails.

export type Refusal = 'FENCED' | 'CLAIM_OVER' | 'CONFLICT'
export interface Weights {
  readonly ordinal: number
  readonly label: string
}
export interface Attached {
  readonly session: number
  readonly undone: number
  readonly again: readonly string[]
  readonly stale: readonly string[]
}
export interface GroupState {
  readonly state: 'free' | 'claimed' | 'used' | 'stale'
  readonly step: number | null
  readonly isFinal: boolean
}

interface Version {
  readonly weights: Weights
  readonly step: number | null
  gone: boolean
}
/** `version` sampled it (null: no weights were live then); `last` is the last claim that leased it. */
interface Group {
  readonly name: string
  readonly version: Version | null
  last: Claim | null
  use: { readonly step: number; isFinal: boolean } | null
  stale: boolean
}
interface Claim {
  readonly session: number
  readonly group: Group
  state: 'held' | 'expired' | 'returned' | 'used'
}

/** Null is before every step. */
const isAfter = (step: number | null, resume: number | null): boolean =>
  step !== null && (resume === null || step > resume)

export class LoopModel {
  /** Null: no trainer has attached, so every session is fenced. */
  #session: number | null = null
  /** Groups as they settled, versions as they were announced. Gone versions stay, for their labels. */
  readonly #groups = new Map<string, Group>()
  readonly #claims = new Map<string, Claim>()
  readonly #versions: Version[] = []

  /** Opens a new trainer session, fences all older ones and takes back what came after `resumeStep`. */
  attach(resumeStep: number | null): Attached {
    // Decision: null resumes from before every step, so only weights of step null (rule 4) survive.
    const session = (this.#session = (this.#session ?? 0) + 1)
    for (const version of this.#versions) if (isAfter(version.step, resumeStep)) version.gone = true
    const [again, stale]: [string[], string[]] = [[], []]
    let undone = 0
    for (const group of this.#groups.values()) {
      // Rule 3: "undoes everything after that step", so final uses too.
      // Decision: "after" compares step numbers only.
      const isUndone = group.use !== null && isAfter(group.use.step, resumeStep)
      const wasHeld = group.last?.state === 'held'
      if (isUndone) {
        group.use = null
        undone += 1
      }
      // Decision: claims of older sessions, and of what is undone, hold nothing from now on.
      if (group.last !== null && (group.last.state !== 'used' || isUndone)) group.last.state = 'returned'
      if (group.use !== null || group.stale) continue
      // Decision (rule 4): a free or held group whose weights are removed ends stale like an undone one.
      if (group.version?.gone) {
        group.stale = true
        stale.push(group.name)
      } else if (isUndone || wasHeld) again.push(group.name)
    }
    return { session, undone, again, stale }
  }

  /** A group settles. Decision: settling it again changes nothing ("written once"). */
  settle(group: string): void {
    // Decision: when all weights are gone, the group has no version and survives every attach.
    const settled = { name: group, version: this.#live(), last: null, use: null, stale: false }
    if (!this.#groups.has(group)) this.#groups.set(group, settled)
  }

  /** Leases the oldest free group; null: no group is free. A group that comes back keeps its age. */
  claim(session: number, claim: string): string | null {
    if (session !== this.#session) return 'FENCED'
    // Decision: rule 2, "a claim carries a fencing token": an id is never used for a second lease.
    if (this.#claims.has(claim)) return 'CONFLICT'
    for (const group of this.#groups.values()) {
      if (group.use !== null || group.stale || group.last?.state === 'held') continue
      group.last = { session, group, state: 'held' }
      this.#claims.set(claim, group.last)
      return group.name
    }
    return null // Decision: the id is not spent.
  }

  /** The lease runs out. A claim that holds nothing, or was never made, is left alone. */
  expire(claim: string): void {
    const found = this.#claims.get(claim)
    if (found?.state === 'held') found.state = 'expired'
  }

  /** Decision: as the reference page has it, a lease that ran out is renewed until another consumer has the group. */
  renew(session: number, claim: string): 'ok' | Refusal {
    if (session !== this.#session) return 'FENCED'
    const found = this.#claims.get(claim)
    if (found === undefined || found.group.last !== found) return 'CLAIM_OVER'
    if (found.state !== 'held' && found.state !== 'expired') return 'CLAIM_OVER'
    found.state = 'held'
    return 'ok'
  }

  /** Decision: giving back twice is giving back once; a claim that another consumer took over, or that was used, is over. */
  giveBack(session: number, claim: string): 'ok' | Refusal {
    if (session !== this.#session) return 'FENCED'
    const found = this.#claims.get(claim)
    if (found === undefined || found.group.last !== found || found.state === 'used' || found.group.stale)
      return 'CLAIM_OVER'
    found.state = 'returned'
    return 'ok'
  }

  /** The row of the claim's group was used in `step`. Decision: any step is taken, however old. */
  dispose(session: number, claim: string, step: number): 'accepted' | 'repeated' | Refusal {
    if (session !== this.#session) return 'FENCED'
    const found = this.#claims.get(claim)
    // Decision (rule 2 saves expired claims only): one never made, or given back, is over.
    if (found === undefined || found.state === 'returned') return 'CLAIM_OVER'
    // Rule 2: "no other claim was made since". Decision: none, even if that claim ended too.
    if (found.group.last !== found) return 'CLAIM_OVER'
    const use = found.group.use
    // Decision: an older session's use stands, and no session says it again.
    if (use !== null) return use.step === step && found.session === session ? 'repeated' : 'CONFLICT'
    found.group.use = { step, isFinal: false }
    found.state = 'used'
    return 'accepted'
  }

  /** Makes uses up to `step` final. `attach` left only uses of the session's own lineage (rule 3). */
  checkpoint(session: number, step: number): 'ok' | Refusal {
    if (session !== this.#session) return 'FENCED'
    // Decision: rule 3, "had used": a later use of an older step waits for the next checkpoint.
    for (const { use } of this.#groups.values()) if (use !== null && use.step <= step) use.isFinal = true
    return 'ok'
  }

  /** Weights are announced as live. */
  live(session: number, weights: Weights, step: number | null): 'ok' | Refusal {
    if (session !== this.#session) return 'FENCED'
    const { ordinal, label } = weights
    const old = this.#versions.find((version) => version.weights.label === label)
    // Decision: rule 4, "a version knows its step": it must agree, and only the live weights are said again.
    if (old) return old === this.#live() && old.weights.ordinal === ordinal && old.step === step ? 'ok' : 'CONFLICT'
    // Decision: rule 4, "only grow": the ordinal is above all whose weights are not gone.
    if (ordinal <= (this.liveWeights?.ordinal ?? -Infinity)) return 'CONFLICT'
    this.#versions.push({ weights: { ordinal, label }, step, gone: false })
    return 'ok'
  }

  /** Rule 6: "downtime costs no lease". Decision: nothing else changes either, fences included. */
  paddockKilled(): void {}

  /** Decision (rule 4, "removes"): the newest weights that are not gone. */
  get liveWeights(): Weights | null {
    return this.#live()?.weights ?? null
  }

  /** Every group by name, oldest first. */
  states(): ReadonlyMap<string, GroupState> {
    return new Map(
      [...this.#groups.values()].map(({ name, use, stale, last }): [string, GroupState] => {
        const unused = stale ? 'stale' : last?.state === 'held' ? 'claimed' : 'free'
        return [name, { state: use ? 'used' : unused, step: use?.step ?? null, isFinal: use?.isFinal ?? false }]
      }),
    )
  }

  /** Standing ordinals only grow, so the last version that is not gone is the live one. */
  #live(): Version | null {
    return this.#versions.filter((version) => !version.gone).at(-1) ?? null
  }
}
