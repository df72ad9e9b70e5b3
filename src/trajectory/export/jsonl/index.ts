export { jsonlExporter, jsonlSchema } from './jsonl.ts'
