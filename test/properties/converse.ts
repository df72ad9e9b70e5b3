/** Holds a generated conversation against a lab and says what must be true of it afterwards. */
import { expect } from 'vitest'
import { hangUp, keyHeader, type Lab, type LabRollout, type Judged, refresh, shell } from '../lab/lab.ts'
import type { Asking, Said, Speaker } from '../lab/speaker.ts'
import type { Incident, Scenario } from './scenario.ts'

const tools = [shell, refresh]
let numbers = 0

/** What a finished conversation came to. */
export interface Conversed {
  readonly judged: Judged
  /** Calls that the harness made: each must be in the store exactly once. */
  readonly calls: number
  /** Incidents that really happened. */
  readonly met: ReadonlySet<Incident>
  /** What the agent was told, call by call. */
  readonly said: readonly Said[]
  /** Prompt ids of each answer, in order of the journal. */
  readonly prompts: readonly (readonly number[])[]
}

/** A name that no other conversation has. */
export function freshName(): string {
  numbers += 1
  return `Job ${numbers}:`
}

/** Runs a scenario as one rollout and judges it. */
export async function converse(lab: Lab, scenario: Scenario, name = freshName()): Promise<Conversed> {
  const steps = scenario.acts.flatMap(({ think, calls }) => [
    ...(think === null ? [] : [{ think }]),
    calls.length === 1 ? calls[0] : { parallel: calls },
  ])
  await lab.script(`${name} tidy the house.`, [...steps, { say: scenario.last }] as object[])
  await lab.script(`${name} now the cellar.`, [{ think: 'Down.' }, { shell: 'cd cellar' }, { say: 'Dark, but tidy.' }])
  await lab.script(`${name} look aside.`, [{ shell: 'ls aside' }, { say: 'Nothing there.' }])
  const rollout = await lab.rollout({ strategy: scenario.strategy, history: 'sampled' })
  if (scenario.nonCanonical) await lab.fault({ kind: 'non_canonical', count: 2, match: { session: rollout.sessionId } })
  const harness = new Harness(lab, rollout, scenario, name)
  await harness.work(`${name} tidy the house.`)
  if (scenario.second) await harness.work(`${name} now the cellar.`)
  const judged = await rollout.judge()
  const truth = await rollout.truth()
  return {
    judged,
    calls: harness.calls,
    met: harness.met,
    said: harness.heard,
    prompts: truth.map((choice) => choice.prompt),
  }
}

class Harness {
  calls = 0
  readonly met = new Set<Incident>()
  readonly heard: Said[] = []
  private readonly lab: Lab
  private readonly rollout: LabRollout
  private readonly scenario: Scenario
  private readonly name: string
  private readonly main: Speaker
  private turn = 0

  constructor(lab: Lab, rollout: LabRollout, scenario: Scenario, name: string) {
    this.lab = lab
    this.rollout = rollout
    this.scenario = scenario
    this.name = name
    this.main = rollout.speaker(scenario.dialect)
  }

  /** Works until the model makes no more calls. */
  async work(instruction: string): Promise<void> {
    this.main.user(instruction)
    for (let act = 0; act < 12; act += 1) {
      const incident = this.scenario.incidents[this.turn] ?? 'none'
      this.turn += 1
      if (incident === 'compaction' && act > 0) {
        this.met.add(incident)
        this.main.restart('Take care.')
        this.main.user(`This session is being continued. Summary: a little was done. ${instruction}`)
      }
      if (incident === 'sub_agent') await this.aside()
      const said = await this.ask(this.main, incident)
      this.heard.push(said)
      this.main.take(said, this.scenario.echo)
      if (incident === 'cut' && /length|max|MAX/.test(said.finish)) {
        this.met.add(incident)
        // What was asked for before the cut is answered, as real clients must.
        if (said.calls.length > 0)
          this.main.results(
            said,
            said.calls.map(() => 'done'),
          )
        this.main.user('Go on.')
        continue
      }
      if (said.calls.length === 0) return
      const outputs = this.scenario.acts[act % this.scenario.acts.length]?.outputs ?? []
      this.main.results(said, outputs)
    }
  }

  /** A sub-agent: another conversation under the same key. */
  private async aside(): Promise<void> {
    this.met.add('sub_agent')
    const helper = this.rollout.speaker(this.scenario.dialect, 'You are a helper that looks aside.')
    helper.user(`${this.name} look aside.`)
    for (let act = 0; act < 4; act += 1) {
      const said = await this.ask(helper, 'none')
      helper.take(said, this.scenario.echo)
      if (said.calls.length === 0) return
      helper.results(said, ['nothing'])
    }
  }

  private async ask(speaker: Speaker, incident: Incident): Promise<Said> {
    const { scenario, rollout, lab } = this
    const maxTokens = incident === 'cut' ? scenario.cutAt : 600
    const asking: Partial<Asking> = { stream: scenario.stream, maxTokens, tools }
    const retry = { 'x-stainless-retry-count': '1' }
    this.calls += 1
    switch (incident) {
      case 'engine_dies': {
        this.met.add(incident)
        // Twice: a dead connection is tried anew once.
        await lab.fault({ kind: 'die', at: 'before_headers', count: 2, match: { session: rollout.sessionId } })
        await expect(rollout.ask(speaker, asking)).rejects.toThrow(/^502 /)
        this.calls += 1
        return rollout.ask(speaker, asking, retry)
      }
      case 'fault': {
        this.met.add(incident)
        await lab.fault({ ...scenario.fault, match: { session: rollout.sessionId } })
        const first = await rollout.ask(speaker, asking).catch(() => null)
        if (first !== null) return first
        this.calls += 1
        const second = await rollout.ask(speaker, asking, retry).catch(() => null)
        if (second !== null) return second
        this.calls += 1
        return rollout.ask(speaker, asking, { 'x-stainless-retry-count': '2' })
      }
      case 'hang_up': {
        this.met.add(incident)
        const asked = { model: lab.model, maxTokens, tools, stream: true }
        const { path, body } = speaker.request(asked)
        await hangUp(`${rollout.root}${path}`, body, keyHeader(speaker.dialect, rollout.key))
        return rollout.ask(speaker, asking, retry)
      }
      case 'replay': {
        this.met.add(incident)
        const first = await rollout.ask(speaker, asking)
        await this.expectStored(first)
        const again = await rollout.ask(speaker, asking, retry)
        expect([again.text, again.calls]).toEqual([first.text, first.calls])
        return again
      }
      default: {
        const said = await rollout.ask(speaker, asking)
        await this.expectStored(said)
        return said
      }
    }
  }

  /** I5: what the client can act on is in the store, not on its way there. */
  private async expectStored(said: Said): Promise<void> {
    const { calls, segments } = await this.rollout.log()
    const commit = calls.at(-1)?.commit
    expect(commit?.outcome).toEqual({ kind: 'complete' })
    expect(JSON.parse(commit?.choices[0]?.message ?? '{}').content ?? '').toBe(said.text)
    expect(segments.some((segment) => segment.id === commit?.choices[0]?.segmentId)).toBe(true)
  }
}
