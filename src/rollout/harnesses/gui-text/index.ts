export { guiTextAgent, type GuiTextOptions } from './agent.ts'
