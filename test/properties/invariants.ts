/** The invariants I1 to I6 over generated conversations, judged against the engine's journal. */
import fc from 'fast-check'
import { expect } from 'vitest'
import type { Lab } from '../lab/lab.ts'
import { dialects } from '../lab/official.ts'
import { freshName, converse, type Conversed } from './converse.ts'
import { type Incident, type Scenario, scenarios } from './scenario.ts'

/** Every template profile of the scripted engine. */
export const profiles = [
  'scripted-hermes',
  'scripted-qwen',
  'scripted-qwen3',
  'scripted-qwen3-thinking',
  'scripted-llama',
] as const

/** What conversations may meet, in groups that are judged alike. */
export const incidents: readonly Kind[] = [
  { name: 'nothing but turns', incidents: [] },
  { name: 'retries at each turn', incidents: ['replay', 'hang_up', 'engine_dies'] },
  { name: 'cuts, sub-agents, compaction', incidents: ['cut', 'sub_agent', 'compaction'] },
  {
    name: 'everything, in tokens that no tokenizer would choose',
    incidents: ['replay', 'hang_up', 'engine_dies', 'cut', 'sub_agent', 'compaction'],
    nonCanonical: true,
  },
]

interface Kind {
  readonly name: string
  readonly incidents: readonly Incident[]
  readonly nonCanonical?: boolean
}

/** Holds `runs` conversations of a kind and checks each. */
export async function propertyOf(
  given: Kind & { readonly lab: Lab; readonly runs: number; readonly seed: number },
): Promise<void> {
  const { lab } = given
  await fc.assert(
    fc.asyncProperty(scenarios(given), async (scenario) => {
      holds(scenario, await converse(lab, scenario))
    }),
    { numRuns: given.runs, seed: given.seed, endOnFailure: true },
  )
  expect(await lab.problems()).toEqual([])
}

/** What the journal knows better than what was told. */
const untrue: Readonly<Record<string, readonly string[]>> = { bad_logprob: ['logprob'], wrong_usage: ['accounting'] }

/** What the engine gets wrong is found, never hidden: whatever it does, no token is trained that is not the truth. */
export async function survivesFaults(given: {
  readonly lab: Lab
  readonly runs: number
  readonly seed: number
}): Promise<void> {
  await fc.assert(
    fc.asyncProperty(scenarios({ incidents: ['fault'] }), async (scenario) => {
      const { judged, met } = await converse(given.lab, scenario)
      const { report, manifest, forks, findings, log } = judged
      const { kind } = scenario.fault
      // The floor is no true logprob, and a count that is wrong by itself is believed: both are found, as below.
      const lost = ['extension']
      // SGLang tells ids beside logprobs: a server that leaves the one out leaves the other out, and that is found.
      const idsLeft = kind === 'null_logprobs' && findings.includes('missing_ids')
      const found = kind === 'drop_token_ids' || idsLeft ? lost : (untrue[kind] ?? [])
      expect(report.deviations.filter((one) => !found.includes(one.kind))).toEqual([])
      const { sampled, trainable, masked, not_exported: left } = manifest.tokens
      const buckets = [...Object.values(masked), ...Object.values(left)].reduce((sum, count) => sum + count, trainable)
      expect(buckets).toBe(sampled)
      expect(forks).not.toContain('unknown')
      expect(log.calls.filter((call) => call.commit === null)).toEqual([])
      const marks = {
        bad_logprob: /^(nan|floored)_logprob$/,
        null_logprobs: /^missing_logprobs$/,
        wrong_usage: /^count_mismatch$/,
      } as const
      if (met.has('fault') && kind in marks) {
        const mark = marks[kind as keyof typeof marks]
        expect(findings.filter((one) => mark.test(one)).length).toBeGreaterThan(0)
      }
    }),
    { numRuns: given.runs, seed: given.seed, endOnFailure: true },
  )
  expect(await given.lab.problems()).toEqual([])
}

/** I10: the same conversation gives the engine the same ids, in whatever dialect, streamed or not. */
export async function oneMeaning(given: {
  readonly lab: Lab
  readonly runs: number
  readonly seed: number
}): Promise<void> {
  await fc.assert(
    fc.asyncProperty(scenarios({ incidents: [] }), async (scenario) => {
      const name = freshName()
      const prompts = new Map<string, readonly (readonly number[])[]>()
      for (const dialect of dialects) {
        for (const stream of [false, true]) {
          const conversed = await converse(given.lab, { ...scenario, dialect, stream, echo: 'given' }, name)
          prompts.set(`${dialect}, streamed ${stream}`, conversed.prompts)
        }
      }
      const [first] = prompts.values()
      for (const [way, ids] of prompts) expect([way, ids]).toEqual([way, first])
    }),
    { numRuns: given.runs, seed: given.seed, endOnFailure: true },
  )
}

/** What a harness does to its history is its own; these causes must not appear where nothing of the kind was done. */
const ofTemplates = ['think_stripped', 'json_reserialised', 'template', 'boundary_merge', 'truncated']

/** Everything that must be true of a finished conversation. */
export function holds(scenario: Scenario, { judged, calls, met, prompts }: Conversed): void {
  const { report, manifest, log, forks, findings } = judged
  // I1 to I4: ids, logprobs, context, ownership, buckets, extension, by the comparer that knows none of us.
  expect(report.deviations).toEqual([])
  expect(findings).toEqual([])
  // I6: one stored call for each call that was no repetition, and no sample for a repetition.
  expect(log.calls).toHaveLength(calls)
  expect(log.calls.filter((call) => call.commit?.outcome.kind !== 'engine_error')).toHaveLength(prompts.length)
  expect(log.calls.filter((call) => call.commit === null)).toEqual([])
  // Nothing is lost to a row: each sampled token trains.
  expect([manifest.tokens.trainable, manifest.tokens.masked, manifest.tokens.not_exported]).toEqual([
    report.sampledTokens,
    {},
    {},
  ])
  expect(manifest.drift.exactness_rate).toBe(1)
  const threads = report.rows - forks.length
  // A harness that gives back only what it understood may send nothing of an answer that was cut.
  const isAppendOnly = !met.has('cut') || scenario.echo === 'given'
  if (scenario.strategy === 'splice') {
    expect(log.calls.every((call) => call.intent.strategy === 'splice')).toBe(true)
    // Structurally append-only turns extend, whatever the template does.
    expect(forks.filter((cause) => isAppendOnly || cause !== 'harness_rewrite')).toEqual([])
    if (forks.length === 0) expect(manifest.drift.extension_rate ?? 1).toBe(1)
  } else {
    expect(forks.filter((cause) => !ofTemplates.includes(cause))).toEqual([])
  }
  if (isAppendOnly && !met.has('compaction') && !met.has('sub_agent')) expect(threads).toBe(1)
}
