export { arealExporter } from './areal.ts'
