import type { GuiFormat } from '../format.ts'
import { cuaBenchEnvironment } from './environment.ts'
import { readCuaBench } from './load.ts'

/** cua-bench: task modules of https://github.com/trycua/cua (MIT), libs/cua-bench at b296ec9. */
export const cuaBench: GuiFormat = {
  name: 'cua-bench',
  read: readCuaBench,
  environment: cuaBenchEnvironment,
  hostProgram: ({ source }) => source,
}
