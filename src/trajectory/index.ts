export type * from './contract/index.ts'
export {
  CallFaults,
  callFaultsOf,
  dispositionOutcomes,
  heldOutSplits,
  importedHarness,
  rewrittenHarness,
  isEval,
  policiesOf,
  trainedPolicies,
  memoryKeys,
  memorySorts,
  countedAttempt,
  nullCause,
  nullShareOf,
  MemberWeights,
  onCuts,
  passReward,
  tokenFlag,
  rewardOfPolicy,
  verdictInForce,
  verdictOfPolicy,
  verifiersVerdict,
  unsoundnessOf,
  wireFaultOf,
  wireFaults,
} from './contract/index.ts'
export type * from './rows-contract.ts'
export {
  builtInExporters,
  defineExporter,
  type Exporter,
  type ExporterRegistry,
  exporterRegistry,
  type ExporterSpec,
  type ExportRequest,
  type ExportAllowances,
  type ExportPurpose,
  type ExportSink,
  type Manifest,
  manifestName,
  noNeeds,
  type PreparedExporter,
  preferenceLine,
  runExport,
  type SinkFile,
  type TrainerNeeds,
  type WriteRequest,
  writeExport,
} from './export/index.ts'
export { carriedSlots, cutOf, fingerprintDigest, isOutcomeStopped, requireHere } from './catalogue/index.ts'
export {
  announceOwner,
  ownerBusy,
  liveOwner,
  openPostgresCatalogue,
  openReader,
  openStore,
  setAside,
  type OwnedStore,
  type Owner,
  type PostgresCatalogue,
  type PostgresCatalogueOptions,
  probePostgresCatalogue,
  type StoreOptions,
} from './store/index.ts'
export { openPostgresQueue, type PostgresQueue, type PostgresQueueOptions } from './queue/postgres/index.ts'
export {
  buildRows,
  type BuiltRows,
  knownTokenTexts,
  ownBucket,
  promptOfCall,
  type RowOptions,
  sampledTokens,
  tokenizerKey,
  type TokenTexts,
} from './rows/index.ts'
export {
  builtInSelectors,
  chance,
  chooseTasks,
  defineSelector,
  seeded,
  type RequestReader,
  selectForExport,
  selectorOptions,
  type SelectionSource,
} from './select/index.ts'
export {
  draftRound,
  type DraftRound,
  encodeRows,
  filteredRound,
  type HandedRound,
  type HandedRowWhole,
  type HandedScores,
  handedRound,
  type HandoutRules,
  roundJson,
  type RowMode,
  rowsToOwn,
  type ScoringRole,
  type SpanReading,
} from './handout/index.ts'
export {
  type PackedRollout,
  packRollout,
  putGroupOnce,
  type StoreTakenIn,
  takeInRollout,
  takeInStore,
} from './handin/index.ts'
export { probeArchive } from './archive/index.ts'
export { probeBlobs } from './blobs/index.ts'
export { type ObjectStore, type ObjectsStore, objectsStoreOf } from './objects/index.ts'
export { backup, type BackupReport, restore, type RestoreReport } from './backup/index.ts'
export { fsck, type FsckReport } from './fsck/index.ts'
export { takeIn, type TakeIn, type TakenIn, type TakeInReport } from './import/index.ts'
export { importFormats, type ImportReport, type ImportRequest, importTrajectories } from './import/index.ts'
export { salvage, type SalvageReport } from './salvage/index.ts'
export { type CallFacts, type ClassifiedCall, classifyCall, withHindsight } from './classify/index.ts'
export { familyOf, forkLabel, namesOf, placesOf, type TreeMember, type TreeNode, treeOf } from './tree/index.ts'
export { ageOf, type Given, isAnnounced, type RolloutTraining, RunTraining } from './trainer/index.ts'
export { withoutTraining } from './export/conversation.ts'
