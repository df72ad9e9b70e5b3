import type { Event } from '../../core/index.ts'
import { type Paint, printable } from './colour.ts'
import { duration, shortId, timeOfDay } from './units.ts'

/** One line per event, in order. */
export function eventLines(events: readonly Event[], paint: Paint): string {
  return events
    .map((event) => `${paint('dim', timeOfDay(event.at))}  ${event.kind.padEnd(11)}  ${say(event, paint)}`)
    .join('\n')
}

function say(event: Event, paint: Paint): string {
  switch (event.kind) {
    case 'stage':
      return `${event.stage} ${event.phase}${event.durationMs === null ? '' : ` (${duration(event.durationMs)})`}`
    case 'rollout_end':
      return `${paint('strong', event.end)}${event.detail === '' ? '' : `: ${line(event.detail)}`}`
    case 'exec': {
      const how = event.exitCode === null ? (event.signal ?? '') : `exit ${event.exitCode}`
      const bad = event.outcome !== 'exited' || event.exitCode !== 0
      const ending = `${event.outcome}${how === '' ? '' : ` ${how}`}, ${duration(event.durationMs)}`
      return `${event.role}: ${line(event.command)}  ${paint(bad ? 'warn' : 'dim', ending)}`
    }
    case 'tool_result':
      return `${event.tool}: ${paint(event.status === 'ok' ? 'good' : 'warn', event.status)}, ${duration(event.durationMs)}${pictures(event.images)}  ${line(event.result)}`
    case 'reward':
      return line(
        Object.entries(event.parts)
          .map(([name, value]) => `${name} ${value}`)
          .join(', '),
      )
    case 'egress':
      return `${event.host}:${event.port} ${event.allowed ? 'allowed' : paint('bad', 'refused')} (${event.rule})`
    case 'snapshot':
      return `${event.image}${event.kept === true ? ' (kept)' : ''}${event.without === undefined ? '' : ` without ${line(event.without.join(', '))}`}`
    case 'deferred_result':
      return `${event.handle} of ${event.tool}: ${paint(event.status === 'ok' ? 'good' : 'warn', event.came)}, ${event.lateCalls} calls and ${duration(event.lateMs)} late`
    case 'library': {
      const refused = event.refused.map(({ path, reason }) => `${path} (${reason})`).join(', ')
      const used =
        event.used === null ? 'use unknown' : `used ${event.used.length === 0 ? 'nothing' : event.used.join(', ')}`
      return line(
        `${event.given?.slice(0, 8) ?? 'empty'} to ${event.left?.slice(0, 8) ?? 'none'}, ${event.files} files; ${used}; wrote ${event.wrote.length === 0 ? 'nothing' : event.wrote.join(', ')}${refused === '' ? '' : `; not kept: ${refused}`}`,
      )
    }
    case 'user_turn':
      return line(`${event.reply ?? ''}${event.over === null ? '' : ` [over: ${event.over}]`}`)
    case 'agent_turn':
      return line(`${event.agent}: ${event.said}${event.over === null ? '' : ` [over: ${event.over}]`}`)
    case 'box':
      return `${event.boxId.slice(0, 12)} ${event.phase}${event.detail === '' ? '' : `: ${line(event.detail)}`}`
    case 'taint':
      return paint('warn', line(event.cause))
    case 'engine_wait':
      return `the engine was paused for ${duration(event.waitedMs)}`
    case 'side_channel':
      return `${event.what} of choice ${event.choice}, ${event.sizeBytes} bytes ${event.encoding}  ${event.sha256.slice(0, 8)}`
    case 'replay':
      return event.phase === 'answered'
        ? `answered as call ${event.of === null ? '' : shortId(event.of)} was`
        : event.phase === 'arrived'
          ? 'the fork begins'
          : paint('warn', line(event.detail))
    case 'grafted':
      return `the past of call ${shortId(event.callId)} as recorded; what was sent is ${event.sha256.slice(0, 8)}`
    case 'injected':
      return `${event.labels.join(', ')} in the prompt${event.edits === null ? `; without it: unknown, ${line(event.detail)}` : ''}`
    case 'shelve':
      return `${event.phase}${event.detail === '' ? '' : `: ${line(event.detail)}`}`
    case 'response_deleted':
      return event.responseId
    case 'label':
      return line(`${event.name} = ${event.value}${event.token === undefined ? '' : `  by ${event.token}`}`)
    case 'act':
      return line(actText(event))
    case 'handed_in':
      return line(`by ${event.by}, ${event.sizeBytes} bytes, ${event.digest}`)
    case 'custom':
      return line(`${event.name} ${JSON.stringify(event.data)}`)
  }
}

/** What somebody did over the control API. */
function actText({ token, role, action, path, said }: Extract<Event, { kind: 'act' }>): string {
  const named = action.replace(/:(\w+)/g, (whole, name: string) => path[name] ?? whole)
  const fields = Object.entries(said).map(([name, value]) => ` ${name}=${value}`)
  return `${token} (${role}): ${named}${fields.join('')}`
}

function pictures(images: Extract<Event, { kind: 'tool_result' }>['images'] = []): string {
  return images.map(({ width, height, sha256 }) => ` [${width}x${height} ${sha256.slice(0, 8)}]`).join('')
}

/** The first part of a text on one line. */
function line(text: string): string {
  const flat = printable(text.replace(/\s*\n\s*/g, ' ⏎ ').trim())
  return flat.length <= 120 ? flat : `${flat.slice(0, 119)}…`
}
