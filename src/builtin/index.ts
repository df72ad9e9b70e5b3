export { environmentRegistry } from './environments.ts'
export { builtInGui, guiApps, guiImporters } from './gui.ts'
