export { asked } from './asked.ts'
export { desktopSurface } from './surface.ts'
export { type Program, screenBeside } from './beside.ts'
