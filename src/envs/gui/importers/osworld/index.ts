import type { GuiFormat } from '../format.ts'
import { programOf } from '../sidecar.ts'
import { osworldDataSchema } from './data.ts'
import { osworldEnvironment } from './environment.ts'
import { readOsworld } from './load.ts'

export { asset } from './assets.ts'

/** OSWorld: task files of https://github.com/xlang-ai/OSWorld (Apache-2.0), read in the copy ljxpython/OSWorldUse at b5007a9. */
export const osworld: GuiFormat = {
  name: 'osworld',
  read: readOsworld,
  environment: osworldEnvironment,
  hostProgram: ({ data }) => programOf(osworldDataSchema.parse(data).sidecar),
}
