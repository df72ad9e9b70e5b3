/** Names under which the second thread serves catalogue, queue and trainer's book. */
import type { Catalogue, TrainerBook } from '../contract/index.ts'
import type { SqliteQueue } from '../queue/index.ts'
import type { Operations } from '../sqlite/index.ts'

/** Every operation of a catalogue. */
export function catalogueOperations(catalogue: Catalogue): Operations {
  return bound('catalogue', catalogue, [
    'run',
    'runs',
    'elsewhere',
    'unfinishedRuns',
    'task',
    'tasks',
    'group',
    'groups',
    'rollout',
    'rollouts',
    'countRollouts',
    'mark',
    'touchedSince',
    'rounds',
    'settledRounds',
    'memory',
    'runEvents',
    'lastRunEvent',
    'fingerprint',
    'verification',
    'tokenTexts',
    'archived',
    'namedObjects',
    'resolve',
    'putTask',
    'putRun',
    'putGroup',
    'putRollout',
    'startRollout',
    'putWork',
    'endRollout',
    'taint',
    'label',
    'appendVerdict',
    'openRound',
    'openSlots',
    'settleRound',
    'putFingerprint',
    'putVerification',
    'putArchived',
    'putTokenTexts',
  ])
}

/** Every operation of a queue. */
export function queueOperations(queue: SqliteQueue): Operations {
  return bound('queue', queue, [
    'session',
    'join',
    'beat',
    'drain',
    'leave',
    'holders',
    'retire',
    'enqueue',
    'claim',
    'handIn',
    'giveBack',
    'cancel',
    'sweep',
    'jobs',
    'depth',
  ])
}

/** Every operation of a trainer's book. */
export function trainerOperations(book: TrainerBook): Operations {
  return bound('trainer', book, [
    'attach',
    'checkpoint',
    'claim',
    'nextExpiry',
    'renew',
    'giveBack',
    'claimed',
    'handOut',
    'dispose',
    'putMetrics',
    'metrics',
    'announce',
    'versions',
    'dispositions',
    'handedRows',
    'ordinals',
    'news',
    'rowsOfClaim',
    'handedLabels',
    'incarnation',
    'counts',
    'closeRun',
    'openRounds',
    'carryingGroups',
    'lengths',
    'requireIncarnation',
    'tell',
    'lastSettled',
    'feedStop',
    'passedGate',
    'adapters',
    'lastPolicy',
    'policyOwner',
    'staleGroups',
    'settleOrder',
    'engines',
    'isClosed',
  ])
}

function bound<T extends object>(prefix: string, target: T, names: readonly (keyof T & string)[]): Operations {
  return Object.fromEntries(
    names.map((name) => [
      `${prefix}.${name}`,
      // The names above are methods; their arguments are typed where the contract is implemented.
      (...args: never[]): unknown => (target[name] as (...args: never[]) => unknown).apply(target, args),
    ]),
  )
}
