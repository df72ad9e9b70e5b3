import { arealExporter } from './areal/index.ts'
import { atifExporter } from './atif/index.ts'
import { dpoExporter } from './dpo/index.ts'
import { jsonlExporter } from './jsonl/index.ts'
import { nemoRlExporter } from './nemo-rl/index.ts'
import { openaiExporter } from './openai/index.ts'
import { exporterRegistry, type ExporterRegistry } from './registry.ts'
import { sharegptExporter } from './sharegpt/index.ts'
import { skyrlExporter } from './skyrl/index.ts'
import { slimeExporter } from './slime/index.ts'
import { stepLabelsExporter } from './step-labels/index.ts'
import { trlExporter } from './trl/index.ts'
import { verlExporter } from './verl/index.ts'

/** The formats that come with Paddock. */
export const builtInExporters: ExporterRegistry = exporterRegistry([
  arealExporter,
  atifExporter,
  dpoExporter,
  jsonlExporter,
  nemoRlExporter,
  openaiExporter,
  sharegptExporter,
  skyrlExporter,
  slimeExporter,
  stepLabelsExporter,
  trlExporter,
  verlExporter,
])
