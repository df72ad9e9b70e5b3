export { asked } from './asked.ts'
export { desktopSurface } from './surface.ts'
export { type Program, programNames, screenBeside } from './beside.ts'
