export {
  type DecodedConversation,
  type DecodedRow,
  exporterContract,
  type ExporterContractOptions,
} from './contract.ts'
export {
  arbitrarySelection,
  generatedFingerprint,
  type GeneratedSelection,
  selectionOf,
  uniformSelection,
} from './generate.ts'
export { type RecordedRollout, recordRollouts, sampledPerRollout } from './recorded.ts'
