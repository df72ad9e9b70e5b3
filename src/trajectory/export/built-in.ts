import { jsonlExporter } from './jsonl/index.ts'
import { openaiExporter } from './openai/index.ts'
import { exporterRegistry, type ExporterRegistry } from './registry.ts'
import { slimeExporter } from './slime/index.ts'
import { trlExporter } from './trl/index.ts'
import { verlExporter } from './verl/index.ts'

/** The formats that come with Paddock. */
export const builtInExporters: ExporterRegistry = exporterRegistry([
  jsonlExporter,
  openaiExporter,
  slimeExporter,
  trlExporter,
  verlExporter,
])
