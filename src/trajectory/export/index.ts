export {
  defineExporter,
  type Exporter,
  type ExporterSpec,
  type ExportPurpose,
  type ExportSink,
  manifestName,
  type PreparedExporter,
  type SinkFile,
} from './contract.ts'
export { builtInExporters } from './built-in.ts'
export type { ExportAllowances, Manifest } from './manifest.ts'
export { noNeeds, type TrainerNeeds } from './needs.ts'
export { exporterRegistry, type ExporterRegistry } from './registry.ts'
export { type WriteRequest, writeExport } from './write.ts'
export { preferenceLine } from './dpo/index.ts'
export { type ExportRequest, runExport } from './run.ts'
