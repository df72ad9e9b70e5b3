import {
  type Digest,
  type EngineFingerprint,
  type ErrorData,
  isDoubtful,
  PaddockError,
  type Verdict,
} from '../../core/index.ts'
import { verdictOfPolicy } from '../contract/index.ts'
import type { DropReason, ExportRollout, Row } from '../rows-contract.ts'
import type { Exporter } from './contract.ts'
import { imitates, isAnswer } from './conversation.ts'
import type { ExportAllowances, ExportFacts } from './manifest.ts'

/**
 * Watches the rollouts of an export pass, refuses what must not be mixed as soon as it is seen, and keeps the facts
 * for the manifest. Memory grows with tasks and groups, never with rows.
 */
export class ExportLedger {
  readonly #exporter: Pick<Exporter, 'name' | 'needs' | 'purpose'>
  readonly #allow: ExportAllowances
  readonly #fingerprintOf: (digest: Digest) => Promise<EngineFingerprint>
  readonly #engines = new Map<Digest, { readonly fingerprint: EngineFingerprint; rows: number }>()
  readonly #logprobKinds = new Map<string, number>()
  readonly #trainedKinds = new Set<string>()
  readonly #trainedPolicies = new Set<string>()
  readonly #policies = new Map<string, ExportFacts['policies'][number]>()
  readonly #verifiers = new Map<
    string,
    { readonly id: string; readonly version: string; readonly sha256: Set<string>; rollouts: number }
  >()
  readonly #verifierOfTask = new Map<string, Digest>()
  readonly #verifierVersion = new Map<string, string>()
  readonly #statuses = new Map<string, number>()
  readonly #trusts = new Map<string, number>()
  readonly #tasks = new Map<Digest, { digest: Digest; name: string; environment: string; rollouts: number }>()
  readonly #groups = new Map<string, number>()
  readonly #harnesses = new Map<string, number>()
  readonly #ends = new Map<string, number>()
  readonly #emptied: ExportFacts['emptied'][number][] = []
  readonly #rewards = new RewardStatistics()
  #tokenizer: string | null = null
  #rows = 0
  #rowTokens = 0
  #rollouts = 0

  constructor(
    exporter: Pick<Exporter, 'name' | 'needs' | 'purpose'>,
    allow: ExportAllowances,
    fingerprintOf: (digest: Digest) => Promise<EngineFingerprint>,
  ) {
    this.#exporter = exporter
    this.#allow = allow
    this.#fingerprintOf = fingerprintOf
  }

  /** Notes a rollout with the rows that are written. Throws `EXPORT_REFUSED`. */
  async note(rollout: ExportRollout): Promise<void> {
    this.#noteVerdict(rollout)
    for (const row of rollout.rows) await this.#noteRow(row, rollout)
    this.#rollouts += 1
    count(this.#groups, rollout.group.id)
    count(this.#harnesses, rollout.rollout.harness)
    count(this.#ends, rollout.rollout.end ?? 'unfinished')
    const { taskDigest } = rollout.rollout
    const task = this.#tasks.get(taskDigest)
    if (task !== undefined) task.rollouts += 1
    else {
      const { taskName: name, environment } = rollout
      this.#tasks.set(taskDigest, { digest: taskDigest, name, environment, rollouts: 1 })
    }
  }

  /** Notes a rollout of which the exporter took no row. */
  noteEmptied(rollout: ExportRollout, reason: DropReason): void {
    this.#emptied.push({
      rolloutId: rollout.rollout.id,
      reason,
      detail: rollout.rows.length === 0 ? 'it has no rows' : `exporter ${this.#exporter.name} takes none of its rows`,
    })
  }

  /** What was seen. */
  facts(): ExportFacts {
    const sizes = new Map<string, number>()
    for (const size of this.#groups.values()) count(sizes, String(size))
    return {
      rows: this.#rows,
      rowTokens: this.#rowTokens,
      rollouts: this.#rollouts,
      emptied: this.#emptied,
      groups: this.#groups.size,
      groupSizes: Object.fromEntries(sizes),
      rewards: this.#rewards.result(),
      verdictStatuses: Object.fromEntries(this.#statuses),
      verdictTrusts: Object.fromEntries(this.#trusts),
      verifiers: [...this.#verifiers.values()].map((verifier) => ({
        ...verifier,
        sha256: [...verifier.sha256].toSorted(),
      })),
      tasks: [...this.#tasks.values()],
      harnesses: Object.fromEntries(this.#harnesses),
      ends: Object.fromEntries(this.#ends),
      engines: [...this.#engines].map(([digest, engine]) => ({ digest, ...engine })),
      logprobKinds: Object.fromEntries(this.#logprobKinds),
      policies: [...this.#policies.values()],
    }
  }

  #noteVerdict({ rollout, verdict }: ExportRollout): void {
    count(this.#statuses, verdict?.status ?? 'none')
    if (verdict === null || verdict.reward === null) {
      if (this.#exporter.purpose === 'rl') {
        throw this.#refuse(`rollout ${rollout.id} has no reward (${verdict?.status ?? 'no verdict'})`, {
          fix: 'An RL format has no place for a null verdict; leave it out of the selection, or export as jsonl.',
        })
      }
    } else this.#rewards.add(verdict.reward)
    if (verdict === null) return
    count(this.#trusts, verdict.trust)
    this.#requireTrusted(rollout, verdict)
    const { id, version, sha256 } = verdict.verifier
    const key = JSON.stringify([id, version])
    const known = this.#verifiers.get(key)
    if (known === undefined) this.#verifiers.set(key, { id, version, sha256: new Set([sha256]), rollouts: 1 })
    else {
      known.sha256.add(sha256)
      known.rollouts += 1
    }
    if (this.#allow.mixedVerifiers || this.#exporter.purpose === 'archive') return
    const sameVersion = remember(this.#verifierVersion, id, version)
    // Different tasks bring different test files, so content is compared within a task only.
    const sameContent = remember(this.#verifierOfTask, JSON.stringify([id, rollout.taskDigest]), sha256)
    if (sameVersion && sameContent) return
    throw this.#refuse(`verdicts of different versions of verifier ${id} are mixed`, {
      data: { verifier: id, rollout: rollout.id },
      fix: 'Run `paddock rescore`, narrow the selection, or allow mixed verifiers.',
    })
  }

  #requireTrusted({ id, runId }: ExportRollout['rollout'], { trust }: Verdict): void {
    if (this.#exporter.purpose !== 'rl' || !isDoubtful(trust)) return
    const { sharedVerdicts, unvalidatedVerdicts } = this.#allow
    if (trust === 'shared' ? sharedVerdicts : unvalidatedVerdicts) return
    const what = {
      shared: "was scored on the files of its agent's own box",
      unvalidated: "was scored on the files of its agent's own box, and its task was never validated",
    }[trust]
    throw this.#refuse(`rollout ${id} ${what}`, {
      data: { rollout: id, trust },
      fix: `Run \`paddock validate <tasks>\` and \`paddock rescore ${runId}\`, or allow ${trust} verdicts.`,
    })
  }

  /** A file to learn from has the rows and rewards of one policy. */
  #requireOnePolicy(row: Row, { rollout, verdict }: Pick<ExportRollout, 'rollout' | 'verdict'>): void {
    const fix = 'Export each policy separately: --policy <name>.'
    if (row.policy !== undefined) this.#trainedPolicies.add(row.policy)
    if (this.#trainedPolicies.size > 1) {
      const policies = [...this.#trainedPolicies]
      throw this.#refuse(`rows of the policies ${policies.join(' and ')} are mixed`, {
        data: { row: row.id, policies },
        fix,
      })
    }
    if (verdictOfPolicy(verdict, row.policy ?? null)?.reward === verdict?.reward) return
    throw this.#refuse(`policy ${row.policy ?? ''} has a reward of its own, and the rows would have the shared one`, {
      data: { row: row.id, rollout: rollout.id, policy: row.policy ?? null },
      fix,
    })
  }

  async #noteRow(row: Row, { rollout, verdict }: ExportRollout): Promise<void> {
    this.#rows += 1
    this.#rowTokens += row.tokens.length
    count(this.#logprobKinds, row.logprobKind)
    await this.#noteEngine(row)
    this.#notePolicies(row)
    const { purpose } = this.#exporter
    // Imitation needs no logprobs, so a row without them is learned all the same.
    const learns = purpose === 'rl' ? row.mask.includes(1) : row.segments.some((one) => isAnswer(one) && imitates(one))
    if (purpose === 'archive' || !learns) return
    this.#requireOnePolicy(row, { rollout, verdict })
    if (purpose !== 'rl') return
    if (row.logprobKind === 'unknown' && !this.#allow.unknownLogprobKind) {
      throw this.#refuse(`row ${row.id} has logprobs of unknown kind`, {
        fix: 'Run `paddock doctor` against the engine to probe the kind, or allow the unknown kind.',
      })
    }
    this.#trainedKinds.add(row.logprobKind)
    if (this.#trainedKinds.size > 1 && !this.#allow.mixedLogprobKinds) {
      const kinds = [...this.#trainedKinds]
      throw this.#refuse(`logprobs of kinds ${kinds.join(' and ')} are mixed`, {
        data: { row: row.id, kinds },
        fix: 'Narrow the selection to one kind, or allow mixed kinds.',
      })
    }
  }

  async #noteEngine(row: Row): Promise<void> {
    const digest = row.fingerprint
    if (digest === null) return
    let engine = this.#engines.get(digest)
    if (engine === undefined) {
      engine = { fingerprint: await this.#fingerprintOf(digest), rows: 0 }
      this.#engines.set(digest, engine)
      if (this.#exporter.needs === 'tokens') this.#checkTokenizer(engine.fingerprint)
    }
    engine.rows += 1
  }

  #checkTokenizer(fingerprint: EngineFingerprint): void {
    // An engine that hides its tokenizer has that of its model.
    const tokenizer = fingerprint.tokenizer ?? `of model ${fingerprint.model}`
    this.#tokenizer ??= tokenizer
    if (this.#tokenizer === tokenizer) return
    throw this.#refuse(`token ids of two tokenizers are mixed: ${this.#tokenizer} and ${tokenizer}`, {
      data: { tokenizers: [this.#tokenizer, tokenizer] },
      fix: 'Narrow the selection to one model.',
    })
  }

  #notePolicies(row: Row): void {
    for (const span of row.policySpans) {
      const { model, adapter, weightVersion } = span.policy
      const key = JSON.stringify([model, adapter, weightVersion, span.mixing])
      let trained = 0
      for (let i = span.start; i < span.end; i += 1) trained += row.mask[i] ?? 0
      this.#policies.set(key, {
        model,
        adapter,
        weight_version: weightVersion,
        mixing: span.mixing,
        trained_tokens: (this.#policies.get(key)?.trained_tokens ?? 0) + trained,
      })
    }
  }

  #refuse(problem: string, options: { fix: string; data?: ErrorData }): PaddockError {
    return new PaddockError('EXPORT_REFUSED', `Export as ${this.#exporter.name}: ${problem}`, options)
  }
}

/** Mean and population standard deviation in one pass (Welford 1962). */
class RewardStatistics {
  #count = 0
  #mean = 0
  #m2 = 0
  #min = Number.POSITIVE_INFINITY
  #max = Number.NEGATIVE_INFINITY

  add(value: number): void {
    this.#count += 1
    const delta = value - this.#mean
    this.#mean += delta / this.#count
    this.#m2 += delta * (value - this.#mean)
    this.#min = Math.min(this.#min, value)
    this.#max = Math.max(this.#max, value)
  }

  result(): ExportFacts['rewards'] {
    if (this.#count === 0) return { count: 0, mean: null, std: null, min: null, max: null }
    return {
      count: this.#count,
      mean: this.#mean,
      std: Math.sqrt(this.#m2 / this.#count),
      min: this.#min,
      max: this.#max,
    }
  }
}

function count(counts: Map<string, number>, key: string): void {
  counts.set(key, (counts.get(key) ?? 0) + 1)
}

/** True when `value` is what is known of `key`, or the first that is known. */
function remember(known: Map<string, string>, key: string, value: string): boolean {
  const earlier = known.get(key)
  if (earlier === undefined) known.set(key, value)
  return earlier === undefined || earlier === value
}
