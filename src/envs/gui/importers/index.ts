import type { Environment } from '../../contract.ts'
import { withFormats } from './compose.ts'
import { cuaBench } from './cua-bench/index.ts'
import type { FormatOptions } from './format.ts'
import { miniwob } from './miniwob/index.ts'
import { osworld } from './osworld/index.ts'
import { webarena } from './webarena/index.ts'

/** Our own apps together with the formats of the field that are read. */
export const withImporters = (own: Environment, o: FormatOptions): Environment =>
  withFormats(own, [cuaBench, miniwob, osworld, webarena], o)

export { forwardSite } from './forward.ts'
