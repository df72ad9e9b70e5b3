import { type Digest, isPaddockError, PaddockError, sha256 } from '../../core/index.ts'
import type { Scorer, Scores } from '../../proxy/index.ts'
import type { Catalogue, HandedRound, HandedRowWhole, HandedScores, ScoringRole } from '../../trajectory/index.ts'

export interface RoundScoresParts {
  /** Null: no engine is configured for the role. Rejects where it cannot be found out what it is. */
  readonly scorers: Readonly<Record<ScoringRole, (() => Promise<Scorer>) | null>>
  /** What the policy's tokenizer does; null where its engine does not tell. Throws `ENGINE_UNREACHABLE`. */
  readonly policyTokenizer: () => Promise<Digest | null>
  readonly catalogue: Pick<Catalogue, 'putFingerprint'>
}

/** So many logprobs are kept, of all engines together. */
const mostKept = 16 * 1024 * 1024

/** Logprobs of whole sequences by the weights that they are of. */
type Kept = Map<string, { readonly logprobs: Float32Array; readonly kind: Scores['kind'] }>

/** What an engine had to say of a round. */
interface Found {
  readonly told: HandedScores
  /** By row; null: none of them. */
  readonly logprobs: readonly Float32Array[] | null
}

/** Gives the rows of a settled round the logprobs of a reference model and of a teacher. What cannot be had is null, with the reason. */
export class RoundScores {
  readonly #parts: RoundScoresParts
  readonly #kept: Kept = new Map()
  #size = 0

  constructor(parts: RoundScoresParts) {
    this.#parts = parts
  }

  /** Throws `RUN_REFUSED` for a role that no engine is configured for. */
  require(asked: Readonly<Partial<Record<ScoringRole, boolean>>>): void {
    for (const role of rolesOf(asked)) {
      if (this.#parts.scorers[role] !== null) continue
      throw new PaddockError(
        'RUN_REFUSED',
        `no engine is configured for the role ${role}, so no row could have its logprobs`,
        {
          fix: `Name it in \`engines.${role}.url\` of the configuration, or leave \`score.${role}\` out.`,
        },
      )
    }
  }

  /** Throws `STORE_*`; what an engine fails of is told in the round. */
  async fill(round: HandedRound, asked: Readonly<Partial<Record<ScoringRole, boolean>>>): Promise<HandedRound> {
    const roles = rolesOf(asked)
    if (roles.length === 0) return round
    const found = new Map<ScoringRole, Found>()
    for (const role of roles) found.set(role, await this.#of(role, round.rows))
    const arrayOf = (role: ScoringRole, at: number) => found.get(role)?.logprobs?.[at] ?? null
    return {
      ...round,
      scores: Object.fromEntries([...found].map(([role, { told }]) => [role, told])),
      rows: round.rows.map((row, at) => ({
        ...row,
        ...(found.has('reference') ? { ref_logprobs: arrayOf('reference', at) } : {}),
        ...(found.has('teacher') ? { teacher_logprobs: arrayOf('teacher', at) } : {}),
      })),
    }
  }

  async #of(role: ScoringRole, rows: readonly HandedRowWhole[]): Promise<Found> {
    let known: Partial<HandedScores> = {}
    try {
      const scorer = await (this.#parts.scorers[role] ?? none)()
      const fingerprint = await scorer.identity()
      const engine = await this.#parts.catalogue.putFingerprint(fingerprint)
      known = { model: fingerprint.model, engine }
      const tokenizer = await this.#parts.policyTokenizer()
      if (tokenizer === null || fingerprint.tokenizer !== tokenizer) {
        const why = tokenizer === null || fingerprint.tokenizer === null ? 'is not known to be' : 'is not'
        return lacking(known, `its tokenizer ${why} the policy's: the same ids would be other texts`)
      }
      return await this.#score(scorer, rows, { model: fingerprint.model, engine })
    } catch (cause) {
      if (!isPaddockError(cause) || cause.code.startsWith('STORE_')) throw cause
      return lacking(known, `${cause.code}: ${cause.message}`)
    }
  }

  async #score(
    scorer: Scorer,
    rows: readonly HandedRowWhole[],
    about: { readonly model: string; readonly engine: Digest },
  ): Promise<Found> {
    const version = await scorer.weightVersion()
    // Of weights without a name nobody can say whether they are those of before: nothing is kept.
    const weights = version === null ? null : JSON.stringify([scorer.url, about.engine, version])
    const keys = rows.map(({ token_ids: ids }) => sha256(Buffer.from(ids.buffer, ids.byteOffset, ids.byteLength)))
    const known = new Map(keys.map((key) => [key, weights === null ? undefined : this.#kept.get(`${weights} ${key}`)]))
    const missing = rows.filter((_, at) => known.get(keys[at] ?? '') === undefined)
    let kind: Scores['kind'] | null = [...known.values()].find((one) => one !== undefined)?.kind ?? null
    if (missing.length > 0) {
      const scores = await scorer.score({ sequences: missing.map(({ token_ids: ids }) => ids), ifVersion: version })
      kind = scores.kind
      for (const [at, row] of missing.entries()) {
        const logprobs = Float32Array.from(scores.logprobs[at] ?? [], (one) => one ?? Number.NaN)
        const key = keys[rows.indexOf(row)] ?? ''
        known.set(key, { logprobs, kind })
        if (weights !== null) this.#keep(`${weights} ${key}`, { logprobs, kind })
      }
    }
    return {
      told: { ...about, version, kind, temperature: 1, missing: null },
      logprobs: keys.map((key) => known.get(key)?.logprobs ?? new Float32Array(0)),
    }
  }

  #keep(key: string, one: { readonly logprobs: Float32Array; readonly kind: Scores['kind'] }): void {
    if (this.#kept.has(key)) return
    this.#kept.set(key, one)
    this.#size += one.logprobs.length
    for (const [oldest, { logprobs }] of this.#kept) {
      if (this.#size <= mostKept) break
      this.#kept.delete(oldest)
      this.#size -= logprobs.length
    }
  }
}

function rolesOf(asked: Readonly<Partial<Record<ScoringRole, boolean>>>): readonly ScoringRole[] {
  return (['reference', 'teacher'] as const).filter((role) => asked[role] === true)
}

function lacking(known: Partial<HandedScores>, missing: string): Found {
  const nothing = { model: null, version: null, kind: null, engine: null }
  return { told: { ...nothing, ...known, temperature: 1, missing }, logprobs: null }
}

function none(): Promise<never> {
  return Promise.reject(new PaddockError('ENGINE_INCAPABLE', 'No engine is configured for this role any more.'))
}
