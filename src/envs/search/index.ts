export { type Corpus, openCorpus } from './corpus/index.ts'
export { searchEnvironment, type SearchOptions } from './environment.ts'
export { corpusAt } from './load.ts'
export { type Retriever, serveRetrieve } from './retrieve/index.ts'
