/** Names under which the second thread serves catalogue and queue. */
import type { SqliteCatalogue } from '../catalogue/index.ts'
import type { SqliteQueue } from '../queue/index.ts'
import type { Operations } from '../sqlite/index.ts'

/** Every operation of a catalogue. */
export function catalogueOperations(catalogue: SqliteCatalogue): Operations {
  return bound('catalogue', catalogue, [
    'run',
    'runs',
    'task',
    'tasks',
    'group',
    'groups',
    'rollout',
    'rollouts',
    'rounds',
    'runEvents',
    'fingerprint',
    'tokenTexts',
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
    'putTokenTexts',
  ])
}

/** Every operation of a queue. */
export function queueOperations(queue: SqliteQueue): Operations {
  return bound('queue', queue, [
    'join',
    'beat',
    'drain',
    'leave',
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

function bound<T extends object>(prefix: string, target: T, names: readonly (keyof T & string)[]): Operations {
  return Object.fromEntries(
    names.map((name) => [
      `${prefix}.${name}`,
      // The names above are methods; their arguments are typed where the contract is implemented.
      (...args: never[]): unknown => (target[name] as (...args: never[]) => unknown).apply(target, args),
    ]),
  )
}
