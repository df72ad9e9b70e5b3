import type { Log } from '../core/index.ts'
import type { ProxyEvent } from '../proxy/index.ts'
import type { NodesAnswered, RunProgress } from '../rollout/index.ts'
import type { SandboxEventSink } from '../sandbox/index.ts'

/** Writes what the proxy tells: one line per call, session, taint, budget and happening at the engine. */
export function logProxyEvent(log: Log): (event: ProxyEvent) => void {
  return (event) => {
    switch (event.type) {
      case 'call': {
        // Words of a conversation belong into the store.
        const { type: _type, preview: _preview, outcome, ...call } = event
        const told = { ...call, outcome: outcome.kind, ...('code' in outcome ? { code: outcome.code } : {}) }
        if (outcome.kind === 'engine_error') log.warn(told, 'call failed')
        else log.info(told, 'call')
        return
      }
      case 'delivery':
        log.debug(fieldsOf(event), 'answer delivered')
        return
      case 'taint':
        log.warn(fieldsOf(event), 'a call ended without an answer, not through the agent')
        return
      case 'session': {
        const { id: sessionId, rolloutId, role } = event.session
        log.debug({ sessionId, rolloutId, role, phase: event.phase }, 'session')
        return
      }
      case 'budget':
        log.info(fieldsOf(event), 'the budget of a session is used up')
        return
      case 'engine':
        log.info(fieldsOf(event), 'engine')
    }
  }
}

/** Writes how a run goes. */
export function logProgress(log: Log): (progress: RunProgress) => void {
  return (progress) => {
    switch (progress.type) {
      case 'run':
        log.info(fieldsOf(progress), 'run begins')
        return
      case 'note':
        log.info(progress.line)
        return
      case 'stage':
        log.debug(fieldsOf(progress), 'stage')
        return
      case 'reward':
        log.debug(fieldsOf(progress), 'reward so far')
        return
      case 'ended': {
        const { task, verdict, detail, ...rollout } = progress.rollout
        const line = {
          ...rollout,
          detail,
          task: task.name,
          verdict: verdict?.status ?? null,
          reward: verdict?.reward ?? null,
        }
        if (rollout.end === 'infra') log.warn(line, 'rollout ended')
        else log.info(line, 'rollout ended')
      }
    }
  }
}

/** Writes how nodes answered to a pause or to new weights: who was last, and who was passed over. */
export function logNodesAnswered(log: Log): (answered: NodesAnswered) => void {
  return ({ answered, slowest, passed }) => {
    log.info({ answered, ...slowest }, 'nodes have answered to an update')
    for (const one of passed) log.warn(one, 'a node was passed over in an update: its jobs go to others')
  }
}

/** Writes which box could not be stopped while the policy updates. */
export function logMissedPause(log: Log): (missed: { readonly boxId: string | null; readonly why: unknown }) => void {
  return ({ boxId, why }) => log.warn({ boxId, err: why }, 'an agent goes on in a pause of the policy')
}

/** Writes the life of boxes and the commands that Paddock runs in them, then tells `sink`. Output of commands is left out. */
export function logBoxEvents(log: Log, sink: SandboxEventSink): SandboxEventSink {
  return (body, about) => {
    if (body.kind === 'box') {
      const { boxId, phase, detail } = body
      const line = { boxId, phase, detail, run: about.run, rolloutId: about.rollout }
      if (phase === 'died') log.warn(line, 'box')
      else log.debug(line, 'box')
    }
    if (body.kind === 'exec') {
      const { role, outcome, exitCode, signal, durationMs } = body
      log.debug({ role, outcome, exitCode, signal, durationMs, rolloutId: about.rollout }, 'command in a box')
    }
    sink(body, about)
  }
}

function fieldsOf<E extends { readonly type: string }>({ type: _type, ...fields }: E): Omit<E, 'type'> {
  return fields
}
