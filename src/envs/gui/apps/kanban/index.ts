export { kanban } from './kanban.ts'
