export { sharegptExporter } from './sharegpt.ts'
