import type { GuiFormat } from '../format.ts'
import { miniwobEnvironment } from './environment.ts'
import { readMiniwob } from './load.ts'

/** MiniWoB++: https://github.com/Farama-Foundation/miniwob-plusplus (MIT), read at 3f461ff; nothing of it is in this repository. */
export const miniwob: GuiFormat = { name: 'miniwob', read: readMiniwob, environment: miniwobEnvironment }
