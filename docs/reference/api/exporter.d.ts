export type ExportPurpose = 'rl' | 'sft' | 'archive';

export interface ExportRollout {
    readonly rollout: RolloutView;
    readonly group: GroupRecord;
    readonly taskName: string;
    readonly environment: string;
    readonly instruction: string;
    readonly verdict: Verdict | null;
    readonly advantage: number | null;
    readonly rows: readonly Row[];
    readonly rowWeights: readonly number[];
    readonly conversations: readonly {
        readonly messages: readonly string[];
        readonly tools: string | null;
        readonly media: readonly RowMedia[];
    }[];
    readonly spans?: readonly (readonly MessageSpan[])[];
    readonly events?: readonly Event[];
    readonly sideChannels?: readonly RowSideChannel[];
    readonly entropies?: ReadonlyMap<string, Float32Array>;
}

export interface ExportSink {
    open(name: string): Promise<SinkFile>;
}

export interface Exporter {
    readonly name: string;
    readonly version: string;
    readonly summary: string;
    readonly needs: 'tokens' | 'messages';
    readonly purpose: ExportPurpose;
    readonly trainer: TrainerNeeds;
    readonly files: readonly string[];
    readonly optionsSchema: unknown;
    prepare(options: unknown): PreparedExporter;
}

export interface ExporterSpec<Options> {
    readonly name: string;
    readonly version: string;
    readonly summary: string;
    readonly needs: 'tokens' | 'messages';
    readonly purpose: ExportPurpose;
    readonly trainer: TrainerNeeds;
    readonly files: readonly string[];
    readonly options: z.ZodType<Options>;
    accept?(rollout: ExportRollout, row: Row, options: Options): DropReason | null;
    write(rollouts: AsyncIterable<ExportRollout>, sink: ExportSink, options: Options): Promise<void>;
}

export declare class PaddockError extends Error {
    readonly name = "PaddockError";
    readonly code: ErrorCode;
    readonly data: ErrorData;
    readonly fix: string;
    constructor(code: ErrorCode, message: string, options?: {
        data?: ErrorData;
        fix?: string;
        cause?: unknown;
    });
    get family(): ErrorFamily;
    get status(): number;
    line(): string;
    toJSON(): {
        code: ErrorCode;
        family: ErrorFamily;
        message: string;
        fix: string;
        data: ErrorData;
    };
}

export interface PreparedExporter {
    accept(rollout: ExportRollout, row: Row): DropReason | null;
    write(rollouts: AsyncIterable<ExportRollout>, sink: ExportSink): Promise<void>;
}

export interface Row {
    readonly id: string;
    readonly rolloutId: Id;
    readonly sessionId: Id;
    readonly policy?: string;
    readonly groupId: Id;
    readonly taskDigest: Digest;
    readonly leafCallId: Id | null;
    readonly tokens: Int32Array;
    readonly mask: Uint8Array;
    readonly logprobs: Float32Array;
    readonly logprobKind: LogprobKind;
    readonly promptLength: number;
    readonly segments: readonly RowSegment[];
    readonly injected: readonly {
        readonly start: number;
        readonly end: number;
        readonly labels: readonly string[];
    }[];
    readonly offContext: boolean;
    readonly policySpans: readonly PolicySpan[];
    readonly sampling: readonly {
        readonly callId: Id;
        readonly params: SamplingParams;
    }[];
    readonly finishReason: string | null;
    readonly fingerprint: Digest | null;
}

export interface RowSegment {
    readonly segmentId: Id;
    readonly origin: SegmentOrigin;
    readonly callId: Id | null;
    readonly callClass: CallClass;
    readonly choice: number | null;
    readonly start: number;
    readonly end: number;
    readonly trained: boolean;
    readonly maskReason: MaskReason | null;
}

export interface SinkFile {
    write(chunk: Uint8Array | string): Promise<void>;
    readonly sizeBytes: number;
}

export interface TrainerNeeds {
    readonly equalGroups: boolean;
    readonly oneRowPerRollout: boolean;
    readonly contiguousPrefix: boolean;
    readonly logprobOnEachToken: boolean;
    readonly groupsByPrompt: boolean;
}

export declare function defineExporter<Options>(spec: ExporterSpec<Options>): Exporter;

export declare const noNeeds: TrainerNeeds;

export { z } from 'zod'
