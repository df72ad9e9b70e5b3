/** The contracts over the second thread. */
import type { ArchivingLog, LogReads } from '../archive/index.ts'
import type { Catalogue, Queue, TrainerBook } from '../contract/index.ts'
import type { StoreThread } from '../sqlite/index.ts'

type Method = (...args: never[]) => Promise<unknown>

/** A method that runs in the thread under `op`; its types are those of the contract it stands in. */
function remote<M extends Method>(thread: StoreThread, op: string): M {
  const call: Method = (...args) => thread.call(op, () => ({ args: trimmed(args) }))
  return call as M
}

/** Structured clone turns a hole at the end into undefined, which would hide a default. */
function trimmed(args: readonly unknown[]): readonly unknown[] {
  const last = args.findLastIndex((value) => value !== undefined)
  return args.slice(0, last + 1)
}

const nothing = (): Promise<void> => Promise.resolve()

/** The catalogue; closing it is the store's business. */
export function remoteCatalogue(thread: StoreThread): Catalogue {
  return {
    run: remote(thread, 'catalogue.run'),
    runs: remote(thread, 'catalogue.runs'),
    elsewhere: remote(thread, 'catalogue.elsewhere'),
    unfinishedRuns: remote(thread, 'catalogue.unfinishedRuns'),
    task: remote(thread, 'catalogue.task'),
    tasks: remote(thread, 'catalogue.tasks'),
    group: remote(thread, 'catalogue.group'),
    groups: remote(thread, 'catalogue.groups'),
    rollout: remote(thread, 'catalogue.rollout'),
    rollouts: remote(thread, 'catalogue.rollouts'),
    countRollouts: remote(thread, 'catalogue.countRollouts'),
    mark: remote(thread, 'catalogue.mark'),
    touchedSince: remote(thread, 'catalogue.touchedSince'),
    rounds: remote(thread, 'catalogue.rounds'),
    settledRounds: remote(thread, 'catalogue.settledRounds'),
    memory: remote(thread, 'catalogue.memory'),
    runEvents: remote(thread, 'catalogue.runEvents'),
    lastRunEvent: remote(thread, 'catalogue.lastRunEvent'),
    fingerprint: remote(thread, 'catalogue.fingerprint'),
    verification: remote(thread, 'catalogue.verification'),
    tokenTexts: remote(thread, 'catalogue.tokenTexts'),
    archived: remote(thread, 'catalogue.archived'),
    namedObjects: remote(thread, 'catalogue.namedObjects'),
    resolve: remote(thread, 'catalogue.resolve'),
    putTask: remote(thread, 'catalogue.putTask'),
    putRun: remote(thread, 'catalogue.putRun'),
    putGroup: remote(thread, 'catalogue.putGroup'),
    putRollout: remote(thread, 'catalogue.putRollout'),
    startRollout: remote(thread, 'catalogue.startRollout'),
    putWork: remote(thread, 'catalogue.putWork'),
    endRollout: remote(thread, 'catalogue.endRollout'),
    taint: remote(thread, 'catalogue.taint'),
    label: remote(thread, 'catalogue.label'),
    appendVerdict: remote(thread, 'catalogue.appendVerdict'),
    openRound: remote(thread, 'catalogue.openRound'),
    openSlots: remote(thread, 'catalogue.openSlots'),
    settleRound: remote(thread, 'catalogue.settleRound'),
    putFingerprint: remote(thread, 'catalogue.putFingerprint'),
    putVerification: remote(thread, 'catalogue.putVerification'),
    putArchived: remote(thread, 'catalogue.putArchived'),
    putTokenTexts: remote(thread, 'catalogue.putTokenTexts'),
    close: nothing,
  }
}

/** The queue; closing it is the store's business. */
export function remoteQueue(thread: StoreThread): Queue {
  return {
    session: remote(thread, 'queue.session'),
    join: remote(thread, 'queue.join'),
    beat: remote(thread, 'queue.beat'),
    drain: remote(thread, 'queue.drain'),
    leave: remote(thread, 'queue.leave'),
    holders: remote(thread, 'queue.holders'),
    retire: remote(thread, 'queue.retire'),
    enqueue: remote(thread, 'queue.enqueue'),
    claim: remote(thread, 'queue.claim'),
    handIn: remote(thread, 'queue.handIn'),
    giveBack: remote(thread, 'queue.giveBack'),
    cancel: remote(thread, 'queue.cancel'),
    sweep: remote(thread, 'queue.sweep'),
    jobs: remote(thread, 'queue.jobs'),
    depth: remote(thread, 'queue.depth'),
    close: nothing,
  }
}

/** What a trainer was handed and said. */
export function remoteTrainerBook(thread: StoreThread): TrainerBook {
  return {
    attach: remote(thread, 'trainer.attach'),
    checkpoint: remote(thread, 'trainer.checkpoint'),
    claim: remote(thread, 'trainer.claim'),
    nextExpiry: remote(thread, 'trainer.nextExpiry'),
    renew: remote(thread, 'trainer.renew'),
    giveBack: remote(thread, 'trainer.giveBack'),
    claimed: remote(thread, 'trainer.claimed'),
    handOut: remote(thread, 'trainer.handOut'),
    dispose: remote(thread, 'trainer.dispose'),
    putMetrics: remote(thread, 'trainer.putMetrics'),
    metrics: remote(thread, 'trainer.metrics'),
    announce: remote(thread, 'trainer.announce'),
    versions: remote(thread, 'trainer.versions'),
    dispositions: remote(thread, 'trainer.dispositions'),
    handedRows: remote(thread, 'trainer.handedRows'),
    ordinals: remote(thread, 'trainer.ordinals'),
    news: remote(thread, 'trainer.news'),
    rowsOfClaim: remote(thread, 'trainer.rowsOfClaim'),
    handedLabels: remote(thread, 'trainer.handedLabels'),
    incarnation: remote(thread, 'trainer.incarnation'),
    counts: remote(thread, 'trainer.counts'),
    closeRun: remote(thread, 'trainer.closeRun'),
    openRounds: remote(thread, 'trainer.openRounds'),
    carryingGroups: remote(thread, 'trainer.carryingGroups'),
    lengths: remote(thread, 'trainer.lengths'),
    requireIncarnation: remote(thread, 'trainer.requireIncarnation'),
    tell: remote(thread, 'trainer.tell'),
    lastSettled: remote(thread, 'trainer.lastSettled'),
    feedStop: remote(thread, 'trainer.feedStop'),
    passedGate: remote(thread, 'trainer.passedGate'),
    adapters: remote(thread, 'trainer.adapters'),
    lastPolicy: remote(thread, 'trainer.lastPolicy'),
    policyOwner: remote(thread, 'trainer.policyOwner'),
    staleGroups: remote(thread, 'trainer.staleGroups'),
    settleOrder: remote(thread, 'trainer.settleOrder'),
    engines: remote(thread, 'trainer.engines'),
    isClosed: remote(thread, 'trainer.isClosed'),
  }
}

/** Reads of the log. */
export function remoteLogReads(thread: StoreThread): LogReads {
  return {
    sessions: remote(thread, 'log.sessions'),
    sessionKeys: remote(thread, 'log.sessionKeys'),
    sessionOfCall: remote(thread, 'log.sessionOfCall'),
    find: remote(thread, 'log.find'),
    unpack: remote(thread, 'log.unpack'),
    unpackEvents: remote(thread, 'log.unpackEvents'),
    events: remote(thread, 'log.events'),
    mark: remote(thread, 'log.mark'),
    close: nothing,
  }
}

/** What an archiver reads of the log. */
export function remoteArchivingLog(thread: StoreThread): Omit<ArchivingLog, 'archive' | 'flush'> {
  return {
    unarchived: remote(thread, 'log.unarchived'),
    finished: remote(thread, 'log.finished'),
    seal: remote(thread, 'log.seal'),
    archivedSessions: remote(thread, 'log.archivedSessions'),
    archivedAmong: remote(thread, 'log.archivedAmong'),
  }
}
