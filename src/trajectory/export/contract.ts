/**
 * The contract of an exporter: a leaf plugin that turns rollouts into the files of one trainer. The framework
 * ({@link ../export/run.ts}) selects, refuses, counts, hashes and renames; an exporter only writes.
 */
import { z } from 'zod'
import { PaddockError } from '../../core/index.ts'
import { problemsOf } from '../problems.ts'
import type { DropReason, ExportRollout, Row } from '../rows-contract.ts'
import { needNames, type TrainerNeeds } from './needs.ts'

/** One file of an export, while it is written. Bytes go to disk in order; memory does not grow with the file. */
export interface SinkFile {
  /** Resolves when the bytes are handed to the operating system. */
  write(chunk: Uint8Array | string): Promise<void>
  /** Bytes accepted so far. */
  readonly sizeBytes: number
}

/** Where an exporter writes. */
export interface ExportSink {
  /** Opens one of the declared files; each once. Throws `EXPORTER_INVALID` for a name that is not declared. */
  open(name: string): Promise<SinkFile>
}

/**
 * What the rows are for:
 * - `rl`: policy gradient. Null verdicts, tainted and unfinished rollouts are left out; mixed or unknown logprob
 *   kinds are refused unless allowed (invariants I1, I7);
 * - `sft`: imitation. Unusable rollouts are left out; logprobs are not looked at;
 * - `archive`: everything, with what is known of its usability.
 */
export type ExportPurpose = 'rl' | 'sft' | 'archive'

/** What a plugin author writes. `Options` is the output of `options`. */
export interface ExporterSpec<Options> {
  /** Lower-case letters, digits, dashes. */
  readonly name: string
  /** Semantic version of the shape that is written. */
  readonly version: string
  /** One line for `--help`. */
  readonly summary: string
  /** `tokens`: rows as ids; one tokenizer per export. `messages`: rows as conversations. */
  readonly needs: 'tokens' | 'messages'
  readonly purpose: ExportPurpose
  /** What its trainer needs beyond the form of rows; the framework refuses an export that does not hold it. */
  readonly trainer: TrainerNeeds
  /** Names of the files it writes, without directories. All are written, also for an empty selection. */
  readonly files: readonly string[]
  readonly options: z.ZodType<Options>
  /**
   * Leaves single rows out, with a reason; their tokens are counted as not exported. Default: takes every row. Not for
   * `rl`: a member that is left out behind the selection would shift its group.
   */
  accept?(rollout: ExportRollout, row: Row, options: Options): DropReason | null
  /** Consumes all rollouts, one after another, holding at most a bounded batch of them. */
  write(rollouts: AsyncIterable<ExportRollout>, sink: ExportSink, options: Options): Promise<void>
}

/** An exporter with parsed options. */
export interface PreparedExporter {
  accept(rollout: ExportRollout, row: Row): DropReason | null
  write(rollouts: AsyncIterable<ExportRollout>, sink: ExportSink): Promise<void>
}

/** A registered exporter. */
export interface Exporter {
  readonly name: string
  readonly version: string
  readonly summary: string
  readonly needs: 'tokens' | 'messages'
  readonly purpose: ExportPurpose
  readonly trainer: TrainerNeeds
  readonly files: readonly string[]
  /** JSON schema of the options, for `--help` and the manifest. */
  readonly optionsSchema: unknown
  /** Throws `USAGE` that names the option and what is wrong with it. */
  prepare(options: unknown): PreparedExporter
}

/** Name of the manifest beside the files of every export. */
export const manifestName = 'manifest.json'

/** Checks a plugin at load time. Throws `EXPORTER_INVALID` that names the part to correct. */
export function defineExporter<Options>(spec: ExporterSpec<Options>): Exporter {
  checkSpec(spec)
  const optionsSchema = z.toJSONSchema(spec.options, { io: 'input', unrepresentable: 'any' })
  return {
    name: spec.name,
    version: spec.version,
    summary: spec.summary,
    needs: spec.needs,
    purpose: spec.purpose,
    trainer: spec.trainer,
    files: spec.files,
    optionsSchema,
    prepare(given) {
      const parsed = spec.options.safeParse(given ?? {})
      if (!parsed.success) {
        throw new PaddockError('USAGE', `Options of exporter ${spec.name}: ${problemsOf(parsed.error)}`, {
          fix: optionsText(optionsSchema),
        })
      }
      return {
        accept: (rollout, row) => spec.accept?.(rollout, row, parsed.data) ?? null,
        write: (rollouts, sink) => spec.write(rollouts, sink, parsed.data),
      }
    },
  }
}

/** The options of a schema, each with its type or its values. */
function optionsText({ properties = {} }: z.core.JSONSchema.BaseSchema): string {
  const options = Object.entries(properties).map(([name, schema]) => {
    const { type, enum: values } = typeof schema === 'boolean' ? {} : schema
    const kinds = values ?? (type === undefined ? [] : [type].flat())
    return kinds.length === 0 ? name : `${name} (${kinds.join(' | ')})`
  })
  return options.length === 0 ? 'It has no options.' : `Its options: ${options.join(', ')}.`
}

function checkSpec<Options>(spec: ExporterSpec<Options>): void {
  const refuse = (problem: string): never => {
    throw new PaddockError('EXPORTER_INVALID', `Exporter ${JSON.stringify(spec.name)}: ${problem}`)
  }
  if (typeof spec.name !== 'string' || !/^[a-z][a-z0-9-]*$/.test(spec.name)) {
    refuse('`name` must be lower-case letters, digits and dashes')
  }
  if (typeof spec.version !== 'string' || !/^\d+\.\d+\.\d+$/.test(spec.version)) {
    refuse('`version` must be like 1.0.0')
  }
  if (spec.needs !== 'tokens' && spec.needs !== 'messages') refuse('`needs` must be tokens or messages')
  if (!['rl', 'sft', 'archive'].includes(spec.purpose)) refuse('`purpose` must be rl, sft or archive')
  if (spec.purpose === 'rl' && spec.needs !== 'tokens') refuse('an `rl` exporter needs tokens')
  for (const need of needNames) {
    if (typeof spec.trainer?.[need] !== 'boolean') refuse(`\`trainer.${need}\` must be true or false`)
  }
  if (spec.purpose === 'rl' && spec.accept !== undefined) {
    refuse('an `rl` exporter has no `accept`: a row that it leaves out would shift its group')
  }
  if (!Array.isArray(spec.files) || spec.files.length === 0) refuse('`files` must name at least one file')
  for (const file of spec.files) {
    if (!/^[A-Za-z0-9][A-Za-z0-9._-]*$/.test(file)) refuse(`file name ${JSON.stringify(file)} must be a plain name`)
    if (file === manifestName) refuse(`${manifestName} is written by the framework`)
  }
  if (new Set(spec.files).size !== spec.files.length) refuse('`files` names one file twice')
  if (typeof spec.write !== 'function') refuse('`write` must be a function')
  if (typeof spec.options?.safeParse !== 'function') refuse('`options` must be a zod schema')
}
