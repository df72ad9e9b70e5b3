import { jsonlExporter } from './jsonl/index.ts'
import { openaiExporter } from './openai/index.ts'
import { exporterRegistry, type ExporterRegistry } from './registry.ts'
import { verlExporter } from './verl/index.ts'

/** The formats that come with Paddock. */
export const builtInExporters: ExporterRegistry = exporterRegistry([jsonlExporter, verlExporter, openaiExporter])
