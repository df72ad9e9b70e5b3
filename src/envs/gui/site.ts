import type { Site } from './browser/index.ts'

/** What the browser of an attempt is served, with what the host knows of it. */
export interface TaskSite extends Site {
  /** State now, for the record of the attempt: JSON; null where the site keeps none. */
  state(): unknown
  /** Changes that did not come from the site's own pages. They were refused. */
  readonly forged: number
}
