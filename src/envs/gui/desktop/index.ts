export { asked } from './asked.ts'
export { desktopSurface } from './surface.ts'
