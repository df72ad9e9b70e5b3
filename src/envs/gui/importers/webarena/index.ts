import type { GuiFormat } from '../format.ts'
import { programOf } from '../sidecar.ts'
import { webarenaDataSchema } from './data.ts'
import { webarenaEnvironment } from './environment.ts'
import { readWebarena } from './load.ts'

/** WebArena: config files of https://github.com/web-arena-x/webarena (Apache-2.0) at f62e0b9, on sites that the user hosts. */
export const webarena: GuiFormat = {
  name: 'webarena',
  read: readWebarena,
  environment: webarenaEnvironment,
  hostProgram: ({ data }) => programOf(webarenaDataSchema.parse(data).judge),
}
