export { slimeExporter } from './slime.ts'
