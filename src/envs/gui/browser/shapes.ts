import { z } from 'zod'

/** What is read of the protocol's answers and events (chromedevtools.github.io/devtools-protocol, tip of tree, July 2026). */
export const nothing = z.unknown()
export const contextCreated = z.object({ browserContextId: z.string() })
export const targetCreated = z.object({ targetId: z.string() })
export const attached = z.object({
  sessionId: z.string(),
  targetInfo: z.object({ targetId: z.string(), url: z.string(), browserContextId: z.string().optional() }),
})
export const targetGone = z.object({ targetId: z.string() })
export const requestPaused = z.object({
  requestId: z.string(),
  request: z.object({
    url: z.string(),
    method: z.string(),
    headers: z.record(z.string(), z.string()),
    postData: z.string().optional(),
    postDataEntries: z.array(z.object({ bytes: z.string().optional() })).optional(),
  }),
})
export const requestSent = z.object({ requestId: z.string(), type: z.string().optional() })
export const dialogOpening = z.object({ type: z.string(), message: z.string() })
export const frameEvent = z.object({ frameId: z.string() })
export const frameNavigated = z.object({
  frame: z.object({ id: z.string(), parentId: z.string().optional(), url: z.string() }),
})
export const navigatedWithin = z.object({ frameId: z.string(), url: z.string() })
export const isolatedWorld = z.object({ executionContextId: z.number() })
export const evaluated = z.object({
  result: z.object({ value: z.unknown().optional() }),
  exceptionDetails: z.object({ text: z.string() }).optional(),
})
export const frameOwner = z.object({ backendNodeId: z.number() })
export const browserVersion = z.object({ userAgent: z.string() })
const numbers = z.array(z.number())
export const domSnapshot = z.object({
  strings: z.array(z.string()),
  documents: z.array(
    z.object({
      nodes: z.object({
        parentIndex: numbers,
        nodeName: numbers,
        backendNodeId: numbers,
        isClickable: z.object({ index: numbers }),
      }),
      layout: z.object({ nodeIndex: numbers, styles: z.array(numbers) }),
    }),
  ),
})

interface FrameBranch {
  readonly frame: { readonly id: string }
  readonly childFrames?: readonly FrameBranch[] | undefined
}
const frameBranch: z.ZodType<FrameBranch> = z.object({
  frame: z.object({ id: z.string() }),
  get childFrames() {
    return z.array(frameBranch).optional()
  },
})
export const frameTree = z.object({ frameTree: frameBranch })
export type { FrameBranch }
export const shot = z.object({ data: z.string() })
export const quads = z.object({ quads: z.array(z.array(z.number()).length(8)) })
export const resolvedNode = z.object({ object: z.object({ objectId: z.string() }) })
export const pastEntries = z.object({
  currentIndex: z.number(),
  entries: z.array(z.object({ id: z.number(), url: z.string() })),
})
export const called = z.object({ result: z.object({ value: z.unknown().optional() }) })
export const downloadBegins = z.object({ guid: z.string(), suggestedFilename: z.string() })
export const downloadProgress = z.object({
  guid: z.string(),
  totalBytes: z.number(),
  receivedBytes: z.number(),
  state: z.string(),
})

const axValue = z.object({ value: z.unknown().optional() })
export const axTree = z.object({
  nodes: z.array(
    z.object({
      nodeId: z.string(),
      ignored: z.boolean(),
      role: axValue.optional(),
      name: axValue.optional(),
      value: axValue.optional(),
      properties: z.array(z.object({ name: z.string(), value: axValue })).optional(),
      childIds: z.array(z.string()).optional(),
      parentId: z.string().optional(),
      backendDOMNodeId: z.number().optional(),
    }),
  ),
})
export type AxNode = z.infer<typeof axTree>['nodes'][number]
