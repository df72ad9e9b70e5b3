import type { Task, Verdict } from '../core/index.ts'
import { actionsOf, detect, evidenceLimit } from '../reward/index.ts'
import type { StageContext } from './attempt-context.ts'

/** Most of the evidence that findings may take; the verifier's own output says more. */
const linesLimit = 2000

/**
 * Looks through what the agent did for what honest work seldom needs. Findings are an event `audit`, a label `audit` with
 * the names of the detectors, and lines of the verdict's evidence. The number stays as the verifier gave it. Throws
 * `STORE_*`.
 */
export async function audited({ run, log }: StageContext, task: Task, verdict: Verdict): Promise<Verdict> {
  const { recorder, catalogue } = run.store
  const { rolloutId } = log
  await log.settled()
  const sessions = await recorder.sessions({ rolloutId })
  const logs = await Promise.all(sessions.map(({ id }) => recorder.session(id, { bodies: [] })))
  const events = await recorder.events({ rolloutId })
  const isReadOnly = run.environment?.isReadOnly(task) ?? false
  const findings = detect({ ...actionsOf(logs), events, isReadOnly })
  if (findings.length === 0) return verdict
  log.emit({ kind: 'custom', name: 'audit', data: { findings } })
  const names = [...new Set(findings.map(({ detector }) => detector))]
  await catalogue.label(rolloutId, 'audit', names.join(','))
  const lines = findings.map(({ detector, callId, seen }) => `audit ${detector} (call ${callId ?? 'none'}): ${seen}`)
  const told = lines.join('\n').slice(0, linesLimit)
  const evidence = [verdict.evidence.slice(-(evidenceLimit - told.length - 1)), told].filter((part) => part !== '')
  return { ...verdict, evidence: evidence.join('\n') }
}
