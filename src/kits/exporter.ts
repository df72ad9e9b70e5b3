/** `paddock-rl/exporter`: what an export format is written with. */
import './least-node.ts'
export { z } from 'zod'
export { PaddockError } from '../core/index.ts'
export {
  defineExporter,
  type Exporter,
  type ExporterSpec,
  type ExportPurpose,
  type ExportRollout,
  type ExportSink,
  noNeeds,
  type PreparedExporter,
  type Row,
  type RowSegment,
  type SinkFile,
  type TrainerNeeds,
} from '../trajectory/index.ts'
