import type { Event, Id } from '../../core/index.ts'
import { ageOf, type HandedOutRow, type StoredDisposition } from '../../trajectory/index.ts'
import type {
  CallPlace,
  Picture,
  TerminalPage,
  TerminalStep,
  TimelineLine,
  TimelinePage,
  TrainedRow,
  TrainingPage,
} from './contract.ts'
import { fittingFrom } from './fit.ts'

/** Characters of a text of an event that a page gets; the rest is counted. */
const maxTextChars = 8000
const maxTitleChars = 300
const mostRows = 200
const mostDispositions = 1000

/** Where each call of a rollout stands. */
export type CallPlaces = ReadonlyMap<Id, CallPlace>

/** A part of the timeline: as many events as fit into a reply, at least one. */
export function timelinePart(
  events: readonly Event[],
  calls: CallPlaces,
  { after, limit }: { readonly after: number; readonly limit: number },
): TimelinePage {
  const lines = fittingFrom(events.slice(after, after + limit).map((event, at) => lineOf(event, after + at, calls)))
  const next = after + lines.length
  const stages = events.flatMap((event) =>
    event.kind === 'stage' && event.phase === 'end' && event.durationMs !== null
      ? [{ stage: event.stage, durationMs: event.durationMs }]
      : [],
  )
  return { total: events.length, lines, next: next < events.length ? next : null, stages: stages.slice(0, 100) }
}

function lineOf(event: Event, n: number, calls: CallPlaces): TimelineLine {
  const callId = 'callId' in event ? event.callId : null
  const words = told(event)
  return {
    n,
    at: event.at,
    kind: event.kind,
    call: callId === null ? null : (calls.get(callId) ?? null),
    ...words,
    title: words.title.slice(0, maxTitleChars),
  }
}

type Told = Pick<TimelineLine, 'title' | 'durationMs' | 'isBad' | 'texts'>

/** An event in words; what has no words of its own stands as its JSON text. */
function told(event: Event): Told {
  const plain = (title: string, isBad = false): Told => ({ title, durationMs: null, isBad, texts: [] })
  switch (event.kind) {
    case 'stage':
      return {
        ...plain(`stage ${event.stage} ${event.phase === 'start' ? 'begins' : 'ends'}`),
        durationMs: event.durationMs,
      }
    case 'rollout_end': {
      const texts = [textOf('detail', event.detail), textOf('fault', event.fault ?? '')].flat()
      return { ...plain(`the rollout ends: ${event.end}`, event.end !== 'completed'), texts }
    }
    case 'exec': {
      return {
        title: `${event.role} command, ${howEnded(event)}`,
        durationMs: event.durationMs,
        isBad: failed(event),
        texts: [
          textOf('command', event.command),
          textOf('stdout', event.stdout, event.truncatedBytes),
          textOf('stderr', event.stderr),
        ].flat(),
      }
    }
    case 'tool_result':
      return {
        title: `tool ${event.tool}: ${event.status}${event.images === undefined ? '' : `, ${event.images.length} pictures`}`,
        durationMs: event.durationMs,
        isBad: event.status !== 'ok',
        texts: [
          textOf('result', event.result),
          textOf('facts', event.facts === undefined ? '' : JSON.stringify(event.facts)),
        ].flat(),
      }
    case 'egress':
      return plain(
        `${event.allowed ? 'reached' : 'refused'} ${event.host}:${event.port} (${event.rule})`,
        !event.allowed,
      )
    case 'box':
      return { ...plain(`box ${event.phase}`, event.phase === 'died'), texts: textOf('detail', event.detail) }
    case 'taint':
      return plain(`tainted: ${event.cause}`, true)
    case 'label':
      return { ...plain(`label ${event.name}`), texts: textOf('value', event.value) }
    case 'engine_wait':
      return { ...plain('a call waited for the engine'), durationMs: event.waitedMs }
    case 'replay':
      return { ...plain(`replay: ${event.phase}`, event.phase === 'diverged'), texts: textOf('detail', event.detail) }
    case 'injected':
      return { ...plain(`injected: ${event.labels.join(', ')}`), texts: textOf('detail', event.detail) }
    case 'snapshot':
      return {
        ...plain(`snapshot ${event.image}`),
        ...(event.without === undefined ? {} : { texts: textOf('without', event.without.join('\n')) }),
      }
    default: {
      const { id: _id, at: _at, rolloutId: _rollout, sessionId: _session, kind: _kind, ...facts } = event
      return {
        ...plain(event.kind === 'custom' ? event.name : event.kind),
        texts: textOf('facts', JSON.stringify(facts)),
      }
    }
  }
}

/** `before`: what the writer left out already. */
function textOf(name: string, text: string, before = 0): TimelineLine['texts'] {
  if (text.trim() === '') return []
  return [{ name, text: text.slice(0, maxTextChars), cut: Math.max(0, text.length - maxTextChars) + before }]
}

type Exec = Extract<Event, { readonly kind: 'exec' }>

function howEnded({ outcome, exitCode, signal }: Exec): string {
  return outcome === 'exited' ? `exit ${exitCode ?? 'unknown'}` : `${outcome} ${signal ?? ''}`.trim()
}

function failed({ outcome, exitCode }: Exec): boolean {
  return outcome !== 'exited' || exitCode !== 0
}

/** A part of the commands that ran in a rollout's boxes: as many as fit into a reply, at least one. */
export function terminalPart(
  events: readonly Event[],
  calls: CallPlaces,
  { after, limit }: { readonly after: number; readonly limit: number },
): TerminalPage {
  const commands = events.flatMap((event, at) => (event.kind === 'exec' ? [{ event, at }] : []))
  const asked = commands.slice(after, after + limit).map(({ event, at }, nth): TerminalStep => {
    const texts = [event.command, event.stdout, event.stderr]
    const [command = '', stdout = '', stderr = ''] = texts.map((text) => text.slice(0, maxTextChars))
    return {
      n: after + nth,
      event: at,
      at: event.at,
      durationMs: event.durationMs,
      role: event.role,
      command,
      how: howEnded(event),
      isBad: failed(event),
      stdout,
      stderr,
      cut: texts.reduce((sum, text) => sum + Math.max(0, text.length - maxTextChars), event.truncatedBytes),
      call: calls.get(event.callId ?? '') ?? null,
    }
  })
  const rows = fittingFrom(asked)
  const next = after + rows.length
  return { total: commands.length, rows, next: next < commands.length ? next : null }
}

/** The pictures that a rollout's model was given, in order. */
export function picturesOf(events: readonly Event[], calls: CallPlaces): readonly Picture[] {
  return events.flatMap((event) =>
    event.kind === 'tool_result'
      ? (event.images ?? []).map(({ sha256, width, height }) => ({
          sha256,
          width,
          height,
          tool: event.tool,
          at: event.at,
          call: calls.get(event.callId ?? '') ?? null,
        }))
      : [],
  )
}

/** What a trainer did with a rollout's rows. */
export function trainingPage(
  runId: Id,
  handed: readonly HandedOutRow[],
  given: readonly StoredDisposition[],
  ordinals: ReadonlyMap<string, number>,
): TrainingPage {
  const byRow = Map.groupBy(given.slice(0, mostDispositions), ({ row }) => row)
  const rows = handed.slice(0, mostRows).map((one): TrainedRow => ({
    row: one.row,
    round: one.round,
    labels: one.labels,
    age: ageOf(one, ordinals),
    dispositions: byRow.get(one.row) ?? [],
  }))
  const left = Math.max(0, handed.length - mostRows) + Math.max(0, given.length - mostDispositions)
  return { runId, rows, left }
}
