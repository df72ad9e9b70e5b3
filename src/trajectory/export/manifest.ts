import type { EngineFingerprint } from '../../core/index.ts'
import type { NullShare } from '../contract/index.ts'
import type { SelectionSummary, TokenAccounting } from '../rows-contract.ts'
import { advantageRule } from '../select/index.ts'
import type { TrainerNeeds } from './needs.ts'
import type { WrittenFile } from './sink.ts'

/** What may be mixed in one export although it usually must not. All default to false. */
export interface ExportAllowances {
  /** Rows whose logprobs are of different kinds in an `rl` export. */
  readonly mixedLogprobKinds: boolean
  /** Rows whose logprob kind was never probed in an `rl` export. */
  readonly unknownLogprobKind: boolean
  /** Verdicts of several versions of one verifier. */
  readonly mixedVerifiers: boolean
  /** Training of answers whose weights changed while they were sampled, in an `rl` export. */
  readonly mixedWeights: boolean
  /** Verdicts that were given on the files of the agent's own box, in an `rl` export. */
  readonly sharedVerdicts: boolean
  /** The same on tasks that were never validated. */
  readonly unvalidatedVerdicts: boolean
}

/** Facts gathered while rollouts pass. */
export interface ExportFacts {
  readonly rows: number
  readonly rowTokens: number
  readonly rollouts: number
  /** Rollouts that lost all rows to the exporter. */
  readonly emptied: readonly { readonly rolloutId: string; readonly reason: string; readonly detail: string }[]
  readonly groupSizes: Readonly<Record<string, number>>
  readonly groups: number
  readonly rewards: {
    readonly count: number
    readonly mean: number | null
    readonly std: number | null
    readonly min: number | null
    readonly max: number | null
  }
  readonly verdictStatuses: Readonly<Record<string, number>>
  readonly verdictTrusts: Readonly<Record<string, number>>
  readonly verifiers: readonly {
    readonly id: string
    readonly version: string
    readonly sha256: readonly string[]
    readonly rollouts: number
  }[]
  readonly tasks: readonly {
    readonly digest: string
    readonly name: string
    readonly environment: string
    readonly rollouts: number
  }[]
  readonly harnesses: Readonly<Record<string, number>>
  readonly ends: Readonly<Record<string, number>>
  readonly engines: readonly {
    readonly digest: string
    readonly fingerprint: EngineFingerprint
    readonly rows: number
  }[]
  readonly logprobKinds: Readonly<Record<string, number>>
  readonly policies: readonly {
    readonly model: string
    readonly adapter: string | null
    readonly weight_version: string | null
    readonly mixing: string
    readonly trained_tokens: number
  }[]
}

/** `manifest.json`: what an export holds, what it leaves out and why. Documented in docs/reference/export-manifest.md. */
export interface Manifest {
  readonly schema: 'paddock.manifest/1'
  /** RFC 3339, UTC. */
  readonly created_at: string
  readonly paddock_version: string
  readonly exporter: {
    readonly name: string
    readonly version: string
    readonly needs: string
    readonly purpose: string
    /** What the trainer needs, and the export holds. */
    readonly trainer: TrainerNeeds
    readonly options: unknown
  }
  readonly selection: Readonly<Record<string, unknown>>
  readonly allowances: Readonly<Record<string, boolean>>
  /** Sampled tokens; `sampled` = `trainable` + all of `masked` + all of `not_exported`. */
  readonly tokens: {
    readonly sampled: number
    readonly trainable: number
    readonly masked: Readonly<Record<string, number>>
    readonly not_exported: Readonly<Record<string, number>>
    /** Of answers of `from` to `to` tokens, from the shortest on: `share` is `trainable` / `sampled`. */
    readonly by_answer_length: readonly {
      readonly from: number
      readonly to: number
      readonly answers: number
      readonly sampled: number
      readonly trainable: number
      readonly share: number
    }[]
  }
  readonly rows: {
    readonly count: number
    readonly tokens: number
    /** Rows of exported rollouts that were left out, by reason. */
    readonly left_out: Readonly<Record<string, number>>
  }
  readonly rollouts: {
    readonly selected: number
    readonly exported: number
    readonly dropped: readonly { readonly rollout_id: string; readonly reason: string; readonly detail: string }[]
  }
  readonly groups: {
    readonly selected: number
    readonly exported: number
    /** Number of groups by number of exported rollouts. */
    readonly sizes: Readonly<Record<string, number>>
    readonly dropped: readonly { readonly group_id: string; readonly reason: string; readonly rollouts: number }[]
  }
  /** Over selected rollouts before any is dropped, but for imported and rewritten ones. */
  readonly nulls: Omit<NullShare, 'emptyTools'> & { readonly empty_tools: number }
  /** Over exported rollouts with a number, never over rows. `std` is the population's. */
  readonly rewards: ExportFacts['rewards']
  readonly drift: {
    readonly calls: number
    readonly should_extend: number
    readonly extended: number
    /** extended / should_extend, null where nothing should have. */
    readonly extension_rate: number | null
    readonly exact: number
    /** exact / calls, null without calls. */
    readonly exactness_rate: number | null
    readonly forks: Readonly<Record<string, number>>
  }
  readonly verdicts: {
    readonly statuses: Readonly<Record<string, number>>
    /** Rollouts by how far the agent was kept from what scored them. */
    readonly trusts: Readonly<Record<string, number>>
    readonly verifiers: ExportFacts['verifiers']
  }
  readonly tasks: ExportFacts['tasks']
  readonly harnesses: Readonly<Record<string, number>>
  readonly ends: Readonly<Record<string, number>>
  readonly engines: readonly Readonly<Record<string, unknown>>[]
  readonly logprob_kinds: Readonly<Record<string, number>>
  readonly policies: ExportFacts['policies']
  /** Which row trains a shared token, how a reward is spread over a rollout's rows, and what `advantage` is. */
  readonly rules: { readonly token_ownership: string; readonly reward_weight: string; readonly advantage: string }
  readonly files: readonly { readonly name: string; readonly size_bytes: number; readonly sha256: string }[]
  /** Files under `media/`, each named by its SHA-256. */
  readonly media: { readonly files: number; readonly size_bytes: number }
}

/** Everything a manifest is made of. */
export interface ManifestParts {
  readonly createdAt: number
  readonly paddockVersion: string
  readonly exporter: Manifest['exporter']
  readonly query: object
  readonly weightRule: string
  readonly allowances: ExportAllowances
  readonly tokens: TokenAccounting
  readonly summary: SelectionSummary
  readonly facts: ExportFacts
  readonly files: readonly WrittenFile[]
  readonly media: { readonly files: number; readonly sizeBytes: number }
}

/** Puts a manifest together. */
export function manifestOf(parts: ManifestParts): Manifest {
  const { summary, facts } = parts
  const { drift } = summary
  const { emptyTools, ...nulls } = summary.nulls
  return {
    schema: 'paddock.manifest/1',
    created_at: new Date(parts.createdAt).toISOString(),
    paddock_version: parts.paddockVersion,
    exporter: parts.exporter,
    selection: snakeKeys(parts.query),
    allowances: {
      mixed_logprob_kinds: parts.allowances.mixedLogprobKinds,
      unknown_logprob_kind: parts.allowances.unknownLogprobKind,
      mixed_verifiers: parts.allowances.mixedVerifiers,
      mixed_weights: parts.allowances.mixedWeights,
      shared_verdicts: parts.allowances.sharedVerdicts,
      unvalidated_verdicts: parts.allowances.unvalidatedVerdicts,
    },
    tokens: {
      sampled: parts.tokens.sampled,
      trainable: parts.tokens.trainable,
      masked: parts.tokens.masked,
      not_exported: parts.tokens.notExported,
      by_answer_length: parts.tokens.byAnswerLength.map((one) => ({ ...one, share: one.trainable / one.sampled })),
    },
    rows: { count: facts.rows, tokens: facts.rowTokens, left_out: summary.rowsLeftOut },
    rollouts: {
      selected: summary.rollouts.selected,
      exported: facts.rollouts,
      dropped: [...summary.rollouts.dropped, ...facts.emptied].map((drop) => ({
        rollout_id: drop.rolloutId,
        reason: drop.reason,
        detail: drop.detail,
      })),
    },
    groups: {
      selected: summary.groups.selected,
      exported: facts.groups,
      sizes: facts.groupSizes,
      dropped: summary.groups.dropped.map((drop) => ({
        group_id: drop.groupId,
        reason: drop.reason,
        rollouts: drop.rollouts,
      })),
    },
    nulls: { ...nulls, empty_tools: emptyTools },
    rewards: facts.rewards,
    drift: {
      calls: drift.calls,
      should_extend: drift.shouldExtend,
      extended: drift.extended,
      extension_rate: rate(drift.extended, drift.shouldExtend),
      exact: drift.exact,
      exactness_rate: rate(drift.exact, drift.calls),
      forks: drift.forks,
    },
    verdicts: { statuses: facts.verdictStatuses, trusts: facts.verdictTrusts, verifiers: facts.verifiers },
    tasks: facts.tasks,
    harnesses: facts.harnesses,
    ends: facts.ends,
    engines: facts.engines.map(({ digest, fingerprint, rows }) => ({ digest, ...snakeKeys(fingerprint), rows })),
    logprob_kinds: facts.logprobKinds,
    policies: facts.policies,
    rules: { token_ownership: 'train-once', reward_weight: parts.weightRule, advantage: advantageRule },
    files: parts.files.map((file) => ({ name: file.name, size_bytes: file.sizeBytes, sha256: file.sha256 })),
    media: { files: parts.media.files, size_bytes: parts.media.sizeBytes },
  }
}

/** Names of a flat object in the manifest's form. */
function snakeKeys(value: object): Readonly<Record<string, unknown>> {
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => [
      name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
      member,
    ]),
  )
}

function rate(part: number, whole: number): number | null {
  return whole === 0 ? null : part / whole
}
