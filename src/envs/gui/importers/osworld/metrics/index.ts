import type { Metric } from './contract.ts'
import { fileMetrics } from './files.ts'
import { jsonMetrics } from './json.ts'
import { stringMetrics } from './strings.ts'
import { urlMetrics } from './urls.ts'

export { type Compared, type Found, type Metric, NotComparable } from './contract.ts'
export { follows } from './json.ts'
export { indelRatio, sequenceRatio } from './similarity.ts'
export { sameUrl } from './urls.ts'

/**
 * The metrics of OSWorld that compare texts, JSON, addresses and plain files, by their names (desktop_env/evaluators/metrics
 * of ljxpython/OSWorldUse at b5007a9). Those on documents, sheets, slides, pictures and sound are a sidecar's work.
 */
export const metrics: ReadonlyMap<string, Metric> = new Map(
  Object.entries({ ...stringMetrics, ...jsonMetrics, ...urlMetrics, ...fileMetrics }),
)
